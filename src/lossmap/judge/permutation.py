"""Paired sign-flip tests: were the signs of the differences a matter of chance, would their sum be as large as it is?

Under the null hypothesis an arm and its control are exchangeable, so every difference may as well have the other sign.
Flipped together are the queries of a meeting, whose differences are not independent, or each query alone. The p-value
is (1 + #{|T*| >= |T|}) / (1 + N), two-sided, never zero (Phipson and Smyth 2010, eq. 2).

One matrix of signs serves every column, and a class of queries takes its part of it, so the row of all queries is the
sum of its classes and costs nothing. Sums are exact on the grid of judge/intervals: whether |T*| reaches |T| depends
neither on the number of threads nor on the order of the queries within a meeting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lossmap.judge import intervals

FLIPS = 10_000
SEED = 20_240_918
BLOCK = 500
ALL = "all"

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PValues:
    """Two-sided p (M,), one of flipping whole ``meetings`` and one of flipping ``queries``."""

    meetings: Floats
    queries: Floats

    def of(self, column: int) -> dict[str, float]:
        return {"meetings": float(self.meetings[column]), "queries": float(self.queries[column])}


def card() -> dict[str, Any]:
    """What a document says about its p-values."""
    return {"method": "paired sign flips, two-sided", "flips": FLIPS, "seed": SEED, "generator": "PCG64"}


@lru_cache(maxsize=8)
def signs(units: int) -> NDArray[np.int8]:
    """(FLIPS, units) of -1 and +1."""
    generator = np.random.Generator(np.random.PCG64(SEED))
    drawn = generator.integers(256, size=(FLIPS, -(-units // 8)), dtype=np.uint8)
    flips = np.unpackbits(drawn, axis=1, count=units).view(np.int8) * np.int8(2) - np.int8(1)
    flips.setflags(write=False)
    return flips


def p_values(
    deltas: Floats, groups: Sequence[str] | None = None, classes: Sequence[str] | None = None
) -> dict[str, PValues]:
    """p of every column of ``deltas`` (Q, M): over all queries (``all``) and over each of the ``classes`` (Q,).

    ``groups`` (Q,) names the meeting of each query; None where there are none, and the queries then stand in.
    """
    exact, _ = intervals.on_grid(deltas)
    names, part = np.unique(np.asarray(classes or [ALL] * len(deltas), object), return_inverse=True)
    by_query = _tails(exact, np.arange(len(deltas)), part, len(names))
    by_meeting = by_query
    if groups is not None:
        by_meeting = _tails(exact, np.unique(np.asarray(groups, object), return_inverse=True)[1], part, len(names))
    return {str(name): PValues(*both) for name, both in zip([*names, ALL], zip(by_meeting, by_query))}


def _tails(exact: Floats, unit: NDArray[np.intp], part: NDArray[np.intp], parts: int) -> Floats:
    """p (parts + 1, M): of each part of the queries, and last of all of them, where the signs of ``unit`` (Q,) flip."""
    tables = [_sums(exact[part == p], unit[part == p]) for p in range(parts)]
    observed = np.array([table.sum(axis=0) for _, table in tables])
    observed = np.abs(np.vstack((observed, observed.sum(axis=0))))
    reached = np.zeros(observed.shape)
    flips = signs(int(unit.max()) + 1)
    for low in range(0, FLIPS, BLOCK):
        block = flips[low : low + BLOCK]
        whole = np.zeros((len(block), exact.shape[1]))
        for p, (present, table) in enumerate(tables):
            totals = block[:, present].astype(float) @ table
            whole += totals
            reached[p] += (np.abs(totals) >= observed[p]).sum(axis=0)
        reached[parts] += (np.abs(whole) >= observed[parts]).sum(axis=0)
    return (1 + reached) / (1 + FLIPS)


def _sums(exact: Floats, unit: NDArray[np.intp]) -> tuple[NDArray[np.intp], Floats]:
    """The units that occur, sorted, and their sums (U, M)."""
    present, member = np.unique(unit, return_inverse=True)
    sums = np.zeros((len(present), exact.shape[1]))
    np.add.at(sums, member, exact)
    return present, sums
