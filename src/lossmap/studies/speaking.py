"""What did X say about Y: a filter on the speaker that a question names, on against off, over those questions alone.

Over all questions the effect would be diluted by those that name nobody, which no filter touches. The filter costs what
others said about the matter: the share of the judged chunks that the named one spoke bounds what it can find at all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lossmap import canon, layout
from lossmap.errors import LossmapError
from lossmap.index import table
from lossmap.judge import intervals, measures, qrels
from lossmap.judge.measures import NAMES
from lossmap.judge.qrels import Qrels
from lossmap.layout import Layout
from lossmap.search import legs, speakers
from lossmap.studies import compare, judging, one_speaker, scores
from lossmap.studies.compare import Arm

ON = "-speaker"
"""Suffix of the arms whose legs are filtered."""
ARMS = ("bm25", "dense-exact", "rrf30-exact")
CLASS = "names-a-speaker"
RULE = (
    "a speaker of the index whose whole name stands in the question as it is written, the longest at each place; "
    "several named: what any of them said"
)


@dataclass(frozen=True)
class Asked:
    """The scored queries of one bench that name a speaker: whom, and their judgements. ``head``: corpus, tier and
    judged_by; ``scored``: all scored queries.
    """

    at: Layout
    head: Mapping[str, Any]
    named: Mapping[str, tuple[str, ...]]
    qrels: Qrels
    scored: int

    @property
    def meetings(self) -> list[str]:
        return [compare.meeting_of(query_id) for query_id in sorted(self.named)]


def study(at: Layout, stage: str) -> dict[str, Any]:
    """speaker.json: classes, rows, contrasts, reach of the filter, and that no chunk holds two speakers' words."""
    index = layout.load(at.scale, scores.chapter(at, stage)["speaker"])
    rows = table.load(index.index_folder)
    names, speaker_of = speakers.of(rows), [row.speaker for row in rows]
    by_document = dict(zip(table.doc_ids(rows), speaker_of, strict=True))
    benches = [layout.load(at.scale, f"{index.index}/{key}") for key in scores.chapter(at, stage)["corpora"]]
    asked = [_asked(stage, bench, names) for bench in benches]
    some = [one for one in asked if one.named]
    found = [_arms(at, stage, one, speaker_of) for one in some]
    return {
        "index": index.index,
        "query_class": CLASS,
        "rule": RULE,
        "speakers": len(names),
        "classes": [_class(one) for one in asked],
        "rows": [row for rows, _, _ in found for row in rows],
        "contrasts": [row for _, rows, _ in found for row in rows],
        "filtered": [row for _, _, rows in found for row in rows],
        "reach": [reach(one, by_document) for one in some],
        "one_speaker": one_speaker.check(index, rows),
        "intervals": intervals.card(),
    }


def _asked(stage: str, bench: Layout, names: Collection[str]) -> Asked:
    scored = compare.read_arm(scores.scored(bench, bench.bench, stage) / ARMS[0])
    corpus = judging.load(bench, bench.scored[0])
    graded = qrels.grade(corpus.coverage).qrels
    texts = {query.query_id: query.text for query in corpus.queries}
    found = {query_id: speakers.named(texts[query_id], names) for query_id in scored.query_ids}
    named = {query_id: who for query_id, who in found.items() if who}
    head = {"corpus": corpus.card["key"], "tier": corpus.card["tier"], "judged_by": corpus.card["judged_by"]}
    return Asked(bench, head, named, {query_id: graded[query_id] for query_id in sorted(named)}, len(found))


def _class(asked: Asked) -> dict[str, Any]:
    return {
        **asked.head,
        "query_class": CLASS,
        "scored": asked.scored,
        "queries": len(asked.named),
        "naming_several": sum(len(who) > 1 for who in asked.named.values()),
        "named": len({name for who in asked.named.values() for name in who}),
        "query_ids_sha256": canon.digest(sorted(asked.named)),
    }


def _arms(
    at: Layout, stage: str, asked: Asked, speaker_of: Sequence[str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of both sides of each arm, their contrasts, and what each filtered leg holds."""
    rows, contrasts, filtered = [], [], dict[str, dict[str, Any]]()
    for name in ARMS:
        folder = scores.scored(at, asked.at.bench, stage)
        on, off = compare.read_arm(folder / f"{name}{ON}"), compare.read_arm(folder / name)
        _require_paired(on, off)
        for arm, state in ((off, "off"), (on, "on")):
            head = {**asked.head, "arm": arm.name, "filter": state}
            rows.append({**head, **_measured(asked, "metrics", _values(arm, asked))})
        delta = _values(on, asked) - _values(off, asked)
        contrasts.append({**asked.head, "arm": on.name, "control": off.name, **_measured(asked, "deltas", delta)})
        for leg, sha256 in on.document["legs"].items():
            filtered.setdefault(leg, {**asked.head, **_filtered(asked, leg, sha256, speaker_of)})
    return rows, contrasts, list(filtered.values())


def _values(arm: Arm, asked: Asked) -> np.ndarray:
    """(Q, len(NAMES)) of the class, by sorted query id."""
    return arm.values[[query_id in asked.named for query_id in arm.query_ids]]


def _measured(asked: Asked, what: str, values: np.ndarray) -> dict[str, Any]:
    estimate = intervals.means_with_intervals(values, asked.meetings)
    return {
        "query_class": CLASS,
        "queries": estimate.query_count,
        "meetings": estimate.meeting_count,
        what: dict(zip(NAMES, estimate.mean.tolist())),
        "intervals": {name: estimate.interval(column) for column, name in enumerate(NAMES)},
    }


def _require_paired(on: Arm, off: Arm) -> None:
    """The filter is all that differs: same queries, judgements, index and engine."""
    differing = [name for name in compare.HASHES if on.document["hashes"][name] != off.document["hashes"][name]]
    if differing or on.query_ids != off.query_ids:
        raise LossmapError(
            "two arms differ in more than the filter",
            where=f"{on.folder} against {off.folder}",
            observed=", ".join(differing) or "other queries",
            expected="the same queries, judgements, index and engine",
            next_command="score both arms again",
            exit_code=2,
        )


def _filtered(asked: Asked, name: str, sha256: str, speaker_of: Sequence[str]) -> dict[str, Any]:
    """What a filtered leg holds for the class; raises where it was not scored as it stands or holds another's words."""
    path = asked.at.leg(name)
    if canon.file_sha256(path) != sha256:
        raise _unfiltered("a leg is not the one that was scored", path, canon.file_sha256(path), sha256)
    leg = legs.load(path)
    hits = {q: row[row >= 0].tolist() for q, row in zip(leg.query_ids, leg.rows, strict=True) if q in asked.named}
    if lost := asked.named.keys() - hits:
        raise _unfiltered("a filtered leg lacks a query of the class", path, min(lost), f"{len(asked.named)} queries")
    for query_id, found in hits.items():
        if others := {speaker_of[row] for row in found}.difference(asked.named[query_id]):
            raise _unfiltered(f"a filtered leg holds others' words for {query_id}", path, min(others),
                              ", ".join(asked.named[query_id]))  # fmt: skip
    counts = [len(found) for found in hits.values()]
    return {"leg": name, "queries": len(counts), "hits": sum(counts), "queries_without_hits": counts.count(0)}


def _unfiltered(what: str, where: object, observed: str, expected: str) -> LossmapError:
    mend = f"./run --forcerun freeze {where}"
    return LossmapError(what, where=where, observed=observed, expected=expected, next_command=mend, exit_code=3)


def reach(asked: Asked, speaker_of: Mapping[str, str]) -> dict[str, Any]:
    """How much of the gold the named speakers spoke: what a filter can reach, and the measures of a perfect ranking of
    that alone (``ceilings``) beside those of a perfect ranking of all gold.

    ``speaker_of``: document id to speaker. ``share`` is the mean over queries.
    """
    whole = {query_id: _ideal(docs) for query_id, docs in asked.qrels.items()}
    own = {q: [hit for hit in hits if speaker_of[hit[0]] in asked.named[q]] for q, hits in whole.items()}
    shares = np.array([len(own[q]) / len(whole[q]) for q in sorted(whole)])
    estimate = intervals.means_with_intervals(shares[:, None], asked.meetings)
    best = {name: measures.score(asked.qrels, run).values.mean(axis=0).tolist()
            for name, run in (("filtered", own), ("unfiltered", whole))}  # fmt: skip
    return {
        **asked.head,
        "query_class": CLASS,
        "queries": len(whole),
        "judged_chunks": sum(map(len, whole.values())),
        "by_the_named": sum(map(len, own.values())),
        "queries_out_of_reach": sum(not hits for hits in own.values()),
        "queries_wholly_in_reach": int((shares == 1.0).sum()),
        "share": float(estimate.mean[0]),
        "intervals": estimate.interval(0),
        "ceilings": {name: dict(zip(NAMES, values)) for name, values in best.items()},
    }


def _ideal(docs: Mapping[str, int]) -> list[tuple[str, float]]:
    return [(doc, float(grade)) for doc, grade in sorted(docs.items(), key=lambda item: (-item[1], item[0]))]
