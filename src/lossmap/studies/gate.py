"""A gate: what must rise, and what must not fall, before a treatment is adopted. It is data (gates.yaml).

Two verdicts are printed. The strict one is the seed's: any rise counts, any fall of a protected class rejects. The
other asks whether an interval that resamples meetings excludes zero, since a fall within its interval is no finding.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from lossmap.errors import LossmapError

Row = Mapping[str, Any]
CARRIED = ("corpus", "tier", "judged_by", "query_class", "queries", "meetings", "band", "band_from")
RISES: dict[str, Callable[[float, float, float], bool]] = {
    "strict": lambda delta, low, high: delta > 0,
    "with_intervals": lambda delta, low, high: low > 0,
}
STANDS: dict[str, Callable[[float, float, float], bool]] = {
    "strict": lambda delta, low, high: delta >= 0,
    "with_intervals": lambda delta, low, high: high >= 0,
}


def judge(name: str, spec: Mapping[str, Any], rows: Iterable[Row], counted: Collection[str]) -> dict[str, Any]:
    """Both verdicts of gate ``name`` over the ``rows`` of its contrast (compare.compare, per corpus and class).

    ``up``: a class and a measure that must rise on every corpus that has that class; ``protected``: classes of which
    no measure may fall on any corpus. Only ``counted`` corpora decide; the others are printed beside them. Raises where
    nothing could decide: a gate without evidence would pass or fail by accident.
    """
    found = decisions(spec, rows, counted)
    for role in ("up", "protected"):
        if not any(row["role"] == role and row["counted"] for row in found):
            raise LossmapError(
                "a gate has no row to decide on",
                where=name,
                observed=f"no query of the class for {role!r} in {', '.join(sorted(counted)) or 'any corpus'}",
                expected=spec[role],
                next_command="name a class that a scored corpus has, in workflow/config/gates.yaml",
                exit_code=2,
            )
    return {"name": name, **spec, "corpora": sorted(counted), **{v: verdict(found, v) for v in RISES}, "rows": found}


def decisions(spec: Mapping[str, Any], rows: Iterable[Row], counted: Collection[str]) -> list[dict[str, Any]]:
    """Every decision that ``rows`` enter, by corpus, class and measure; rows without intervals decide strictly."""
    return [judged for row in rows for judged in _judged(spec, row, counted)]


def _judged(spec: Mapping[str, Any], row: Row, counted: Collection[str]) -> list[dict[str, Any]]:
    """The decisions that one row of the contrast enters: one measure for ``up``, each for ``protected``."""
    head = {name: row[name] for name in CARRIED if name in row} | {"counted": row["corpus"] in counted}
    out = []
    if row["query_class"] == spec["up"]["class"]:
        out.append({**head, "role": "up", **_decided(row, spec["up"]["measure"], RISES)})
    if row["query_class"] in spec["protected"]:
        out += [{**head, "role": "protected", **_decided(row, measure, STANDS)} for measure in row["deltas"]]
    return out


def _decided(row: Row, measure: str, rules: Mapping[str, Callable[[float, float, float], bool]]) -> dict[str, Any]:
    delta, strict = row["deltas"][measure], rules["strict"]
    if "intervals" not in row:
        # A printed delta has no queries to resample: the seed's own rule is all that can be asked of it.
        return {"measure": measure, "delta": delta, "interval": None, "strict": strict(delta, delta, delta)}
    low, high = row["intervals"][measure]["meetings"]
    verdicts = {name: holds(delta, low, high) for name, holds in rules.items()}
    return {"measure": measure, "delta": delta, "interval": [low, high], **verdicts}


def verdict(rows: Iterable[Row], name: str) -> dict[str, bool]:
    """Whether each side of the gate holds, and whether both do."""
    deciding = [row for row in rows if row["counted"]]
    sides = {role: all(row[name] for row in deciding if row["role"] == role) for role in ("up", "protected")}
    return {**sides, "accepted": all(sides.values())}
