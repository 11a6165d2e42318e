"""An arm's lists stage by stage: retrieve, pool, rerank, diversity, final, those of them that its stanza has."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

from lossmap.errors import LossmapError
from lossmap.search import pipeline
from lossmap.search.diversity import diversity_sample
from lossmap.search.legs import Leg
from lossmap.search.rerank import reordered

Lists = dict[str, list[int]]
"""Query id to chunk rows, best first; the order is the ranking, and no score goes with it."""

KEYS = ("pool", "rerank", "per_file", "final")
RETRIEVE, POOL, RERANK, DIVERSITY, FINAL = "retrieve", "pool", "rerank", "diversity", "final"


def of(arm: Mapping[str, Any]) -> tuple[str, ...]:
    """The stage keys of a stanza; none where the fused list is the arm's own."""
    return tuple(key for key in KEYS if key in arm)


def rank(
    arm: Mapping[str, Any], legs: Mapping[str, Leg], reranker: Leg | None, file_of: Callable[[int], Hashable]
) -> list[tuple[str, Lists]]:
    """The list that each stage hands on, in their order.

    ``reranker``: frozen scores of ``arm["rerank"]["by"]``, None for an arm without one. Stage keys: ``pool`` and
    ``final`` rows, ``rerank`` {by, pairs}, ``per_file``. The diversity stage orders the whole list, so that the cut
    after it is seen apart from it. Raises where a pair to re-rank has no score.
    """
    fused = pipeline.rank(arm, legs)
    stages = [(RETRIEVE, {query_id: [row for row, _ in hits] for query_id, hits in fused.items()})]
    if "pool" in arm:
        stages.append((POOL, _cut(stages[-1][1], arm["pool"])))
    if "rerank" in arm:
        stages.append((RERANK, _reranked(stages[-1][1], arm["rerank"], reranker)))
    if "per_file" in arm:
        before = stages[-1][1]
        taken = {query_id: diversity_sample(rows, file_of, arm["per_file"]) for query_id, rows in before.items()}
        stages.append((DIVERSITY, taken))
    if "final" in arm:
        stages.append((FINAL, _cut(stages[-1][1], arm["final"])))
    return stages


def _cut(lists: Lists, size: int) -> Lists:
    return {query_id: rows[:size] for query_id, rows in lists.items()}


def _reranked(lists: Lists, spec: Mapping[str, Any], reranker: Leg | None) -> Lists:
    if reranker is None:
        raise LossmapError(
            "an arm re-ranks and was given no scores",
            observed=dict(spec),
            expected=f"the frozen leg {spec['by']}",
            next_command="./run results/stage5 --forcerun rescore",
        )
    scores = dict(scored(reranker))
    return {
        query_id: reordered(rows, scores.get(query_id, {}), spec["pairs"], f"{reranker.meta.get('leg')}, {query_id}")
        for query_id, rows in lists.items()
    }


def scored(leg: Leg) -> Iterator[tuple[str, dict[int, float]]]:
    """Every query of a leg with the score of each of its rows."""
    for query_id, rows, scores in zip(leg.query_ids, leg.rows, leg.scores, strict=True):
        held = rows >= 0
        yield query_id, dict(zip(rows[held].tolist(), scores[held].tolist(), strict=True))
