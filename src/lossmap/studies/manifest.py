"""The published script on corpus agreement: families of arms from a manifest, their deltas from metrics.json.

A manifest is data: ``runs_root``, ``measure``, and ``families``, each a ``control`` {name, run}, ``stage``,
``query_set`` and ``arms`` [{name, run, axis}]. A ``run`` is a folder with a metrics.json below ``runs_root``, or a
list of such folders where every corpus has its own. ``hashed`` refuses runs without hashes: those of this checkout
have them. ``corpora`` names the two that are compared; without it the runs of a control must name two.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.judge import agreement
from lossmap.judge.agreement import Arm, Pair
from lossmap.layout import Layout
from lossmap.search import plan
from lossmap.studies import compare, paired

FAMILIES = ("fusion", "budget", "pool")
MEASURE = "nDCG@10"
CLASS = "all"
KEYS = ("name", "control", "arms")


def emitted(at: Layout) -> dict[str, Any]:
    """The manifest of this scale's own arms: the families of the seed over the first two benches of each."""
    benches = {name: plan.benches(at, plan.STAGE, name)[:2] for name in FAMILIES}
    root = at.stage(plan.STAGE).relative_to(at.root) / "scored"
    families = [_family(at, name, asked) for name, asked in benches.items() if len(asked) == 2]
    return {"runs_root": root.as_posix(), "measure": MEASURE, "hashed": True, "families": families}


def load(path: Path) -> dict[str, Any]:
    """A manifest that somebody wrote. Raises (exit 2) where it is no JSON or lacks what a manifest says."""
    if not path.is_file():
        _refuse("there is no such manifest", path, "no such file", "a JSON file")
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        _refuse("a manifest is no JSON", path, error, "JSON as --emit-manifest prints it")
    absent = [name for name in ("runs_root", "families") if name not in found]
    absent += [
        f"families/{n}/{key}" for n, family in enumerate(found.get("families", [])) for key in KEYS if key not in family
    ]
    if absent:
        _refuse("a manifest lacks its parts", path, f"without {', '.join(absent)}", f"runs_root, families of {KEYS}")
    return found


def _family(at: Layout, name: str, benches: Sequence[str]) -> dict[str, Any]:
    found, stanzas = paired.family(at, name, benches), plan.chosen(at, name)

    def entry(arm: str) -> dict[str, Any]:
        return {"name": arm, "run": [f"{bench}/{arm}" for bench in benches]}

    return {
        "name": name,
        "control": entry(found.control),
        "stage": "rerank" if "rerank" in stanzas[found.control] else "retrieve",
        "query_set": " and ".join(benches),
        "arms": [{**entry(arm), "axis": axis} for arm, axis in found.arms.items()],
    }


def study(
    manifest: Mapping[str, Any],
    root: Path,
    query_class: str = CLASS,
    measure: str | None = None,
    dropped: Collection[str] = (),
    exclude_inert: bool = False,
) -> dict[str, Any]:
    """What two corpora say of the arms of ``manifest`` below ``root``, in one class and measure.

    Raises (exit 2) on a missing file, a missing row, an arm that ``dropped`` names and the manifest does not.
    """
    measure = measure or manifest.get("measure", MEASURE)
    pair = _pair(manifest, root)
    known = {arm["name"] for family in manifest["families"] for arm in family["arms"]}
    if strangers := sorted(set(dropped) - known):
        _refuse("no such arm to drop", "--drop", strangers, sorted(known))
    arms = [arm for arm in _arms(manifest, root, pair, query_class, measure) if arm.name not in dropped]
    moved = [arm for arm in arms if not agreement.inert(arm)]
    kept = moved if exclude_inert else arms
    return {
        "measure": measure,
        "query_class": query_class,
        "runs_root": str(manifest["runs_root"]),
        "dropped": sorted(dropped),
        "inert_excluded": len(arms) - len(kept),
        "arms": agreement.arm_rows(kept, pair),
        **agreement.report(kept, pair),
    }


def markdown(found: Mapping[str, Any]) -> str:
    """Two pipe tables of :func:`study`: the arms, then the coefficients of each family and of all together."""
    first, second = found["corpora"]
    lines = [
        f"{found['measure']} of {found['query_class']}, delta against the control of each family.",
        "",
        f"| family | arm | axis | {first} | {second} | verdict |",
        "|---|---|---|--:|--:|---|",
    ]
    for row in found["arms"]:
        deltas = " | ".join(f"{row['deltas'][corpus]:+.4f}" for corpus in (first, second))
        lines.append(f"| {row['family']} | {row['arm']} | {row['axis']} | {deltas} | {row['verdict']} |")
    names = ["n", "tau_b", "tau_p", "rho", "rho_p", "r", "r_p"]
    lines += ["", f"| set | {' | '.join(names)} | agree | disagree | rate |", "|---|" + "--:|" * (len(names) + 3)]
    for name, row in found["rank_agreement"].items():
        tally = found["sign_agreement"][name]
        cells = [*(row[each] for each in names), *(tally[each] for each in ("agree", "disagree", "rate"))]
        lines.append(f"| {name} | " + " | ".join(_cell(cell) for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(value: float | int | None) -> str:
    return "–" if value is None else str(value) if isinstance(value, int) else f"{value:.4f}"


def arms(manifest: Mapping[str, Any], root: Path, query_class: str, measure: str = MEASURE) -> tuple[list[Arm], Pair]:
    """The arms of ``manifest`` and the two corpora that they are compared on."""
    pair = _pair(manifest, root)
    return list(_arms(manifest, root, pair, query_class, measure)), pair


def classes(manifest: Mapping[str, Any], root: Path, wanted: Sequence[str]) -> list[str]:
    """Those of ``wanted`` that every corpus of every control has a row for."""
    found: dict[str, set[str]] = {}
    for row in _control_rows(manifest, root):
        found.setdefault(row["corpus"], set()).add(row["query_class"])
    return [name for name in wanted if found and all(name in known for known in found.values())]


def cards(manifest: Mapping[str, Any], root: Path) -> list[dict[str, Any]]:
    """corpus, tier and judged_by of every corpus that a control was asked over."""
    names = ("corpus", "tier", "judged_by")
    found = {row["corpus"]: {name: row[name] for name in names} for row in _control_rows(manifest, root)}
    return list(found.values())


def _control_rows(manifest: Mapping[str, Any], root: Path) -> Iterator[Mapping[str, Any]]:
    for family in manifest["families"]:
        for document in _documents(root, family["control"]):
            yield from document["rows"]


def _pair(manifest: Mapping[str, Any], root: Path) -> Pair:
    named = manifest.get("corpora") or list(dict.fromkeys(row["corpus"] for row in _control_rows(manifest, root)))
    if len(named) != 2:
        _refuse("agreement is asked of two corpora", root, named, "two; name them as `corpora` in the manifest")
    return named[0], named[1]


def _arms(manifest: Mapping[str, Any], root: Path, pair: Pair, query_class: str, measure: str) -> Iterator[Arm]:
    for family in manifest["families"]:
        control = family["control"]
        levels = _levels(root, control, pair, query_class, measure)
        before = _documents(root, control)
        for entry in family["arms"]:
            _require_alike(_documents(root, entry), before, entry["name"], manifest.get("hashed", False))
            values = _levels(root, entry, pair, query_class, measure)
            deltas = {corpus: agreement.delta(values[corpus], levels[corpus]) for corpus in pair}
            yield Arm(entry["name"], family["name"], control["name"], entry["axis"], deltas, levels)


def _levels(root: Path, entry: Mapping[str, Any], pair: Pair, query_class: str, measure: str) -> dict[str, float]:
    """The measure of each corpus of ``pair`` in the one row that an arm has for it and the class."""
    rows = [row for document in _documents(root, entry) for row in document["rows"]]
    found = {row["corpus"]: row["metrics"] for row in rows if row["query_class"] == query_class}
    for corpus in pair:
        if measure not in found.get(corpus, {}):
            known = sorted({f"{row['corpus']} {row['query_class']}" for row in rows})
            _refuse("an arm has no such row", entry["name"], f"{corpus} {query_class} {measure}", known)
    return {corpus: found[corpus][measure] for corpus in pair}


def _documents(root: Path, entry: Mapping[str, Any]) -> list[Any]:
    runs = [entry["run"]] if isinstance(entry["run"], str) else entry["run"]
    paths = [root / run / "metrics.json" for run in runs]
    for path in paths:
        if not path.is_file():
            _refuse("an arm has not been scored", path, "no such file", "a metrics.json; --runs-root names its root")
    return [canon.read_json(path) for path in paths]


def _require_alike(ours: Sequence[Any], theirs: Sequence[Any], arm: str, hashed: bool) -> None:
    """Refuse a delta over other queries, judgements, indexes or engines; documents of others may carry no hashes, our
    own must."""
    for mine, control in zip(ours, theirs, strict=True):
        for name in compare.HASHES:
            values = [document.get("hashes", {}).get(name) for document in (mine, control)]
            if hashed and None in values:
                _refuse(f"an arm or its control does not carry the hash {name}", arm, values, "a hash of each")
            if values[0] != values[1]:
                _refuse(f"an arm and its control differ in {name}", arm, *values)


def _refuse(what: str, where: object, observed: object, expected: object) -> NoReturn:
    mend = "./run lossmap agreement --emit-manifest, mend it, then --manifest FILE"
    raise LossmapError(what, where=where, observed=observed, expected=expected, next_command=mend, exit_code=2)
