"""The joint density ratio of both scores, and the order it gives: evidence for a row from labels of other queries.

With labels log f1/f0 (v, l) can be estimated outright; without them nothing here identifies it (spec/replay 6.5). So
this stands above what such a table could do without labels. It bounds no other rule: a constant weight may do more.

One table serves all queries, so that v and l must mean the same to each. Neither score does, strictly: bm25 adds up
over the terms of a query, and a cosine is high or low with the query. Hence three readings: of ``scores`` (cosine and
bm25), of ``ranks`` (which every query has alike), and ``mixed`` (cosine and lexical rank), which sharpens one side
alone. Bins are quantiles of the null; a row that is off the lexical list has one of its own, below all that are on it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from lossmap.memory import dump
from lossmap.memory.frozen import ABSENT, Bools, Floats, Frozen, Ints

READINGS = ("scores", "ranks", "mixed")
PARTS = {"dense": 20, "lexical": 4}
"""Equal parts of the null that the bins begin with; the last part is then halved on and on."""
LEAST = 50
"""Rows of the null that the last bin holds at least, counted as they were sampled."""
SWEEPS, STILL = 100, 1e-9
"""Rounds of both axes at most, and the change below which the table counts as at rest."""
PLACES = 9
"""Decimals of the log ratio: cells that differ in the last bits are equal."""
NEXT_TO_NOTHING = 1e-9
"""The weight of a cell that has no row: it follows its neighbours."""


@dataclass(frozen=True)
class Sample:
    """Rows (n,) of one class: ``dense`` and ``lexical`` as :func:`read` has them, ``weight`` (rows it stands for)."""

    dense: Floats
    lexical: Floats
    weight: Floats


@dataclass(frozen=True)
class Ratio:
    """``log`` (V, L): log f1/f0 in V dense bins and L lexical ones, the first for rows off the list; it falls along
    neither axis. Bins begin at the values of ``dense`` (V - 1,) and ``lexical`` (L - 2,)."""

    log: Floats
    dense: Floats
    lexical: Floats

    def of(self, dense: Floats, lexical: Floats) -> Floats:
        """The log ratio (n,) of rows."""
        return np.asarray(self.log[_cells(self.dense, self.lexical, dense, lexical)], np.float64)


def read(found: Frozen, reading: str) -> tuple[Floats, Floats]:
    """v and l (R,), larger is better: nan for l off the lexical list, minus infinity for a bm25 that LIKE has not.

    Dense ranks are those among the eligible rows, lexical ones those of the whole list, as the fusion reads them.
    """
    ranks = reading == "ranks"
    v = -found.dense_eligible.astype(np.float64) if ranks else found.cosine.astype(np.float64)
    bm25 = np.where(np.isnan(found.bm25), -np.inf, found.bm25)
    return v, np.where(found.lex < 0, np.nan, bm25 if reading == "scores" else -found.lex.astype(np.float64))


def relevant(found: Frozen, queries: Bools, reading: str) -> Sample:
    """The eligible relevant rows of ``queries`` (Q,), each for itself: a query counts by how many it has."""
    chosen = found.label & (found.dense_eligible >= 0) & queries[found.query]
    v, l = read(found, reading)  # noqa: E741
    return Sample(v[chosen], l[chosen], np.ones(int(chosen.sum())))


def null(found: Frozen, queries: Bools, reading: str) -> Sample:
    """The rows of the dump's null of ``queries`` (Q,), each for one over the chance with which it was drawn."""
    chosen = dump.null(found) & queries[found.query]
    v, l = read(found, reading)  # noqa: E741
    return Sample(v[chosen], l[chosen], 1 / found.chance[chosen])


def fit(first: Sample, second: Sample) -> Ratio:
    """log f1/f0 of ``first`` against ``second``, the null, each smoothed by one row a cell: (c + 1) / (n + cells).

    A table of zeros where either has no row. Cells count by how much their rows say, the inverse of the variance of a
    log ratio; a cell without a row takes the value of the cells below it.
    """
    listed = ~np.isnan(second.lexical)
    dense = cuts(second.dense, second.weight, PARTS["dense"])
    lexical = cuts(second.lexical[listed], second.weight[listed], PARTS["lexical"])
    shape = (len(dense) + 1, len(lexical) + 2)
    if not len(first.dense) or not len(second.dense):
        return Ratio(np.zeros(shape), dense, lexical)
    held, seen = [], []
    for sample in (first, second):
        cell = np.ravel_multi_index(_cells(dense, lexical, sample.dense, sample.lexical), shape)
        held.append(np.bincount(cell, sample.weight, minlength=shape[0] * shape[1]).reshape(shape))
        seen.append(np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape))
    smooth = [(count + 1) / (count.sum() + count.size) for count in held]
    known = seen[0] + seen[1] > 0
    raw = np.log(smooth[0]) - np.log(smooth[1])
    weight = 1 / (1 / (seen[0] + 1) + 1 / (seen[1] + 1))
    log = monotone(np.where(known, raw, raw[known].min()), np.where(known, weight, NEXT_TO_NOTHING))
    return Ratio(np.round(log, PLACES) + 0.0, dense, lexical)


def cuts(score: Floats, weight: Floats, parts: int) -> Floats:
    """Where bins begin, ascending: quantiles of weighted scores in ``parts`` equal parts, the last part then halved
    while LEAST rows lie above. Every cut is a score that occurs; fewer cuts where scores tie."""
    if not len(score):
        return np.empty(0)
    order = np.argsort(score, kind="stable")
    score, above = score[order], np.cumsum(weight[order][::-1])[::-1]
    shares = [1 - part / parts for part in range(1, parts)]
    shares += [1 / parts / 2**step for step in range(1, 64)]
    # The last place with that much of the null at or above it; above falls along the ascending scores.
    place = len(above) - np.searchsorted(above[::-1], np.array(shares) * above[0], side="left") - 1
    found = np.unique(score[place[place >= 0]])
    enough = len(score) - np.searchsorted(score, found, side="left") >= LEAST
    return np.asarray(found[enough & (found > score[0])])


def monotone(values: Floats, weight: Floats) -> Floats:
    """``values`` (V, L) made to fall along neither axis: isotonic regression along each in turn until at rest.

    A last running maximum takes away what SWEEPS rounds may leave. A table that falls nowhere comes back as it is.
    """
    table = values.copy()
    for _ in range(SWEEPS):
        before = table.copy()
        for mine, theirs in ((table.T, weight.T), (table, weight)):
            for line, importance in zip(mine, theirs):
                line[:] = isotonic_regression(line, weights=importance).x
        if np.abs(table - before).max() < STILL:
            break
    return np.asarray(np.maximum.accumulate(np.maximum.accumulate(table, axis=0), axis=1))


def _cells(dense: Floats, lexical: Floats, v: Floats, l: Floats) -> tuple[Ints, Ints]:  # noqa: E741
    place = np.where(np.isnan(l), 0, 1 + np.searchsorted(lexical, l, side="right"))
    return np.searchsorted(dense, v, side="right"), place


def order(found: Frozen, score: Floats, depth: int = 10) -> Ints:
    """The first ``depth`` working rows of each query by (score descending, dense rank): positions (Q, depth), ABSENT.

    ``score`` (R,). Rows below the floor are ranked as well: a cosine that the floor cuts is still a cosine.
    """
    at = np.flatnonzero(found.working)
    at = at[np.lexsort((found.dense[at], -score[at], found.query[at]))]
    held = np.bincount(found.query[at], minlength=len(found.query_ids))
    place = np.arange(len(at)) - np.repeat(np.cumsum(held) - held, held)
    top = np.full((len(held), depth), ABSENT, np.int64)
    top[found.query[at[place < depth]], place[place < depth]] = at[place < depth]
    return top


def unkept(found: Frozen, ratio: Ratio, reading: str) -> Floats:
    """(Q,): the most that a row which was not kept can score; minus infinity where every eligible row was.

    Such a row is below the last kept dense rank, and off the list or below the last kept lexical rank.
    """
    v, l = read(found, reading)  # noqa: E741
    last = [np.full(len(found.query_ids), np.nan) for _ in range(2)]
    for side, ranks, out in ((v, found.dense, last[0]), (l, found.lex, last[1])):
        at = np.flatnonzero(ranks == found.depth - 1)
        out[found.query[at]] = side[at]
    score = ratio.of(last[0], np.where(found.lexical > found.depth, last[1], np.nan))
    return np.where(found.subset | (found.size <= found.depth), -np.inf, score)
