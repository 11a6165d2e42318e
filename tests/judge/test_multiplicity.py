"""Holm by hand, the standard error of clusters, and what an effect must be to be found."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lossmap.judge import intervals, multiplicity


def test_holm_by_hand() -> None:
    """Sorted .01, .02, .03, .04 times 4, 3, 2, 1 is .04, .06, .06, .04; the last may not fall below those before it."""
    p = np.array([[0.04], [0.01], [0.03], [0.02]])
    assert multiplicity.holm(p)[:, 0] == pytest.approx([0.06, 0.04, 0.06, 0.06])


def test_holm_is_capped_at_one_and_leaves_a_single_arm_alone() -> None:
    assert multiplicity.holm(np.array([[0.7], [0.9]]))[:, 0].tolist() == [1.0, 1.0]
    assert multiplicity.holm(np.array([[0.03]])).tolist() == [[0.03]]


def test_holm_adjusts_each_column_by_itself_keeps_order_and_never_lowers() -> None:
    p = np.random.default_rng(0).random((9, 5)) ** 3
    found = multiplicity.holm(p)
    assert (found >= p).all() and (found <= 1).all() and (found <= np.minimum(9 * p, 1) + 1e-15).all()
    for column, adjusted in zip(p.T, found.T):
        assert (np.diff(adjusted[np.argsort(column)]) >= 0).all()
        assert multiplicity.holm(column[:, None])[:, 0].tolist() == adjusted.tolist()
    back = multiplicity.holm(p[::-1])[::-1]
    assert back.tolist() == found.tolist()


def test_holm_of_true_nulls_rejects_falsely_once_in_twenty_families() -> None:
    p = np.random.default_rng(1).random((10, 4000))
    assert (multiplicity.holm(p) <= 0.05).any(axis=0).mean() == pytest.approx(0.05, abs=0.012)
    assert (p <= 0.05).any(axis=0).mean() > 0.35


def test_without_meetings_the_error_is_that_of_a_mean() -> None:
    deltas = np.random.default_rng(2).normal(0, 1, (50, 3))
    plain = deltas.std(axis=0, ddof=1) / math.sqrt(50)
    assert multiplicity.standard_error(deltas, None) == pytest.approx(plain)
    assert multiplicity.standard_error(deltas, [f"m{i}" for i in range(50)]) == pytest.approx(plain)


def test_by_meeting_by_hand() -> None:
    """Meetings {1, 1} and {0}: mean 2/3, residual sums 2/3 and -2/3, so sqrt(2 * 8/9) / 3."""
    found = multiplicity.standard_error(np.array([[1.0], [1.0], [0.0]]), ["a", "a", "b"])
    assert found[0] == pytest.approx(math.sqrt(16 / 9) / 3)


def test_the_error_by_meeting_is_that_of_the_bootstrap_by_meeting() -> None:
    random = np.random.default_rng(4)
    groups = [f"m{i}" for i in random.integers(80, size=600)]
    shared = {name: random.normal(0, 0.2) for name in sorted(set(groups))}
    deltas = random.normal(0, 0.3, 600)[:, None] + np.array([[shared[g]] for g in groups])
    low, high = intervals.means_with_intervals(deltas, groups).meetings[0]
    assert multiplicity.standard_error(deltas, groups)[0] == pytest.approx((high - low) / (2 * 1.96), rel=0.05)
    assert multiplicity.standard_error(deltas, groups)[0] > 1.3 * multiplicity.standard_error(deltas, None)[0]


def test_one_meeting_has_no_error() -> None:
    assert np.isnan(multiplicity.detectable(np.ones((3, 2)), ["a"] * 3)).all()


def test_a_detectable_effect_is_detected_four_times_in_five() -> None:
    """Simulated: 300 queries of spread 1, true effect as computed, two-sided z-test at .05."""
    assert multiplicity.factor() == pytest.approx(1.959964 + 0.841621, abs=1e-6)
    random = np.random.default_rng(6)
    effect = multiplicity.factor() / math.sqrt(300)
    means = random.normal(effect, 1, (4000, 300)).mean(axis=1)
    assert (np.abs(means) * math.sqrt(300) > 1.959964).mean() == pytest.approx(0.8, abs=0.02)
    found = multiplicity.detectable(random.normal(effect, 1, (300, 400)), None)
    assert found.mean() == pytest.approx(effect, rel=0.02)
