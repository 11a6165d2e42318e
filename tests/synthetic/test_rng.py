"""Pinned draws: whatever changes one of them changes every corpus."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lossmap.errors import LossmapError
from lossmap.synthetic.rng import Rng, derive


def test_the_stream_and_the_sub_seed_have_their_published_values() -> None:
    rng = Rng(12345)
    assert [rng.next_u64() for _ in range(3)] == [2454886589211414944, 3778200017661327597, 2205171434679333405]
    assert Rng(1).random() == pytest.approx(0.566561575172, abs=1e-12)
    assert derive("a", 1) == 3195065712535284873


def test_every_method_is_pinned() -> None:
    rng = Rng(derive(4217, "test"))
    drawn = [
        rng.randint(1, 6),
        rng.choice("abc"),
        rng.weighted("xyz", [1, 0, 2]),
        rng.shuffle(range(5)),
        rng.sample("lmnop", 2),
        round(rng.gauss(), 9),
        round(rng.lognormal(100, 0.5, 1, 1000), 6),
    ]
    assert drawn == [4, "b", "z", [3, 0, 4, 2, 1], ["n", "p"], 0.147037865, 179.883559]


@given(st.integers(0, 2**64 - 1), st.integers(-50, 50), st.integers(0, 100))
def test_draws_stay_in_their_range(seed: int, low: int, width: int) -> None:
    rng = Rng(seed)
    assert low <= rng.randint(low, low + width) <= low + width
    assert 0.0 <= rng.random() < 1.0
    assert 10 <= rng.lognormal(100, 3.0, 10, 200) <= 200
    assert sorted(rng.shuffle(range(width))) == list(range(width))
    assert rng.weighted("ab", [0, 1]) == "b"


def test_the_normal_draw_has_mean_zero_and_unit_variance() -> None:
    rng = Rng(7)
    draws = [rng.gauss() for _ in range(20_000)]
    assert abs(sum(draws) / len(draws)) < 0.03
    assert math.isclose(sum(d * d for d in draws) / len(draws), 1.0, abs_tol=0.04)


def test_a_sample_larger_than_its_pool_says_so() -> None:
    with pytest.raises(LossmapError, match="exhausted"):
        Rng(1).sample([1, 2], 3)


def test_sub_streams_differ_by_every_part() -> None:
    assert (
        len({derive(1, "render", "a"), derive(1, "render", "b"), derive(2, "render", "a"), derive(1, "timing", "a")})
        == 4
    )
