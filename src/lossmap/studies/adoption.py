"""Which arms a gate would adopt, over two corpora and over all of them, and the rule that rejected each of the others.

The gate is a stanza of gates.yaml. Its strict verdict is the seed's: any rise of what must rise, no fall of any measure
of a protected class. The other asks the same of intervals that resample meetings.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lossmap import layout
from lossmap.judge import intervals
from lossmap.judge.agreement import Arm
from lossmap.judge.measures import NAMES
from lossmap.layout import Layout
from lossmap.search import plan
from lossmap.studies import gate, paired, printed
from lossmap.studies.stacks import Family, Stack

GATE = "stage5"
PAIR, EVERY = "pair", "every"
RULES = {
    "up": "{measure} of {query_class} must rise on every corpus",
    "protected": "no measure of {query_class} may fall on any corpus",
}
VERDICTS = tuple(gate.RISES)
NO_PAIR = "the corpora of the family's first two benches were not both obtained: over the pair nothing is adopted"


def study(at: Layout, chapter: str) -> dict[str, Any]:
    """adoption.json: every arm of the gate's families, its verdicts over ``pair`` and ``every``, and what is adopted.

    ``pair``: the corpora of the first two benches of a family, as the seed had two; ``every``: all benches of the
    family in any chapter. A family whose corpora could not be had has no candidate; where one of the pair could not,
    ``pair`` accepts nothing and the candidate's ``note`` says so. ``tally``: of how many arms
    each side of the gate holds, one row a family, scope and verdict.
    """
    spec = layout.stanza(at, "gates.yaml", GATE)
    candidates = [row for name in spec["families"] for row in _family(at, name, spec)]
    return {
        "gate": GATE,
        **spec,
        "intervals": intervals.card(),
        "not_obtained": _absent(at, spec["families"]),
        "candidates": candidates,
        "tally": [_tally(candidates, *key) for key in itertools.product(spec["families"], (PAIR, EVERY), VERDICTS)],
        "adopted": {scope: {v: _adopted(candidates, scope, v) for v in VERDICTS} for scope in (PAIR, EVERY)},
    }


def benches(at: Layout, name: str) -> list[str]:
    """Where a family is asked, the benches of its own chapter first."""
    return list(dict.fromkeys(bench for chapter in plan.CHAPTERS for bench in plan.benches(at, chapter, name)))


def _absent(at: Layout, families: Iterable[str]) -> dict[str, list[str]]:
    found = {name: benches(at, name) for name in families}
    return {
        name: missing
        for name, asked in found.items()
        if asked and (missing := paired.not_obtained(at, paired.family(at, name, asked)))
    }


def _tally(candidates: Iterable[Mapping[str, Any]], family: str, scope: str, verdict: str) -> dict[str, Any]:
    found = [row["verdicts"][scope][verdict] for row in candidates if row["family"] == family]
    sides = {name: sum(each[name] for each in found) for name in ("up", "protected", "accepted")}
    return {"family": family, "scope": scope, "verdict": verdict, "arms": len(found), **sides}


def _adopted(candidates: Iterable[Mapping[str, Any]], scope: str, verdict: str) -> list[dict[str, str]]:
    return _named(row for row in candidates if row["verdicts"][scope][verdict]["accepted"])


def _family(at: Layout, name: str, spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    asked = benches(at, name)
    if not asked:
        return []
    paired.require_unseen(at, name, asked)
    found = paired.family(at, name, asked)
    corpora = paired.corpora(at, found)
    cards = [paired.card(corpus) for corpus in corpora]
    two = paired.pair(corpora, plan.benches(at, plan.STAGE, name))
    rows = contrasts(found, corpora, [spec["up"]["class"], *spec["protected"]])
    scopes = {PAIR: two, EVERY: [card["corpus"] for card in cards]}
    return [_candidate(found, arm, spec, rows[arm], scopes) for arm in found.arms] if corpora else []


def contrasts(asked: Family, corpora: Sequence[Stack], classes: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """Of each arm its rows by corpus and class: deltas of every measure, and their intervals over meetings."""
    rows: dict[str, list[dict[str, Any]]] = {arm: [] for arm in asked.arms}
    for corpus in corpora:
        for query_class in dict.fromkeys(classes):
            drawn = paired.drawn(corpus, query_class, NAMES)
            if drawn is None:
                continue
            head = {"query_class": query_class, "queries": drawn.queries, "meetings": drawn.meetings}
            for place, arm in enumerate(asked.arms):
                columns = {name: place * len(NAMES) + column for column, name in enumerate(NAMES)}
                deltas = {name: float(drawn.mean[column]) for name, column in columns.items()}
                ends = {name: {"meetings": drawn.interval(column)} for name, column in columns.items()}
                rows[arm].append({**paired.card(corpus), **head, "deltas": deltas, "intervals": ends})
    return rows


def _candidate(
    asked: Family, arm: str, spec: Mapping[str, Any], rows: Sequence[gate.Row], scopes: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    found = {scope: _decided(gate.decisions(spec, rows, keys)) for scope, keys in scopes.items()}
    every = found[EVERY]
    return {
        "family": asked.name,
        "arm": arm,
        "control": asked.control,
        "axis": asked.arms[arm],
        "verdicts": {scope: {v: verdict(decided, v) for v in VERDICTS} for scope, decided in found.items()},
        "up": [row for row in every if row["role"] == "up"],
        "note": None if scopes[PAIR] else NO_PAIR,
        "rejected_by": [
            {"verdict": v, "in_pair": row["corpus"] in scopes[PAIR], **row}
            for v in VERDICTS
            for row in rejections(every, v)
        ],
    }


def _decided(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "counted"} for row in rows if row["counted"]]


def verdict(decided: Sequence[Mapping[str, Any]], name: str) -> dict[str, bool]:
    """Both sides of the gate; a side without a decision does not hold, since a gate without evidence adopts nothing."""
    sides = {
        role: bool(of_role := [row for row in decided if row["role"] == role]) and all(row[name] for row in of_role)
        for role in ("up", "protected")
    }
    return {**sides, "accepted": all(sides.values())}


def rejections(decided: Sequence[Mapping[str, Any]], name: str) -> list[dict[str, Any]]:
    """What rejected an arm under one verdict: a row a rule, corpus and class, with the measures that broke it.

    ``measure``, ``delta`` and ``interval`` are those of the lowest delta among them. The seed's order: what must rise
    first, then what must not fall.
    """
    broken: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in decided:
        if not row[name]:
            broken.setdefault((row["role"], row["corpus"], row["query_class"]), []).append(row)
    return [_rejection(rows) for _, rows in sorted(broken.items(), key=lambda item: item[0][0] != "up")]


def _rejection(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    worst = min(rows, key=lambda row: (row["delta"], row["measure"]))
    names = ("corpus", "tier", "judged_by", "query_class", "role", "measure", "delta", "interval")
    said = {name: worst[name] for name in names if name in worst}
    return {**said, "measures": [row["measure"] for row in rows], "rule": RULES[worst["role"]].format(**worst)}


# The seed's printed arms. Beside nDCG@10 it names two measures of one arm. What it does not print cannot be held
# against the rule, and no arm is adopted on evidence that is not there.
BESIDE = {
    ("pool", "pool-12", "synthetic"): {
        "nDCG@5": "000.stage5.rejected.pool-12.synthetic_lookup_ndcg5",
        "RR": "000.stage5.rejected.pool-12.synthetic_lookup_rr",
    }
}
CITED = {"qmsum": {"tier": "A", "judged_by": "human"}, "synthetic": {"tier": "A", "judged_by": "constructed"}}
LOOKUP = "lookup"


def seed(at: Layout) -> dict[str, Any]:
    """The strict rule on the printed arms: what rejected each, and what passes.

    ``undecided`` names arms that no printed number rejects, and of which the rule asks more than is printed:
    ``unprinted`` holds, for each arm and corpus, the protected measures without a printed delta.
    """
    book, spec = printed.of(at), layout.stanza(at, "gates.yaml", GATE)
    known = {c: {(a.family, a.name): a for a in printed.arms(book, c)} for c in ("all", LOOKUP)}
    candidates = []
    for family, arm, axis in printed.names(book):
        asked = [(c, arms[family, arm]) for c, arms in known.items() if (family, arm) in arms]
        rows = [row for query_class, found in asked for row in _printed_rows(book, query_class, found)]
        head = {"family": family, "arm": arm, "control": printed.CONTROLS[family], "axis": axis}
        candidates.append({**head, **_strictly(spec, rows)})
    return {
        "gate": GATE,
        **spec,
        "candidates": candidates,
        "adopted": _named(row for row in candidates if row["accepted"]),
        "undecided": _named(row for row in candidates if not row["rejected_by"] and row["unprinted"]),
    }


def _named(candidates: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    return [{name: row[name] for name in ("family", "arm", "control")} for row in candidates]


def _printed_rows(book: Mapping[str, str], query_class: str, arm: Arm) -> list[dict[str, Any]]:
    out = []
    for corpus, delta in arm.deltas.items():
        beside = BESIDE.get((arm.family, arm.name, corpus), {}) if query_class == LOOKUP else {}
        deltas = {"nDCG@10": delta, **{name: printed.number(book[key]) for name, key in beside.items()}}
        out.append({"corpus": corpus, **CITED[corpus], "query_class": query_class, "deltas": deltas})
    return out


def _strictly(spec: Mapping[str, Any], rows: Sequence[gate.Row]) -> dict[str, Any]:
    decided = _decided(gate.decisions(spec, rows, printed.PAIR))
    missing = {corpus: lost for corpus in printed.PAIR if (lost := _unprinted(decided, corpus))}
    accepted = verdict(decided, "strict")["accepted"] and not missing
    return {"accepted": accepted, "rejected_by": rejections(decided, "strict"), "unprinted": missing}


def _unprinted(decided: Iterable[Mapping[str, Any]], corpus: str) -> list[str]:
    """The measures of lookup on a corpus that the rule protects and the document does not print."""
    seen = {row["measure"] for row in decided if (row["role"], row["corpus"]) == ("protected", corpus)}
    return [name for name in NAMES if name not in seen]
