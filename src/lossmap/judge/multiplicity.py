"""Many arms against one control: p-values that pay for their number, and the least effect the queries could show."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95
POWER = 0.8

Floats = NDArray[np.float64]


def card() -> dict[str, Any]:
    """What a document says about its adjusted p-values and detectable effects."""
    return {
        "adjustment": "Holm step-down over the arms of a family, per bench, corpus, class and measure",
        "detectable": {"level": LEVEL, "power": POWER, "factor": factor(), "standard_error": "by meeting"},
    }


def holm(p: Floats) -> Floats:
    """Adjusted p (A, M) of ``p`` (A, M), down each column: max over j <= i of (A - j + 1) p_(j), at most 1 (Holm 1979).

    Rejecting what stays at or below a level keeps the chance of one false rejection or more in the column below it.
    """
    order = np.argsort(p, axis=0, kind="stable")
    steps = np.arange(len(p), 0, -1)[:, None]
    raised = np.minimum(np.maximum.accumulate(np.take_along_axis(p, order, axis=0) * steps, axis=0), 1.0)
    adjusted = np.empty_like(raised)
    np.put_along_axis(adjusted, order, raised, axis=0)
    return adjusted


def standard_error(deltas: Floats, groups: Sequence[str] | None) -> Floats:
    """Standard error (M,) of the mean of paired ``deltas`` (Q, M), robust to what the queries of a meeting share.

    sqrt(C / (C - 1) * sum over clusters c of (sum of c's deltas - n_c * mean)^2) / Q, the linearised ratio estimator
    (Cochran 1977, section 9A.3); with clusters of one query each it is s / sqrt(Q). NaN for a single cluster.
    ``groups`` (Q,) names the cluster of each query; None makes each query its own.
    """
    size, columns = deltas.shape
    names, member = np.unique(np.asarray(groups or range(size), object), return_inverse=True)
    if len(names) < 2:
        return np.full(columns, np.nan)
    residuals = np.zeros((len(names), columns))
    np.add.at(residuals, member, deltas - deltas.mean(axis=0))
    return np.sqrt(len(names) / (len(names) - 1) * (residuals**2).sum(axis=0)) / size


def factor() -> float:
    """z at 1 - alpha / 2 plus z at the power: how many standard errors away an effect must lie."""
    normal = NormalDist()
    return normal.inv_cdf((1 + LEVEL) / 2) + normal.inv_cdf(POWER)


def detectable(deltas: Floats, groups: Sequence[str] | None) -> Floats:
    """Minimum detectable effect (M,): factor() standard errors (Bloom 1995, Evaluation Review 19(5)).

    A true difference of this size would be found, two-sided at LEVEL, by a share POWER of repetitions.
    """
    return factor() * standard_error(deltas, groups)
