"""Fusion of ranked lists, for many queries at a time: no engine, no corpus.

A leg is an array (q, depth) of items, best first, each at most once, ABSENT after the last hit; its scores have the
same shape. Every formula works in the precision of the scores it is given, and sums one by one in list order, so that
an engine's own arithmetic is a matter of the dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

Item = TypeVar("Item", bound=Hashable)
Array = np.ndarray[Any, np.dtype[Any]]
Combination = Callable[[Sequence[Array], Sequence[Any]], Array]
"""(shares of each leg, weight of each leg) to fused scores; a share of 0 means that the leg lacks the item."""
Terms = Callable[[int, int], Array]
"""(rank constant, depth) to the share of each rank."""

ABSENT = -1
LOWEST = 0.001
"""What the least of a list keeps after normalisation, so that a hit is told from a miss."""


def reciprocal(rank_constant: int, depth: int) -> Array:
    """1 / (K + r) for r from 1 to ``depth`` (Cormack, Clarke and Buettcher 2009)."""
    return np.asarray(1.0 / (rank_constant + np.arange(1, depth + 1)))


def min_max(scores: Array, held: Array, lowest: float = LOWEST) -> Array:
    """(s - min) / (max - min) over the hits ``held``; the least gets ``lowest``, equal scores all get 1; a miss 0."""
    least = np.where(held, scores, np.inf).min(axis=1, keepdims=True, initial=np.inf).astype(scores.dtype)
    most = np.where(held, scores, -np.inf).max(axis=1, keepdims=True, initial=-np.inf).astype(scores.dtype)
    spread = np.where(most > least, most - least, 1).astype(scores.dtype)
    value = (scores - np.where(np.isinf(least), 0, least).astype(scores.dtype)) / spread
    value = np.where(most > least, np.where(value == 0, scores.dtype.type(lowest), value), scores.dtype.type(1))
    return np.where(held, value, scores.dtype.type(0))


def l2(scores: Array, held: Array) -> Array:
    """s / sqrt(sum of s^2) over the hits ``held``; 0 for a miss, and for every hit of a list of zeros."""
    norm = np.sqrt(_sum(np.where(held, scores * scores, scores.dtype.type(0))))
    return np.where(held, scores, scores.dtype.type(0)) / np.where(norm == 0, scores.dtype.type(1), norm)


def moments(scores: Array, held: Array) -> tuple[Array, Array]:
    """Mean and sample standard deviation (n - 1) of the hits ``held``, (q, 1) each; in double, then as ``scores``.

    The mean is corrected by the mean of its residuals, and so is the variance (Chan, Golub and LeVeque 1983).
    """
    wide, count = scores.astype(np.float64), np.maximum(held.sum(axis=1, keepdims=True), 1)
    rough = _sum(np.where(held, wide, 0.0)) / count
    mean = rough + _sum(np.where(held, wide - rough, 0.0)) / count
    off = np.where(held, wide - mean, 0.0)
    variance = (_sum(off * off) - _sum(off) ** 2 / count) / np.maximum(count - 1, 1)
    deviation = np.where(count > 1, np.sqrt(np.maximum(variance, 0.0)), 0.0)
    return mean.astype(scores.dtype), deviation.astype(scores.dtype)


def z_score(scores: Array, held: Array, lowest: float = LOWEST) -> Array:
    """(s - mean) / sample deviation over the hits ``held``; what is not above 0 gets ``lowest``; a miss 0."""
    mean, deviation = moments(scores, held)
    value = (scores - mean) / np.where(deviation == 0, scores.dtype.type(1), deviation)
    return np.where(held, np.where(value <= 0, scores.dtype.type(lowest), value), scores.dtype.type(0))


def weighted_sum(shares: Sequence[Array], weights: Sequence[Any]) -> Array:
    """Sum of w s, as reciprocal rank fusion has it: a leg that lacks the item adds nothing."""
    return _total([weight * share for weight, share in zip(weights, shares, strict=True)])


def arithmetic_mean(shares: Sequence[Array], weights: Sequence[Any]) -> Array:
    """Sum of w s / sum of w: a leg that lacks the item counts as 0, with its weight."""
    return weighted_sum(shares, weights) / _total(weights)


def geometric_mean(shares: Sequence[Array], weights: Sequence[Any]) -> Array:
    """exp(sum of w ln s / sum of w) over the legs that hold the item: one that lacks it goes with its weight."""
    logs, weight = np.zeros_like(shares[0]), _held_weight(shares, weights)
    for w, share in zip(weights, shares, strict=True):
        log = np.log(np.where(share > 0, share, 1).astype(np.float64))
        logs = (logs + float(w) * log).astype(share.dtype)
    mean = np.exp((logs / np.where(weight > 0, weight, 1)).astype(np.float64)).astype(logs.dtype)
    return np.where(weight > 0, mean, mean.dtype.type(0))


def harmonic_mean(shares: Sequence[Array], weights: Sequence[Any]) -> Array:
    """Sum of w / sum of (w / s) over the legs that hold the item: one that lacks it goes with its weight."""
    weight = _held_weight(shares, weights)
    inverse = _total(
        [np.where(s > 0, w / np.where(s > 0, s, 1), s.dtype.type(0)) for w, s in zip(weights, shares, strict=True)]
    )
    return np.where(inverse > 0, weight / np.where(inverse > 0, inverse, 1), weight.dtype.type(0))


def _held_weight(shares: Sequence[Array], weights: Sequence[Any]) -> Array:
    """Weight of the legs that hold each item, added leg by leg."""
    return _total([np.where(s > 0, s.dtype.type(w), s.dtype.type(0)) for w, s in zip(weights, shares, strict=True)])


def _total(parts: Sequence[Any]) -> Any:
    """Sum of at least one part, from left to right."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _sum(values: Array) -> Array:
    """(q, 1): sum of each row from left to right; numpy's own sum adds pairwise, which ends in other last bits."""
    if values.shape[1] == 0:
        return np.zeros((len(values), 1), values.dtype)
    return np.add.accumulate(values, axis=1)[:, -1:]


def aligned(legs: Sequence[Array], shares: Sequence[Array]) -> tuple[Array, list[Array]]:
    """Items (q, m) ascending, ABSENT after the last, and each leg's shares of them, 0 where it lacks the item.

    ``legs`` and ``shares`` are (q, depth) each, depths may differ; m is the sum of the depths.
    """
    beyond = np.iinfo(np.int32).max
    listed = np.concatenate(legs, axis=1).astype(np.int32)
    listed[listed == ABSENT] = beyond
    order = np.argsort(listed, axis=1, kind="stable")
    ascending = np.take_along_axis(listed, order, axis=1)
    group = np.zeros(listed.shape, np.int64)
    np.cumsum(ascending[:, 1:] != ascending[:, :-1], axis=1, out=group[:, 1:])
    items, place = np.full_like(listed, ABSENT), np.empty_like(group)
    np.put_along_axis(items, group, np.where(ascending == beyond, ABSENT, ascending), axis=1)
    np.put_along_axis(place, order, group, axis=1)
    ends = np.cumsum([leg.shape[1] for leg in legs])
    columns = [np.zeros(listed.shape, share.dtype) for share in shares]
    for column, share, part in zip(columns, shares, np.split(place, ends[:-1], axis=1), strict=True):
        np.put_along_axis(column, part, share, axis=1)
    return items, columns


def first_seen(legs: Sequence[Sequence[Item]]) -> list[Item]:
    """The items of one query in order of first appearance, leg by leg."""
    return list(dict.fromkeys(item for leg in legs for item in leg))


def rrf(
    legs: Sequence[Sequence[int]],
    rank_constant: int,
    weights: Sequence[float] | None = None,
    terms: Terms = reciprocal,
) -> dict[int, float]:
    """Reciprocal rank fusion of one query's lists: item to the sum of its legs' terms, keys in order of first
    appearance. ``terms`` carries an engine's own arithmetic where a result must be its equal to the last bit.
    """
    rows = [np.array(leg, np.int32)[None] for leg in legs]
    shares = [terms(rank_constant, row.shape[1])[None] for row in rows]
    kind = shares[0].dtype.type
    items, columns = aligned(rows, shares)
    fused = weighted_sum(columns, [kind(weight) for weight in weights or [1.0] * len(legs)])
    score = dict(zip(items[0].tolist(), fused[0].tolist(), strict=True))
    return {item: score[item] for item in first_seen(legs)}


def ranked(scores: Mapping[Item, float], key: Callable[[Item], object]) -> list[Item]:
    """Items by descending score, ties by ``key``: a total order when ``key`` tells any two items apart."""
    return sorted(scores, key=lambda item: (-scores[item], key(item)))
