"""What the composition of a corpus does to a score: BM25 over whole meetings, one gold meeting a query.

A series is one group playing the scenario; its meetings are its sessions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lossmap import transcript
from lossmap.judge import intervals
from lossmap.studies import growth, lexical
from lossmap.studies.lexical import Floats, Places
from lossmap.studies.whole import NAMES, SCENARIO, Material, Row, groups, load, mean, measures, scored, series

SCHEMA_VERSION = 1
SESSIONS = "abcd"


def study(corpus_folder: Path) -> Row:
    """The document composition.json: numbers and ids, no text of the corpus."""
    material = load(Path(corpus_folder))
    return {
        "schema_version": SCHEMA_VERSION,
        **material.head,
        "meetings": len(material.domain),
        "queries": len(material.gold),
        "bm25": {**lexical.card(), "markers": "dropped", "speakers": "not indexed", "close": lexical.CLOSE},
        "ties": "equal scores rank by meeting id; a gold meeting without a term of the query is not retrieved",
        "intervals": intervals.card(),
        "domains": domains(material),
        "deduplication": deduplication(material),
        "curves": growth.curves(material),
        "repeated": repeated(material),
        "defects": defects(material, transcript.read_card(Path(corpus_folder)).get("defects", [])),
    }


def domains(material: Material) -> list[Row]:
    """Per domain: its queries over one pooled index, then over an index of that domain alone.

    ``competitors`` counts the meetings that reach ``lexical.CLOSE`` of gold's score, ``competitors_own`` those of them
    in the query's domain; ``*_matched`` has none for a query whose gold shares no word with it, as its score is zero.
    """
    rows = []
    for name, members in groups(material):
        asked = material.about(members)
        indexes = {"pooled": material.every} if name == "all" else {"pooled": material.every, "own": members}
        for index, held in indexes.items():
            rows.append({**material.head, "domain": name, "index": index, "documents": len(held),
                         **_domain(material, held, asked)})  # fmt: skip
    return rows


def _domain(material: Material, held: Places, asked: Places) -> Row:
    found, gold = material.found(held, asked)
    ranks = lexical.rank(found, gold)
    close = lexical.competitors(found, gold)
    own = close & (material.domain[held][None, :] == material.domain[material.gold[asked]][:, None])
    matched = found[np.arange(len(asked)), gold] > 0
    return {
        **scored(measures(ranks, len(held)), material.meetings(asked)),
        "median_rank": float(np.median(ranks)) if len(ranks) else None,
        "unmatched": int((~matched).sum()),
        "competitors": mean(close.sum(axis=1)),
        "competitors_own": mean(own.sum(axis=1)),
        "competitors_matched": mean(close.sum(axis=1) * matched),
        "competitors_own_matched": mean(own.sum(axis=1) * matched),
    }


def _keepers(material: Material) -> dict[str, Callable[[list[int]], list[int]]]:
    """Which sessions of a series stay: by order, or one letter (a series without it loses all its meetings)."""

    def letter(wanted: str) -> Callable[[list[int]], list[int]]:
        return lambda sessions: [s for s in sessions if material.collection.doc_ids[s].endswith(wanted)]

    return {"first": lambda s: s[:1], **{name: letter(name) for name in SESSIONS}, "last": lambda s: s[-1:]}


def kept(material: Material, keep: Callable[[list[int]], list[int]]) -> Places:
    """Meetings outside the scenario and the sessions that ``keep`` leaves of each series, ascending."""
    sessions = [place for members in series(material).values() for place in keep(members)]
    return np.array(sorted({*np.flatnonzero(material.domain != SCENARIO).tolist(), *sessions}), int)


def deduplication(material: Material) -> Row:
    """One session a series: what of the lift is another mix of queries, and what a smaller index.

    ``before``: the queries that stay, over every meeting; ``after``: the same queries over the meetings that stay.
    query_mix = before - all; index_effect = after - before. ``reweighted``: ``after`` with every domain at its share
    of all queries.
    """
    full = material.values(material.every, np.arange(len(material.gold)))[:, 0]
    whole = mean(full)
    rules, rows = [], []
    for rule, keep in _keepers(material).items():
        members = kept(material, keep)
        asked = material.about(members)
        after, before = material.values(members, asked)[:, 0], full[asked]
        parts = {name: np.isin(material.gold[asked], places) for name, places in groups(material)}
        parts["others"] = ~parts.get(SCENARIO, np.zeros(len(asked), bool))
        made = [_split(material, rule, name, asked[part], before[part], after[part]) for name, part in parts.items()]
        rows += made
        total = next(row for row in made if row["domain"] == "all")
        rules.append({
            **total, "documents": len(members), "removed": len(material.domain) - len(members), "all": whole,
            "query_mix": _minus(total["before"], whole), "lift": _minus(total["after"], whole),
            "reweighted": _reweighted(material, made),
        })  # fmt: skip
    return {"series": len(series(material)), "rules": rules, "rows": rows}


def _split(material: Material, rule: str, domain: str, asked: Places, before: Floats, after: Floats) -> Row:
    names = ("before", "after", "index_effect")
    values = np.column_stack([before, after, after - before])
    return {**material.head, "rule": rule, "domain": domain, **scored(values, material.meetings(asked), names)}


def _minus(value: float | None, other: float | None) -> float | None:
    return None if value is None or other is None else value - other


def _reweighted(material: Material, rows: Iterable[Row]) -> float | None:
    after = {row["domain"]: row["after"] for row in rows}
    parts = [(len(material.about(m)), after[name]) for name, m in groups(material) if name != "all"]
    asked = [(weight, value) for weight, value in parts if weight]
    if not asked or any(value is None for _, value in asked):
        return None
    return sum(weight * value for weight, value in asked) / sum(weight for weight, _ in asked)


def repeated(material: Material) -> Row:
    """Query strings of several meetings: ``strict`` wants the query's own meeting, ``credit`` any gold of the string.

    ``false_negatives``: queries where a meeting that is gold for the same string ranks first, or among the first ten,
    and counts as wrong, while the own meeting does not.
    """
    golds: dict[str, set[int]] = defaultdict(set)
    for text, place in zip(material.texts, material.gold):
        golds[text].add(int(place))
    credited = [sorted(golds[text]) for text in material.texts]
    chosen = np.array([q for q, places in enumerate(credited) if len(places) > 1], int)
    strict, credit = _both(material, np.arange(len(material.gold)), credited)
    shared = [len(places) for places in golds.values() if len(places) > 1]
    gained = {
        name: int((credit[:, NAMES.index(name)] > strict[:, NAMES.index(name)]).sum()) for name in ("R@1", "R@10")
    }
    rows = [
        {**material.head, "queries_of": name, "credit": how, **scored(values[asked], material.meetings(asked))}
        for name, asked in (("repeated strings", chosen), ("all", np.arange(len(material.gold))))
        for how, values in (("own meeting", strict), ("any meeting of the string", credit))
    ]
    return {
        "strings": len(shared),
        "pairs": sum(shared),
        "queries": len(chosen),
        "false_negatives": gained,
        "rows": rows,
    }


def _both(material: Material, asked: Places, credited: Sequence[Sequence[int]]) -> tuple[Floats, Floats]:
    """Measures over the pooled index with credit for the own gold meeting, and for the best of ``credited``."""
    found, gold = material.found(material.every, asked)
    best = [max(places, key=lambda p: (row[p], -p)) for row, places in zip(found, credited)]
    size = len(material.domain)
    return measures(lexical.rank(found, gold), size), measures(lexical.rank(found, np.array(best, int)), size)


def defects(material: Material, listed: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Queries about the meetings of every known upstream defect; credit is for any of the meetings it names."""
    place = {doc_id: at for at, doc_id in enumerate(material.collection.doc_ids)}
    rows = []
    for defect in listed:
        members = sorted(place[name] for name in defect["meetings"])
        asked = material.about(np.array(members, int))
        if not len(asked):
            continue
        strict, credit = _both(material, asked, [members] * len(asked))
        ranks = lexical.rank(*material.found(material.every, asked))
        rows.append({**material.head, "meetings": list(defect["meetings"]), "rule": defect.get("rule"),
                     "queries": len(asked), "median_rank": float(np.median(ranks)), "R@1": mean(strict[:, 0]),
                     "R@1_credit": mean(credit[:, 0])})  # fmt: skip
    return rows
