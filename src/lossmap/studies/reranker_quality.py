"""What each re-ranker is worth before any arm uses it: one list re-ordered, judged before and after.

A trained one is shown on claims that it never saw, from the corpus that it was trained on (such rows say in_domain),
and on another corpus; a second-stage bi-encoder stands beside it. Only a model of the hub may be "not obtained": it is
then a record with its reason, and every other absence raises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lossmap import layout
from lossmap.encode import pairs, rerankers
from lossmap.encode.rerankers import Reranker
from lossmap.index import table, vectors
from lossmap.judge import evaluate, intervals, qrels
from lossmap.judge.evaluate import Evaluation
from lossmap.judge.measures import NAMES
from lossmap.layout import Layout
from lossmap.search import legs
from lossmap.studies import judging

LEG = "bm25"
HEAD = ("corpus", "tier", "judged_by")
Run = dict[str, list[tuple[str, float]]]


@dataclass(frozen=True)
class Lists:
    """The first rows of the leg for every query of a bench, as documents with the leg's scores, and as texts."""

    run: Run
    queries: Mapping[str, str]
    text_of: Mapping[str, str]

    def reordered(self, reranker: Reranker) -> Run:
        """The same documents under a re-ranker's scores; every list is scored whole, none has a tail."""
        asked = [(self.queries[q], self.text_of[doc]) for q, hits in self.run.items() for doc, _ in hits]
        scores, _ = pairs.pair_scores(reranker, asked)
        found = iter(scores.tolist())
        return {q: [(doc, next(found)) for doc, _ in hits] for q, hits in self.run.items()}


def study(at: Layout, _: str = "") -> dict[str, Any]:
    """reranker_quality.json, by the stanza ``quality`` of the scale (config.yaml)."""
    spec = at.config["scales"][at.scale]["quality"]
    sources = [_source(rerankers.get(name)) for name in spec["rerankers"]]
    used = [rerankers.get(source["name"]) for source in sources if source["obtained"]]
    rows: list[dict[str, Any]] = []
    deltas: list[dict[str, Any]] = []
    for bench, depth in spec["benches"].items():
        place = layout.load(at.scale, bench)
        held = lists(place, depth)
        for key in place.scored:
            _score(judging.load(place, key), held, used, rows, deltas)
    return {
        "leg": LEG,
        "depths": spec["benches"],
        "sources": sources,
        "interval_method": intervals.card(),
        "rows": rows,
        "deltas": deltas,
    }


def _source(of: Reranker) -> dict[str, Any]:
    found = rerankers.state(of, obtain=True)
    if found.obtained or of.kind != rerankers.HUB:
        # Whatever else is absent raises here, and says what brings it.
        return {"label": of.label, "obtained": True, "reason": "", **of.provenance()}
    return {
        **{"name": of.name, "kind": of.kind, "label": of.label, "licence": of.licence, "note": of.note},
        "obtained": False,
        "reason": found.reason,
    }


def lists(at: Layout, depth: int) -> Lists:
    """The lists of one bench to ``depth``."""
    rows, leg = table.load(at.index_folder), legs.of_index(at, LEG)
    ids = table.doc_ids(rows)
    run = {}
    for i, query_id in enumerate(leg.query_ids):
        found = leg.top(i, depth)
        run[query_id] = list(zip([ids[row] for row in found], leg.scores[i, : len(found)].tolist(), strict=True))
    queries = {query.query_id: query.text for query in vectors.queries(at)}
    return Lists(run, queries, dict(zip(ids, (row.text for row in rows), strict=True)))


def _score(
    corpus: judging.Corpus,
    held: Lists,
    used: Sequence[Reranker],
    rows: list[dict[str, Any]],
    deltas: list[dict[str, Any]],
) -> None:
    """The rows of one corpus, and each re-ranker against the leg and against those named after it.

    A corpus without judged queries, as one that could not be had, has none.
    """
    judged = qrels.grade(corpus.coverage).qrels
    if not judged:
        return
    runs: dict[str, Run] = {LEG: held.run, **{of.name: held.reordered(of) for of in used}}
    found: dict[str, Evaluation] = {}
    for name, run in runs.items():
        mine = {query_id: run[query_id] for query_id in judged if query_id in run}
        found[name] = evaluate.evaluate(corpus.card, corpus.queries, judged, mine, corpus.groups)
    trained_here = {of.name: in_domain(of, corpus.card["key"]) for of in used}
    for name, evaluation in found.items():
        label = LEG if name == LEG else rerankers.get(name).label
        head = {"reranker": name, "label": label, "in_domain": trained_here.get(name, False)}
        rows.append({**head, **evaluation.rows[-1]})
    order = [*(of.name for of in used), LEG]
    for place, name in enumerate(order[:-1]):
        for control in order[place + 1 :]:
            head = {"reranker": name, "control": control, "in_domain": trained_here[name]}
            deltas.append({**head, **_delta(found[name], found[control], corpus.groups)})


def in_domain(of: Reranker, key: str) -> bool:
    """Whether a re-ranker was trained on the corpus of ``key``, be it on another of its sets."""
    recipe = of.stanza.get("made_by", of.stanza)
    return "data" in recipe and recipe["data"]["corpus"].partition(".")[0] == key.partition(".")[0]


def _delta(one: Evaluation, other: Evaluation, groups: Mapping[str, str]) -> dict[str, Any]:
    head, scored = one.rows[-1], one.per_query
    estimate = intervals.paired(scored.values, other.per_query.values, [groups[q] for q in scored.query_ids])
    return {
        **{name: head[name] for name in HEAD},
        "queries": estimate.query_count,
        "meetings": estimate.meeting_count,
        "deltas": dict(zip(NAMES, np.asarray(estimate.mean).tolist(), strict=True)),
        "intervals": {name: estimate.interval(column) for column, name in enumerate(NAMES)},
    }
