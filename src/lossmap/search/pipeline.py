"""An arm's ranking from frozen legs: no engine is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lossmap import fuse
from lossmap.errors import LossmapError
from lossmap.search import pin
from lossmap.search.legs import Leg

Ranking = list[tuple[int, float]]
"""(chunk row, score), best first."""


def rank(arm: Mapping[str, Any], legs: Mapping[str, Leg]) -> dict[str, Ranking]:
    """Query id to the arm's first ``size`` rows; equal scores in row order, whatever the engine did."""
    chosen = [legs[name] for name in arm["legs"]]
    _refuse_strangers(chosen)
    one = _fused if arm["mode"] == "hybrid" else _single
    return {query_id: one(arm, chosen, i) for i, query_id in enumerate(chosen[0].query_ids)}


def _refuse_strangers(legs: list[Leg]) -> None:
    """Legs of one arm answer the same queries over the same index."""
    for leg in legs[1:]:
        if leg.query_ids != legs[0].query_ids or leg.meta["index_sha256"] != legs[0].meta["index_sha256"]:
            raise LossmapError(
                "two legs of one arm do not belong together",
                where=f"{legs[0].meta['leg']} and {leg.meta['leg']}",
                observed=f"{len(legs[0].query_ids)} and {len(leg.query_ids)} queries, indexes"
                f" {legs[0].meta['index_sha256'][:10]} and {leg.meta['index_sha256'][:10]}",
                next_command="freeze both again: ./run lossmap freeze LEG",
                exit_code=3,
            )


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
