"""Bootstrap intervals: 10,000 resamples, 95 % percentile, over queries and over meetings (clusters).

The resamples are one count matrix per number of units, drawn once from a fixed seed, so every measure, arm and contrast
over the same units is resampled alike and costs one matrix product.

The product has the same bytes under any number of threads: values are first put on a binary grid so fine (2**-38 or
finer for some thousand queries in [-1, 1]) and so coarse that every partial sum is an integer below 2**53. Sums of such
numbers are exact in float64 in any order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 10_000
SEED = 20_240_917
LEVEL = 0.95
BLOCK = 500

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """Means (M,) with lower and upper ends (M, 2) by ``queries`` and by ``meetings``; how many there are of each."""

    mean: Floats
    queries: Floats
    meetings: Floats
    query_count: int
    meeting_count: int

    def interval(self, column: int) -> dict[str, list[float]]:
        return {"meetings": self.meetings[column].tolist(), "queries": self.queries[column].tolist()}


def card() -> dict[str, Any]:
    """What a document says about its intervals."""
    how = {"method": "percentile bootstrap", "generator": "PCG64"}
    return {"resamples": RESAMPLES, "seed": SEED, "level": LEVEL, **how}


@lru_cache(maxsize=8)
def counts(units: int) -> NDArray[np.uint16]:
    """How often each resample draws each unit: (RESAMPLES, units), every row summing to ``units``."""
    generator = np.random.Generator(np.random.PCG64(SEED))
    drawn = np.empty((RESAMPLES, units), np.uint16)
    for low in range(0, RESAMPLES, BLOCK):
        rows = min(BLOCK, RESAMPLES - low)
        picks = generator.integers(units, size=(rows, units)) + np.arange(rows)[:, None] * units
        drawn[low : low + rows] = np.bincount(picks.ravel(), minlength=rows * units).reshape(rows, units)
    drawn.setflags(write=False)
    return drawn


def means_with_intervals(values: Floats, groups: Sequence[str] | None) -> Estimate:
    """Means of ``values`` (Q, M) with both intervals.

    ``groups`` names the meeting of each query; None where a corpus has no meetings, and the queries then stand in.
    By meeting, a resample's mean is its sum over its number of queries (ratio estimator: clusters differ in size).
    """
    size = len(values)
    by_query = _percentiles(values, np.ones(size))
    by_meeting, clusters = by_query, size
    if groups is not None:
        sums, sizes = by_group(values, groups)
        by_meeting, clusters = _percentiles(sums, sizes), len(sizes)
    mean = np.array([math.fsum(column) / size for column in values.T])
    return Estimate(mean, by_query, by_meeting, size, clusters)


def paired(values_a: Floats, values_b: Floats, groups: Sequence[str] | None) -> Estimate:
    """``values_a`` minus ``values_b`` (Q, M), query by query, with both intervals."""
    return means_with_intervals(values_a - values_b, groups)


def by_group(values: Floats, groups: Sequence[str]) -> tuple[Floats, Floats]:
    """Sums (U, M) of ``values`` (Q, M) by the name that ``groups`` (Q,) gives them, sorted; their sizes (U,)."""
    member = np.unique(np.asarray(groups, object), return_inverse=True)[1]
    sizes = np.bincount(member).astype(float)
    sums = np.zeros((len(sizes), values.shape[1]))
    np.add.at(sums, member, values)
    return sums, sizes


def on_grid(values: Floats) -> tuple[Floats, float]:
    """``values`` (U, M) as whole numbers times a power of two, and that power.

    The sum of any of them, with any signs, is exact in float64 in any order.
    """
    largest = max(float(np.abs(values).max(initial=0.0)), 1.0)
    grid = 2.0 ** (52 - math.ceil(math.log2(max(len(values), 1) * largest)))
    return np.rint(values * grid), grid


def resampled_means(sums: Floats, sizes: Floats) -> Floats:
    """Ratios sum / size (RESAMPLES, M) over the units that each resample draws of ``sums`` (U, M), ``sizes`` (U,)."""
    drawn, (exact, grid) = counts(len(sums)), on_grid(sums)
    table = np.column_stack((exact, sizes))
    totals = np.concatenate([drawn[low : low + BLOCK].astype(float) @ table for low in range(0, RESAMPLES, BLOCK)])
    return totals[:, :-1] / grid / totals[:, -1:]


def ends(means: Floats) -> Floats:
    """Interval ends (M, 2) of resampled ``means`` (R, M)."""
    tail = (1 - LEVEL) / 2
    return np.quantile(means, (tail, 1 - tail), axis=0).T


def _percentiles(sums: Floats, sizes: Floats) -> Floats:
    return ends(resampled_means(sums, sizes))
