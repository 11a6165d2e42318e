"""Agreement of two corpora about arms: the arithmetic and its edges."""

from __future__ import annotations

import random

import pytest
from scipy import stats

from lossmap.errors import LossmapError
from lossmap.judge import agreement
from lossmap.judge.agreement import Arm

PAIR = ("real", "made")


def arms(
    first: list[float], second: list[float], family: str = "f", level: tuple[float, float] = (0.1, 0.3)
) -> list[Arm]:
    levels = dict(zip(PAIR, level))
    return [
        Arm(f"a{n}", family, f"{family}-control", "axis", {"real": x, "made": y}, levels)
        for n, (x, y) in enumerate(zip(first, second, strict=True))
    ]


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        (0.0, 0.0, "inert"),
        (0.0, 1e-6, "one-sided"),
        (-1e-6, 0.0, "one-sided"),
        (0.1, 1e-6, "agree"),
        (-0.1, -0.2, "agree"),
        (0.1, -1e-6, "disagree"),
    ],
)
def test_a_verdict_reads_signs_alone(first: float, second: float, verdict: str) -> None:
    assert agreement.verdict(first, second) == verdict


def test_six_decimals_are_the_only_tolerance() -> None:
    assert agreement.delta(0.1000004, 0.1) == 0.0 and agreement.delta(0.1, 0.1000004) == 0.0
    assert agreement.delta(0.1000006, 0.1) == 1e-6
    assert str(agreement.delta(0.1, 0.1000001)) == "0.0"


def test_the_rate_counts_arms_that_moved_on_both() -> None:
    found = agreement.signs(arms([0.1, 0.1, 0.0, 0.0, -0.1], [0.2, -0.2, 0.0, 0.3, -0.4]), PAIR)
    assert found == {"agree": 2, "disagree": 1, "inert": 1, "one_sided": 1, "rate": 2 / 3}
    assert agreement.signs(arms([0.0], [0.0]), PAIR)["rate"] is None


@pytest.mark.parametrize(("turn", "expected"), [(1, 1.0), (-1, -1.0)])
def test_coefficients_read_one_at_the_extremes(turn: int, expected: float) -> None:
    found = agreement.coefficients([1.0, 2.0, 3.0, 4.0], [turn * value for value in (1.0, 2.0, 3.0, 4.0)])
    assert (found["tau_b"], found["rho"], found["r"], found["note"]) == (expected, expected, expected, None)
    assert found["n"] == 4 and 0 < found["tau_p"] < 0.1


@pytest.mark.parametrize(
    ("first", "second", "note"),
    [
        ([1.0, 2.0], [1.0, 2.0], agreement.TOO_FEW),
        ([], [], agreement.TOO_FEW),
        ([0.0, 0.0, 0.0], [1.0, 2.0, 3.0], agreement.CONSTANT),
        ([1.0, 2.0, 3.0], [5.0, 5.0, 5.0], agreement.CONSTANT),
    ],
)
def test_what_says_nothing_is_null_and_not_zero(first: list[float], second: list[float], note: str) -> None:
    found = agreement.coefficients(first, second)
    assert found["note"] == note and found["n"] == len(first)
    assert {found[name] for name in ("tau_b", "tau_p", "rho", "rho_p", "r", "r_p")} == {None}


def test_tau_corrects_for_ties() -> None:
    first, second = [0.0, 0.0, 1.0, 2.0], [0.0, 0.5, 1.0, 1.0]
    # Six pairs, one tied on each side: four concordant, over the root of five by five.
    assert agreement.coefficients(first, second)["tau_b"] == 0.8


def test_of_equal_arms_the_last_by_name_wins() -> None:
    several = arms([0.2, 0.3, 0.3], [0.1, 0.1, 0.1])
    assert agreement.winners(several, PAIR) == {
        "real": {"arm": "a2", "delta": 0.3}, "made": {"arm": "a2", "delta": 0.1}, "same": True,
    }  # fmt: skip
    assert agreement.winner([], "real") is None and agreement.winners([], PAIR)["same"] is None


def test_a_range_is_the_highest_minus_the_lowest() -> None:
    assert agreement.ranges(arms([-0.1, 0.1], [-0.4, 0.2]), PAIR) == {
        "real": 0.2,
        "made": 0.6,
        "ratio": pytest.approx(3),
    }
    assert agreement.ranges(arms([0.1, 0.1], [0.1, 0.2]), PAIR)["ratio"] is None


def test_percents_leave_the_ranks_of_a_family_alone() -> None:
    draw = random.Random(5)
    for _ in range(50):
        values = [[round(draw.uniform(-0.1, 0.1), 3) for _ in range(8)] for _ in PAIR]
        level = (draw.uniform(0.01, 0.9), draw.uniform(0.01, 0.9))
        assert agreement.family_invariance(arms(*values, level=level), PAIR)["f"]["same"]


def test_percents_may_move_the_ranks_of_families_with_several_controls() -> None:
    small, large = arms([0.1, 0.2, 0.3], [0.1, 0.2, 0.3], "f"), arms([0.15, 0.25], [0.15, 0.25], "g", (10.0, 0.3))
    found = agreement.family_invariance([*small, *large], PAIR)
    assert found["f"]["same"] and not found["pooled"]["same"]
    assert found["pooled"]["delta"]["tau_b"] == 1.0 > found["pooled"]["percent"]["tau_b"]


def test_a_family_with_two_controls_is_refused() -> None:
    mixed = [*arms([0.1, 0.2, 0.3], [0.1, 0.2, 0.3]), *arms([0.15, 0.25], [0.15, 0.25], level=(10.0, 0.3))]
    with pytest.raises(LossmapError, match="differ within a family"):
        agreement.family_invariance(mixed, PAIR)


def test_an_arm_of_two_families_under_one_control_counts_once() -> None:
    one, other = Arm("x", "f", "c", "", {"real": 1, "made": 1}), Arm("x", "g", "c", "", {"real": 1, "made": 1})
    apart = Arm("x", "h", "another", "", {"real": 1, "made": 1})
    assert agreement.distinct([one, other, apart]) == [one, apart]


def test_a_report_holds_families_the_pool_axes_and_winners() -> None:
    both = [*arms([0.1, -0.2, 0.3], [0.2, -0.1, 0.4], "f"), *arms([0.0, 0.1, 0.2], [0.0, -0.1, -0.3], "g")]
    found = agreement.report(both, PAIR)
    assert list(found["rank_agreement"]) == ["f", "g", "pooled"] and found["rank_agreement"]["pooled"]["n"] == 6
    assert found["rank_agreement"]["f"]["tau_b"] == 1.0 and found["rank_agreement"]["g"]["tau_b"] == -1.0
    assert found["by_axis"]["axis"]["arms"] == 6 and found["by_axis"]["axis"]["disagree"] == 2
    assert set(found["winner"]) == {"f", "g"} and not found["winner"]["g"]["same"]
    expected = stats.kendalltau([0.1, -0.2, 0.3, 0, 0.1, 0.2], [0.2, -0.1, 0.4, 0, -0.1, -0.3]).statistic
    assert found["rank_agreement"]["pooled"]["tau_b"] == pytest.approx(expected, abs=5e-5)
