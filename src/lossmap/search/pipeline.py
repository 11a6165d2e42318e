"""An arm's ranking from frozen legs: no engine is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lossmap import fuse
from lossmap.search import pin
from lossmap.search.legs import Leg

Ranking = list[tuple[int, float]]
"""(chunk row, score), best first."""


def rank(arm: Mapping[str, Any], legs: Mapping[str, Leg]) -> dict[str, Ranking]:
    """Query id to the arm's first ``size`` rows; equal scores in row order, whatever the engine did."""
    chosen = [legs[name] for name in arm["legs"]]
    for leg in chosen[1:]:
        assert leg.query_ids == chosen[0].query_ids, "legs of one arm hold different queries"
    one = _fused if arm["mode"] == "hybrid" else _single
    return {query_id: one(arm, chosen, i) for i, query_id in enumerate(chosen[0].query_ids)}


def _single(arm: Mapping[str, Any], legs: list[Leg], i: int) -> Ranking:
    (leg,) = legs
    rows = leg.top(i, arm["size"])
    scores = dict(zip(rows, leg.scores[i].tolist(), strict=False))
    return [(row, scores[row]) for row in fuse.ranked(scores, key=int)]


def fused(arm: Mapping[str, Any], legs: list[Leg], i: int) -> dict[int, float]:
    """Row to fused score for query ``i``, in the engine's arithmetic."""
    return pin.rrf([leg.top(i, arm["leg_depth"]) for leg in legs], arm["rank_constant"])


def _fused(arm: Mapping[str, Any], legs: list[Leg], i: int) -> Ranking:
    scores = fused(arm, legs, i)
    return [(row, scores[row]) for row in fuse.ranked(scores, key=int)[: arm["size"]]]
