"""The formulas of fusion on small lists whose values are known, and their properties on any list."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lossmap import fuse

NORMALIZATIONS = (fuse.min_max, fuse.l2, fuse.z_score)
MEANS = (fuse.arithmetic_mean, fuse.geometric_mean, fuse.harmonic_mean)
LISTS = st.lists(st.lists(st.integers(0, 30), unique=True, max_size=12), min_size=1, max_size=3)
SCORES = st.lists(st.floats(0.0625, 100, width=32), min_size=1, max_size=20)


def one(*scores: float) -> tuple[np.ndarray, np.ndarray]:
    """A list of one query with two places empty below its hits."""
    return np.array([[*scores, 0.0, 0.0]]), np.array([[True] * len(scores) + [False, False]])


def columns(*shares: float) -> list[np.ndarray]:
    return [np.array([[share]]) for share in shares]


def test_min_max_spreads_a_list_from_the_least_share_to_one() -> None:
    assert fuse.min_max(*one(5.0, 3.0, 1.0)).tolist() == [[1.0, 0.5, 0.001, 0.0, 0.0]]
    assert fuse.min_max(*one(2.0, 2.0)).tolist() == [[1.0, 1.0, 0.0, 0.0]]
    assert fuse.min_max(*one(7.0)).tolist() == [[1.0, 0.0, 0.0]]
    assert fuse.min_max(*one(4.0, 2.0), lowest=0.25).tolist() == [[1.0, 0.25, 0.0, 0.0]]


def test_l2_divides_by_the_length_of_the_list() -> None:
    assert fuse.l2(*one(4.0, 3.0)).tolist() == [[0.8, 0.6, 0.0, 0.0]]
    assert fuse.l2(*one(0.0, 0.0)).tolist() == [[0.0] * 4]


def test_z_score_counts_sample_deviations_above_the_mean() -> None:
    scores = [9.0, 4.0, 3.0, 1.0]
    mean, deviation = statistics.mean(scores), statistics.stdev(scores)
    found = fuse.z_score(*one(*scores))[0]
    assert found[0] == pytest.approx((9 - mean) / deviation)
    assert found[1:].tolist() == [0.001, 0.001, 0.001, 0.0, 0.0]


@pytest.mark.parametrize("normalize", NORMALIZATIONS)
def test_an_empty_list_gives_no_shares(normalize) -> None:  # type: ignore[no-untyped-def]
    assert normalize(*one()).tolist() == [[0.0, 0.0]]
    assert normalize(np.zeros((2, 0)), np.zeros((2, 0), bool)).shape == (2, 0)


@given(SCORES)
def test_the_moments_are_those_of_the_library_in_double(scores: list[float]) -> None:
    mean, deviation = fuse.moments(*one(*scores))
    assert mean[0, 0] == pytest.approx(statistics.fmean(scores))
    spread = statistics.stdev(scores) if len(scores) > 1 else 0.0
    assert deviation[0, 0] == pytest.approx(spread, abs=1e-9)


@pytest.mark.parametrize("normalize", NORMALIZATIONS)
@given(SCORES)
def test_every_hit_gets_a_share_in_the_order_of_its_score_and_no_miss_does(normalize, scores) -> None:  # type: ignore[no-untyped-def]
    """The order holds down to the least share: a hit may lie closer to the bottom than what the bottom is given."""
    ordered = sorted(scores, reverse=True)
    shares = normalize(*one(*ordered))[0]
    assert (shares[: len(scores)] > 0).all() and shares[len(scores) :].tolist() == [0.0, 0.0]
    floor = 0.0 if normalize is fuse.l2 else fuse.LOWEST
    assert (np.diff(np.maximum(shares[: len(scores)], floor)) <= 0).all()


def test_an_item_that_one_leg_lacks_is_halved_by_one_mean_and_kept_by_the_others() -> None:
    weights = [0.5, 0.5]
    assert fuse.arithmetic_mean(columns(0.8, 0.0), weights)[0, 0] == 0.4
    assert fuse.geometric_mean(columns(0.8, 0.0), weights)[0, 0] == pytest.approx(0.8)
    assert fuse.harmonic_mean(columns(0.8, 0.0), weights)[0, 0] == pytest.approx(0.8)
    assert [mean(columns(0.0, 0.0), weights)[0, 0] for mean in MEANS] == [0.0, 0.0, 0.0]


def test_the_means_are_the_textbooks() -> None:
    a, b, left, right = 0.9, 0.3, 0.7, 0.3
    weights = [left, right]
    assert fuse.arithmetic_mean(columns(a, b), weights)[0, 0] == pytest.approx(left * a + right * b)
    assert fuse.geometric_mean(columns(a, b), weights)[0, 0] == pytest.approx(a**left * b**right)
    assert fuse.harmonic_mean(columns(a, b), weights)[0, 0] == pytest.approx(1 / (left / a + right / b))
    assert fuse.weighted_sum(columns(a, b), [2.0, 3.0])[0, 0] == pytest.approx(2 * a + 3 * b)


@given(st.floats(0.001, 1), st.floats(0.001, 1), st.integers(1, 99))
def test_the_means_lie_between_the_shares_and_in_their_order(a: float, b: float, percent: int) -> None:
    weights = [percent / 100, 1 - percent / 100]
    arithmetic, geometric, harmonic = (float(mean(columns(a, b), weights)[0, 0]) for mean in MEANS)
    low, high = min(a, b), max(a, b)
    tolerance = 1e-9
    assert low - tolerance <= harmonic <= geometric + tolerance <= arithmetic + 2 * tolerance <= high + 3 * tolerance


@pytest.mark.parametrize("mean", MEANS)
def test_the_precision_is_that_of_the_shares(mean) -> None:  # type: ignore[no-untyped-def]
    shares = [column.astype(np.float32) for column in columns(0.3, 0.7)]
    assert mean(shares, [np.float32(0.7), np.float32(0.3)]).dtype == np.float32
    for normalize in NORMALIZATIONS:
        assert normalize(np.ones((1, 3), np.float32), np.ones((1, 3), bool)).dtype == np.float32


@given(LISTS, st.integers(0, 3))
def test_aligned_legs_hold_every_item_once_with_the_share_of_each_leg(lists: list[list[int]], padding: int) -> None:
    depth = max(map(len, lists)) + padding
    legs = [np.array([[*items, *[fuse.ABSENT] * (depth - len(items))]], np.int32) for items in lists]
    shares = [np.where(leg == fuse.ABSENT, 0.0, leg + 100.0 * (j + 1)) for j, leg in enumerate(legs)]
    items, found = fuse.aligned(legs, shares)
    distinct = sorted({item for items in lists for item in items})
    assert items[0].tolist() == distinct + [fuse.ABSENT] * (items.shape[1] - len(distinct))
    for j, listed in enumerate(lists):
        expected = [item + 100.0 * (j + 1) if item in listed else 0.0 for item in distinct]
        assert found[j][0, : len(distinct)].tolist() == expected and not found[j][0, len(distinct) :].any()


@given(LISTS, st.integers(1, 120))
def test_rrf_is_the_textbook_sum_in_order_of_first_appearance(lists: list[list[int]], constant: int) -> None:
    expected: dict[int, float] = {}
    for items in lists:
        for rank, item in enumerate(items, 1):
            expected[item] = expected.get(item, 0.0) + 1 / (constant + rank)
    found = fuse.rrf(lists, constant)
    assert list(found) == list(expected) and found == pytest.approx(expected)


def test_weights_of_rrf_multiply_the_terms_of_their_leg() -> None:
    found = fuse.rrf([[1, 2], [2]], 30, [0.7, 0.3])
    assert found == pytest.approx({1: 0.7 / 31, 2: 0.7 / 32 + 0.3 / 31})


@given(st.dictionaries(st.integers(0, 200), st.sampled_from([0.1, 0.2, 0.3])))
def test_ranked_is_a_total_order(scores: dict[int, float]) -> None:
    order = fuse.ranked(scores, key=int)
    assert sorted(order) == sorted(scores)
    assert all((-scores[a], a) < (-scores[b], b) for a, b in zip(order, order[1:], strict=False))


def test_sums_run_from_left_to_right() -> None:
    """numpy adds pairwise, which an engine does not: the two differ in the last bit of such a list."""
    values = np.full((1, 1000), 0.1, np.float32)
    total = np.float32(0)
    for value in values[0]:
        total += value
    assert fuse._sum(values)[0, 0] == total != values.sum(axis=1)[0]
    assert fuse._sum(values)[0, 0] == pytest.approx(100, rel=1e-4) and math.isfinite(total)
