"""An arm's ranking from frozen legs: no engine is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lossmap import fuse
from lossmap.errors import LossmapError
from lossmap.fuse import ABSENT, Array
from lossmap.search import pin
from lossmap.search.legs import Leg

Ranking = list[tuple[int, float]]
"""(chunk row, score), best first."""


def rank(arm: Mapping[str, Any], legs: Mapping[str, Leg]) -> dict[str, Ranking]:
    """Query id to the arm's first ``size`` rows; equal scores in row order, whatever the engine did."""
    chosen = [legs[name] for name in arm["legs"]]
    _refuse_strangers(chosen)
    whole = slice(0, len(chosen[0].query_ids))
    items, scores = (_fused if arm["mode"] == "hybrid" else _single)(arm, chosen, whole)
    rows, values = _best(items, scores, arm["size"])
    lists = (_listed(*row) for row in zip(rows.tolist(), values.tolist(), strict=True))
    return dict(zip(chosen[0].query_ids, lists, strict=True))


def _listed(rows: Sequence[int], scores: Sequence[float]) -> Ranking:
    return [(row, score) for row, score in zip(rows, scores, strict=True) if row != ABSENT]


def _best(items: Array, scores: Array, size: int) -> tuple[Array, Array]:
    """The first ``size`` of each query by descending score; ``items`` ascend, so equal scores stay in row order."""
    order = np.argsort(np.where(items == ABSENT, np.inf, -scores), axis=1, kind="stable")[:, :size]
    return np.take_along_axis(items, order, axis=1), np.take_along_axis(scores, order, axis=1)


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


def _cut(leg: Leg, depth: int, queries: slice) -> tuple[Array, Array]:
    """(rows, scores) of the first ``depth`` hits."""
    if leg.query_ids:
        leg.top(0, depth)  # refuses a depth beyond the one that was frozen
    return leg.rows[queries, :depth], leg.scores[queries, :depth]


def _single(arm: Mapping[str, Any], legs: list[Leg], queries: slice) -> tuple[Array, Array]:
    (leg,) = legs
    rows, scores = _cut(leg, arm["size"], queries)
    items, (column,) = fuse.aligned([rows], [scores])
    return items, column


def _fused(arm: Mapping[str, Any], legs: list[Leg], queries: slice) -> tuple[Array, Array]:
    """Items (q, m), ascending, and their fused scores in the engine's arithmetic."""
    cut = [_cut(leg, arm.get("leg_depth", arm["size"]), queries) for leg in legs]
    shares = [pin.shares(arm, scores, rows != ABSENT) for rows, scores in cut]
    items, columns = fuse.aligned([rows for rows, _ in cut], shares)
    return items, pin.combine(arm, columns)


def fused(arm: Mapping[str, Any], legs: list[Leg], i: int) -> dict[int, float]:
    """Row to fused score for query ``i``, in the engine's arithmetic; keys in order of first appearance."""
    items, scores = _fused(arm, legs, slice(i, i + 1))
    score = dict(zip(items[0].tolist(), scores[0].tolist(), strict=True))
    depth = arm.get("leg_depth", arm["size"])
    return {row: score[row] for row in fuse.first_seen([leg.top(i, depth) for leg in legs])}
