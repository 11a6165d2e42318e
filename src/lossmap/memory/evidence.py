"""What a lexical score says about relevance once the cosine is known: J(v, l) = log f1(l | v) / f0(l | v).

Measured on the rows of the dump. f0 is the law of eligible rows that nobody judged relevant, each weighted by one over
the chance with which it was drawn; unjudged rows are taken as irrelevant, which makes J look smaller than it is. Lists
that came from LIKE have no scores and are left out (spec/replay 6.1, 6.3, 6.4).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from lossmap.memory import dump
from lossmap.memory.cut import PER_BIN
from lossmap.memory.frozen import Bools, Floats, Frozen, Ints

DELTAS = (0.02, 0.01, 0.005, 0.002)
"""Widths of the blocks of cosines; blocks of ranks do not hold the cosine still (spec/replay 6.4)."""
EDGES = (0, 1, 3, 10, 30, 100)
"""Where the bins of ranks begin; the last is open. The lexical side has one more bin: absent."""
LEAST = 30
"""A cell of the grid is interpreted from so many rows on of either kind."""
NEAR = 100
"""First eligible rows of the dense order that :func:`near` keeps."""


@dataclass(frozen=True)
class Sample:
    """n rows (n,) in the order of their queries: ``query``, ``gold``, ``weight`` (whole numbers: how many rows of the
    population each stands for, times PER_BIN, so that sums are exact), ``cosine``, ``lexical`` (-inf off the list:
    absence is one category, the lowest), and 0-based ranks ``dense`` (among the eligible) and ``lex`` (ABSENT)."""

    query: Ints
    gold: Bools
    weight: Floats
    cosine: Floats
    lexical: Floats
    dense: Ints
    lex: Ints


def sample(found: Frozen) -> Sample:
    """The eligible rows of the dump, without the queries whose lexical list came from LIKE."""
    kept = (dump.null(found) | ((found.chance > 0) & found.label)) & (found.dense_eligible >= 0)
    at = np.flatnonzero(kept & ~found.fallback[found.query])
    return Sample(
        query=found.query[at],
        gold=found.label[at],
        weight=np.rint(PER_BIN / found.chance[at]),
        cosine=found.cosine[at].astype(np.float64),
        lexical=np.where(found.lex[at] >= 0, found.bm25[at], -np.inf),
        dense=found.dense_eligible[at].astype(np.int64),
        lex=found.lex[at].astype(np.int64),
    )


def near(found: Sample, depth: int = NEAR) -> Sample:
    """The rows among the first ``depth`` eligible ones of the dense order, which is what a top ten draws on.

    Of a large pool nearly all pairs lie below: there the whole population says what holds far from any top ten.
    """
    kept = found.dense < depth
    return Sample(**{field.name: getattr(found, field.name)[kept] for field in fields(Sample)})


def strata(found: Sample, delta: float) -> Ints:
    """(n,): the number of each row's stratum: its query and its block floor(v / delta)."""
    block = np.floor(found.cosine / delta).astype(np.int64)
    block -= block.min(initial=0)
    number: Ints = found.query * (block.max(initial=0) + 1) + block
    return number


@dataclass(frozen=True)
class Stratified:
    """Of each stratum that has rows of both kinds (S,): ``first`` (position of one of its rows), ``above`` (weight of
    the pairs in which the relevant row scores higher, ties 1/2), ``pairs`` (of all), ``variance`` of ``above`` if
    scores were dealt to the rows of a stratum at random."""

    first: Ints
    above: Floats
    pairs: Floats
    variance: Floats

    @cached_property
    def auc(self) -> float | None:
        """Ratio of sums; None where no stratum has rows of both kinds."""
        return float(self.above.sum() / self.pairs.sum()) if len(self.pairs) else None

    @cached_property
    def z(self) -> float | None:
        """Distance of ``above`` from half of the pairs, in standard deviations; None where nothing can vary."""
        spread = float(np.sqrt(self.variance.sum()))
        return float((self.above - self.pairs / 2).sum()) / spread if spread > 0 else None


def stratified(score: Floats, gold: Bools, weight: Floats, stratum: Ints) -> Stratified:
    """Relevant rows against the others of their stratum, all (n,). The weight of a pair is that of its other row."""
    order = np.lexsort((score, stratum))
    known = np.intersect1d(stratum[gold], stratum[~gold])
    order = order[np.isin(stratum[order], known)]
    score, gold, number = score[order], gold[order], np.searchsorted(known, stratum[order])
    weight = np.where(gold, 0.0, weight[order])
    starts = np.searchsorted(number, np.arange(len(known)))
    opens = np.ones(len(order), bool)
    opens[1:] = (number[1:] != number[:-1]) | (score[1:] != score[:-1])
    tie = np.cumsum(opens) - 1
    before = np.concatenate([[0.0], np.cumsum(weight)])
    lower = before[np.flatnonzero(opens)][tie] - before[starts][number]
    equal = _summed(tie, weight, int(opens.sum()))[tie]
    above = _summed(number[gold], (lower + equal / 2)[gold], len(known))
    rows, relevant, total, squared = (
        _summed(number, each, len(known)) for each in (np.ones(len(order)), gold, weight, weight**2)
    )
    ties = _summed(tie, np.ones(len(order)), int(opens.sum()))
    variance = permutation_variance(relevant, total, squared, rows, ties, number[opens])
    return Stratified(order[starts], above, relevant * total, variance)


def _summed(number: Ints, value: Floats | Bools, count: int) -> Floats:
    """(count,): sums of ``value`` (n,) by ``number`` (n,)."""
    return np.bincount(number, value, minlength=count).astype(np.float64)


def permutation_variance(
    relevant: Floats, total: Floats, squared: Floats, rows: Floats, ties: Floats, stratum: Ints
) -> Floats:
    """(S,): exact variance of the weighted pair count when scores are dealt to the rows of a stratum at random.

    ``relevant`` rows, sum ``total`` and sum of squares ``squared`` of the others' weights, all ``rows`` (S,); ``ties``
    (T,) rows of equal score, in ``stratum`` (T,). Two pairs covary by c where they share one row, and by nothing where
    they share none, since sign(a - b) sign(c - d) has mean 0. At weights of 1 this is
    n1 n2 / 12 ((N + 1) - sum(t^3 - t) / (N (N - 1))) (spec/replay 6.4).
    """
    same, cubes = (_summed(stratum, each, len(rows)) for each in (ties**2 - ties, ties**3 - ties))
    draws = rows * (rows - 1)
    pair = (1 - same / draws) / 4
    shared = ((rows + 1 - cubes / draws) / 12 - pair) / np.maximum(rows - 2, 1)
    apart = total**2 - squared + (relevant - 1) * squared
    return np.asarray(relevant * (squared * pair + apart * shared))


@dataclass(frozen=True)
class Grid:
    """Cells (D, L) of dense by lexical bins, the last lexical one absent: rows that are relevant (``gold``), that are
    not (``other``), and how many eligible rows the latter stand for (``population``)."""

    gold: Ints
    other: Ints
    population: Floats

    @cached_property
    def j(self) -> Floats:
        """log f1(l | v) / f0(l | v) in nats, each law of a dense bin (c + 1) / (n + L) over its L lexical bins."""
        laws = [(c + 1) / (c.sum(axis=1, keepdims=True) + c.shape[1]) for c in (self.gold, self.population)]
        return np.asarray(np.log(laws[0] / laws[1]))

    @cached_property
    def interpretable(self) -> Bools:
        return np.asarray((self.gold >= LEAST) & (self.other >= LEAST))

    def spread(self) -> tuple[int, int, int] | None:
        """The dense bin in which J spreads most over cells that can be interpreted, and the lexical bins of its highest
        and its lowest cell; None where no dense bin has two such cells. Of equals the first."""
        high = np.where(self.interpretable, self.j, -np.inf)
        low = np.where(self.interpretable, self.j, np.inf)
        usable = self.interpretable.sum(axis=1) > 1
        if not usable.any():
            return None
        widths = np.full(len(usable), -np.inf)
        widths[usable] = high[usable].max(axis=1) - low[usable].min(axis=1)
        dense = int(widths.argmax())
        return dense, int(high[dense].argmax()), int(low[dense].argmin())


def grid(found: Sample) -> Grid:
    """Counts of the rows of ``found`` by bins of their ranks."""
    dense = np.searchsorted(EDGES, found.dense, side="right") - 1
    lexical = np.where(found.lex >= 0, np.searchsorted(EDGES, found.lex, side="right") - 1, len(EDGES))
    shape = (len(EDGES), len(EDGES) + 1)
    cell = dense * shape[1] + lexical

    def tally(chosen: Bools, weight: Floats) -> Floats:
        return _summed(cell[chosen], weight[chosen], shape[0] * shape[1]).reshape(shape)

    each, others = np.ones(len(cell)), ~found.gold
    gold, other = (tally(chosen, each).astype(np.int64) for chosen in (found.gold, others))
    return Grid(gold, other, tally(others, found.weight) / PER_BIN)
