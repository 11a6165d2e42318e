"""Deltas of many arms over many resamples of one corpus's meetings, and how sure a rank correlation of corpora is.

Every arm of a corpus is resampled alike: one count matrix, one product. Two corpora are resampled apart from each
other, even where they have equally many meetings and so the same matrix: the second's resamples are paired in another
order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lossmap.judge import agreement, intervals

SHIFT = 977
"""By how many rows the resamples of each further corpus are shifted; any number prime to the resamples would do."""
SIDES = ("first", "second", "neither")

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Deltas:
    """``mean`` (A,), ``resamples`` (RESAMPLES, A) and ``ends`` (A, 2) of A arms; of how many queries and meetings."""

    mean: Floats
    resamples: Floats
    ends: Floats
    queries: int
    meetings: int

    def interval(self, column: int) -> list[float]:
        return [float(end) for end in self.ends[column]]

    @property
    def spread(self) -> bool:
        """Whether resampling can move anything: one meeting has one resample."""
        return self.meetings > 1


def resample(values: Floats, groups: Sequence[str]) -> Deltas:
    """Mean deltas of ``values`` (Q, A) under resamples of the meetings that ``groups`` names, one for each query.

    A resample's mean is its sum over its number of queries (ratio estimator), in six decimals like the estimate, so
    that ties stay ties. Sums lie on the binary grid of judge/intervals: the same bytes under any number of threads.
    """
    sums, sizes = intervals.by_group(values, groups)
    means = np.round(intervals.resampled_means(sums, sizes), agreement.PLACES) + 0.0
    exact, grid = intervals.on_grid(sums)
    mean = np.round(exact.sum(axis=0) / grid / len(values), agreement.PLACES) + 0.0
    return Deltas(mean, means, intervals.ends(means), len(values), len(sums))


def order(deltas: Floats) -> NDArray[np.int8]:
    """The sign of each pair's difference (R, A * (A - 1) / 2), in every resample: all that a rank correlation reads."""
    first, second = np.triu_indices(deltas.shape[1], 1)
    return np.sign(deltas[:, first] - deltas[:, second]).astype(np.int8)


def tau_b(first: NDArray[np.int8], second: NDArray[np.int8]) -> Floats:
    """Kendall's tau-b row by row, from two results of :func:`order`; NaN where a side is constant.

    Concordant minus discordant pairs over the root of the untied pairs of each side (Kendall 1945).
    """
    agreeing = (first * second).sum(axis=1, dtype=np.int64)
    untied = np.count_nonzero(first, axis=1) * np.count_nonzero(second, axis=1)
    out: Floats = np.full(len(agreeing), np.nan)
    np.divide(agreeing, np.sqrt(untied), out=out, where=untied > 0)
    return out


def matrix(corpora: Mapping[str, Deltas], arms: int) -> list[dict[str, Any]]:
    """Every pair of corpora: the coefficients of their deltas over ``arms`` arms and tau-b's interval.

    The interval is None where a coefficient is, or where a corpus has one meeting. ``undefined`` is the share of
    resamples in which a side was constant, which the interval leaves out.
    """
    names = list(corpora)
    orders = {name: order(corpora[name].resamples) for name in names} if arms >= agreement.LEAST else {}
    rows = []
    for place, first in enumerate(names):
        for second in names[place + 1 :]:
            found = agreement.coefficients(*(corpora[name].mean.tolist() for name in (first, second)))
            sure = found["note"] is None and corpora[first].spread and corpora[second].spread
            later = np.roll(orders[second], SHIFT * (names.index(second) + 1), axis=0) if sure else None
            rows.append({"corpora": [first, second], **found, **_interval(orders.get(first), later)})
    return rows


def _interval(first: NDArray[np.int8] | None, second: NDArray[np.int8] | None) -> dict[str, Any]:
    if first is None or second is None:
        return {"tau_b_interval": None, "undefined": None}
    drawn = tau_b(first, second)
    known = drawn[~np.isnan(drawn)]
    ends = intervals.ends(known).tolist() if len(known) else None
    return {"tau_b_interval": ends, "undefined": 1 - len(known) / len(drawn)}


def adjudicate(corpora: Mapping[str, Deltas], arms: Sequence[agreement.Arm]) -> list[dict[str, Any]]:
    """For each arm on which the first two corpora disagree: which of them every further corpus sides with.

    ``side`` is one of SIDES; ``clear`` says that the further corpus's own interval excludes zero.
    """
    names = list(corpora)
    if len(names) < 2:
        return []
    rows = []
    for column, arm in enumerate(arms):
        deltas = {name: float(corpora[name].mean[column]) for name in names}
        if agreement.verdict(*(deltas[name] for name in names[:2])) == "disagree":
            sides = {name: _side(corpora[name], column, deltas[names[0]]) for name in names[2:]}
            count = {side: sum(each["side"] == side for each in sides.values()) for side in SIDES}
            head = {"family": arm.family, "arm": arm.name, "axis": arm.axis}
            rows.append({**head, "between": names[:2], "deltas": deltas, "sides": sides, "count": count})
    return rows


def _side(corpus: Deltas, column: int, first: float) -> dict[str, Any]:
    mine, (low, high) = float(corpus.mean[column]), corpus.interval(column)
    side = "neither" if mine == 0 else "first" if (mine > 0) == (first > 0) else "second"
    return {"side": side, "delta": mine, "interval": [low, high], "clear": corpus.spread and (low > 0 or high < 0)}
