"""Many arms over the resamples of one corpus, and the interval of a rank correlation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from lossmap.judge import intervals, resampled
from lossmap.judge.agreement import Arm

DRAW = np.random.default_rng(3)
GROUPS = [f"m{place % 17}" for place in range(120)]


def drawn(values: np.ndarray, groups: list[str] = GROUPS) -> resampled.Deltas:
    return resampled.resample(values, groups)


def test_means_and_ends_are_those_of_paired_differences() -> None:
    values = DRAW.normal(0.01, 0.2, (120, 5))
    found, expected = drawn(values), intervals.paired(values, np.zeros_like(values), GROUPS)
    np.testing.assert_allclose(found.mean, expected.mean, atol=6e-7)
    np.testing.assert_allclose(found.ends, expected.meetings, atol=2e-6)
    assert (found.queries, found.meetings) == (120, 17)


def test_equal_arms_are_tied_in_every_resample() -> None:
    values = DRAW.normal(size=(120, 2))
    found = drawn(np.column_stack((values, values[:, 0], np.zeros(120))))
    assert (found.resamples[:, 0] == found.resamples[:, 2]).all() and not found.resamples[:, 3].any()
    assert not resampled.order(found.resamples)[:, 1].any()


def test_tau_of_every_row_is_that_of_scipy() -> None:
    first, second = (np.round(DRAW.normal(size=(200, 7)), 1) for _ in range(2))
    found = resampled.tau_b(resampled.order(first), resampled.order(second))
    expected = [stats.kendalltau(x, y).statistic for x, y in zip(first, second)]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_constant_side_has_no_tau() -> None:
    first, second = np.zeros((2, 4)), np.arange(8.0).reshape(2, 4)
    assert np.isnan(resampled.tau_b(resampled.order(first), resampled.order(second))).all()


def corpora(**means: list[float]) -> dict[str, resampled.Deltas]:
    """Corpora whose queries vary little around the means of their arms."""
    return {
        name: drawn(np.asarray(values) + DRAW.normal(0, 0.01, (120, len(values)))) for name, values in means.items()
    }


def test_the_matrix_has_every_pair_with_its_interval() -> None:
    rows = resampled.matrix(corpora(a=[0.1, 0.2, 0.3, 0.4], b=[0.1, 0.2, 0.3, 0.4], c=[0.4, 0.3, 0.2, 0.1]), 4)
    assert [(row["corpora"], row["tau_b"]) for row in rows] == [
        (["a", "b"], 1.0),
        (["a", "c"], -1.0),
        (["b", "c"], -1.0),
    ]
    assert [row["tau_b_interval"] for row in rows] == [[1.0, 1.0], [-1.0, -1.0], [-1.0, -1.0]]
    assert {row["undefined"] for row in rows} == {0.0}


def test_noise_widens_the_interval() -> None:
    noisy = {name: drawn(np.array([0.1, 0.2, 0.3]) + DRAW.normal(0, 1.0, (120, 3))) for name in "ab"}
    low, high = resampled.matrix(noisy, 3)[0]["tau_b_interval"]
    assert low < 0 < high


def test_two_corpora_are_resampled_apart() -> None:
    """The same values twice: drawn alike, every resample would agree with itself and the interval be a point."""
    values = DRAW.normal(0, 1.0, (120, 5))
    row = resampled.matrix({"a": drawn(values), "b": drawn(values)}, 5)[0]
    assert row["tau_b"] == 1.0 and row["tau_b_interval"][0] < 0.9


@pytest.mark.parametrize("arms", [0, 2])
def test_few_arms_are_no_matrix(arms: int) -> None:
    row = resampled.matrix(corpora(a=[0.1] * arms, b=[0.2] * arms), arms)[0]
    assert row["tau_b"] is None and row["tau_b_interval"] is None and row["undefined"] is None


def test_one_meeting_has_no_interval() -> None:
    values = DRAW.normal(size=(120, 3))
    row = resampled.matrix({"a": drawn(values), "b": drawn(values, ["m"] * 120)}, 3)[0]
    assert row["tau_b"] == 1.0 and row["tau_b_interval"] is None


def test_further_corpora_take_sides_where_the_first_two_disagree() -> None:
    found = corpora(a=[0.1, 0.1], b=[0.2, -0.1], c=[0.3, 0.2], d=[0.3, -0.2])
    found["e"] = drawn(np.zeros((120, 2)))
    arms = [Arm(name, "f", "c", "axis", {}) for name in ("alike", "split")]
    (row,) = resampled.adjudicate(found, arms)
    assert (row["arm"], row["between"]) == ("split", ["a", "b"])
    assert {name: (side["side"], side["clear"]) for name, side in row["sides"].items()} == {
        "c": ("first", True), "d": ("second", True), "e": ("neither", False),
    }  # fmt: skip
    assert row["count"] == {"first": 1, "second": 1, "neither": 1}
    assert resampled.adjudicate(corpora(a=[0.1]), arms[:1]) == []
