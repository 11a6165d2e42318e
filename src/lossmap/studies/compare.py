"""Two arms side by side: paired deltas per corpus and query class, or a refusal that says what differs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lossmap import canon, transcript
from lossmap.errors import LossmapError
from lossmap.judge import intervals
from lossmap.judge.evaluate import CLASSES
from lossmap.judge.measures import NAMES
from lossmap.search import arms

HASHES = arms.HASHES


@dataclass(frozen=True)
class Arm:
    """An arm folder: its metrics document, and values (Q, len(NAMES)) by sorted query id."""

    folder: Path
    document: dict[str, Any]
    query_ids: tuple[str, ...]
    values: NDArray[np.float64]

    @property
    def name(self) -> str:
        return str(self.document["arm"]["id"])


def read_arm(folder: Path) -> Arm:
    """Read metrics.json and per_query.csv.gz; raises on a query with a missing or a repeated value."""
    document = canon.read_json(folder / "metrics.json")
    path = folder / "per_query.csv.gz"
    found: dict[str, dict[str, float]] = {}
    for _, query_id, measure, value in canon.read_csv_gz(path):
        mine = found.setdefault(query_id, {})
        if measure in mine:
            raise _refusal("a query has two values of one measure", f"{path}: {query_id} {measure}")
        mine[measure] = float(value)
    partial = sorted(query_id for query_id, mine in found.items() if set(mine) != set(NAMES))
    if partial:
        raise _refusal("queries lack a measure", path, observed=", ".join(partial[:5]), expected=", ".join(NAMES))
    promised = sum(row["queries"] for row in document["rows"] if row["query_class"] == "all")
    if promised != len(found):
        raise _refusal("the values do not cover the document's queries", path, observed=len(found), expected=promised)
    ids = tuple(sorted(found))
    return Arm(folder, document, ids, np.array([[found[q][name] for name in NAMES] for q in ids]))


def compare(
    a_dir: Path, b_dir: Path, classes: Mapping[str, str] | None = None, factor: Collection[str] = ()
) -> dict[str, Any]:
    """Arm ``a_dir`` minus control ``b_dir``: per corpus and class the mean delta of every measure, with intervals.

    ``classes`` maps query ids to query classes; None gives the rows ``all`` alone. ``factor`` names the hashes that
    are allowed to differ because they are what is under test. Raises where any other hash differs or the two arms
    did not score the same queries.
    """
    arm, control = read_arm(Path(a_dir)), read_arm(Path(b_dir))
    differing = require_alike(arm, control, factor)
    return {
        "arm": arm.name,
        "control": control.name,
        "factor": differing,
        "intervals": intervals.card(),
        "rows": [row for head in heads(arm, control) for row in _rows(arm, control, head, classes)],
    }


def meeting_of(query_id: str) -> str:
    """``corpus:meeting`` of ``corpus:meeting:position``; a query id without a meeting stands for itself."""
    return query_id.rsplit(":", 1)[0] if query_id.count(":") > 1 else query_id


def require_alike(arm: Arm, control: Arm, factor: Collection[str] = ()) -> list[str]:
    """The hashes in which two arms differ; raises on one that ``factor`` does not name, and on other queries."""
    where = f"{arm.folder} against {control.folder}"
    ours, theirs = arm.document["hashes"], control.document["hashes"]
    absent = [name for name in HASHES if not ours.get(name) or not theirs.get(name)]
    if absent:
        raise _refusal("an arm does not carry a hash", where, ", ".join(absent))
    differing = [name for name in HASHES if ours[name] != theirs[name]]
    for name in differing:
        if name not in factor:
            raise _refusal(
                f"the arms differ in {name}, which is not the factor under test", where, ours[name], theirs[name]
            )
    if only := sorted(set(arm.query_ids) ^ set(control.query_ids)):
        raise _refusal("the arms did not score the same queries", where, observed=", ".join(only[:5]))
    return differing


def heads(arm: Arm, control: Arm) -> list[dict[str, Any]]:
    """One row per corpus of the document, for the fields that a delta inherits; its tier is the worse of the two."""
    tiers = {row["corpus"]: row["tier"] for row in control.document["rows"]}
    return [
        {**row, "tier": transcript.worst([row["tier"], tiers.get(row["corpus"], row["tier"])])}
        for row in arm.document["rows"]
        if row["query_class"] == "all"
    ]


def _rows(arm: Arm, control: Arm, head: Mapping[str, Any], classes: Mapping[str, str] | None) -> list[dict[str, Any]]:
    mine = np.array([query_id.split(":", 1)[0] == head["corpus"] for query_id in arm.query_ids])
    names = np.array([(classes or {}).get(query_id, "") for query_id in arm.query_ids], object)
    if classes is not None and not all(names[mine]):
        lost = [query_id for query_id, name in zip(arm.query_ids, names) if not name]
        raise _refusal("a query has no class", arm.folder, observed=", ".join(lost[:5]))
    rows = []
    for query_class in CLASSES:
        keep = mine if query_class == "all" else mine & (names == query_class)
        if keep.any():
            groups = [meeting_of(query_id) for query_id, kept in zip(arm.query_ids, keep) if kept]
            estimate = intervals.paired(arm.values[keep], control.values[keep], groups)
            rows.append(
                {
                    **{name: head[name] for name in ("corpus", "tier", "judged_by")},
                    "query_class": query_class,
                    "queries": estimate.query_count,
                    "meetings": estimate.meeting_count,
                    "deltas": dict(zip(NAMES, estimate.mean.tolist())),
                    "intervals": {name: estimate.interval(column) for column, name in enumerate(NAMES)},
                }
            )
    return rows


def markdown(table: Mapping[str, Any], names: Sequence[str] = NAMES) -> str:
    """A pipe table of :func:`compare`: each delta with its interval over meetings, four decimals."""
    lines = [
        f"{table['arm']} minus {table['control']}; intervals resample meetings.",
        "",
        "| corpus | class | n | " + " | ".join(names) + " |",
        "|---|---|--:|" + "--:|" * len(names),
    ]
    for row in table["rows"]:
        cells = []
        for name in names:
            low, high = row["intervals"][name]["meetings"]
            cells.append(f"{row['deltas'][name]:+.4f} [{low:+.4f}, {high:+.4f}]")
        lines.append(f"| {row['corpus']} | {row['query_class']} | {row['queries']} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _refusal(what: str, where: object, observed: object = None, expected: object = None) -> LossmapError:
    return LossmapError(
        what,
        where=where,
        observed=observed,
        expected=expected,
        next_command="measure both arms again on the same index and judgements, or name the factor under test",
        exit_code=2,
    )
