"""Sign flips: whole meetings or single queries, exact sums, the p of a plain loop."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from lossmap.judge import intervals, permutation
from lossmap.judge.permutation import ALL, FLIPS, p_values


def sample(queries: int, columns: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.02, 0.2, (queries, columns))


def exhaustive(deltas: np.ndarray, groups: list[str]) -> float:
    """The p over all 2^C flips of meetings, in plain Python."""
    sums = [sum(d for d, g in zip(deltas.tolist(), groups) if g == name) for name in sorted(set(groups))]
    flipped = [abs(sum(s * d for s, d in zip(signs, sums))) for signs in product((-1, 1), repeat=len(sums))]
    return float(np.mean([total >= abs(sum(sums)) - 1e-9 for total in flipped]))


def test_the_signs_are_fair_pinned_and_of_one_magnitude() -> None:
    drawn = permutation.signs(37)
    assert drawn.shape == (FLIPS, 37) and set(np.unique(drawn)) == {-1, 1}
    assert np.abs(drawn.mean(axis=0)).max() < 0.05
    assert permutation.signs(6)[:2].tolist() == [[1, 1, 1, 1, 1, -1], [1, 1, -1, -1, 1, 1]]


@pytest.mark.parametrize("clusters", [3, 6, 9])
def test_p_by_meeting_is_that_of_every_possible_flip(clusters: int) -> None:
    deltas, groups = sample(40, 1, clusters), [f"m{place % clusters}" for place in range(40)]
    found = p_values(deltas, groups)[ALL]
    assert found.meetings[0] == pytest.approx(exhaustive(deltas[:, 0], groups), abs=0.02)


def test_p_by_query_is_that_of_a_plain_loop_over_the_same_signs() -> None:
    deltas = sample(50, 2)
    sums = np.array(
        [[float(np.dot(row, column)) for column in deltas.T] for row in permutation.signs(50).astype(float)]
    )
    plain = (1 + (np.abs(sums) >= np.abs(deltas.sum(axis=0))).sum(axis=0)) / (1 + FLIPS)
    assert p_values(deltas)[ALL].queries.tolist() == plain.tolist()


def test_an_arm_that_equals_its_control_has_p_one_and_none_has_zero() -> None:
    table = np.column_stack((np.zeros(60), np.full(60, 0.5)))
    found = p_values(table, [f"m{place}" for place in range(60)])[ALL]
    assert found.queries.tolist() == [1.0, 1 / (1 + FLIPS)] and found.meetings.tolist() == found.queries.tolist()


def test_p_is_two_sided_and_has_no_unit() -> None:
    deltas, groups = sample(80, 3), [f"m{place % 11}" for place in range(80)]
    found, mirrored, halved = (p_values(factor * deltas, groups)[ALL] for factor in (1, -1, 0.5))
    for other in (mirrored, halved):
        assert found.meetings.tolist() == other.meetings.tolist()
        assert found.queries.tolist() == other.queries.tolist()


def test_queries_that_move_together_are_one_observation() -> None:
    """Ten meetings of twenty equal queries: by query a certainty, by meeting what ten numbers can show."""
    deltas = np.repeat([0.3] * 6 + [-0.2] * 4, 20)[:, None]
    found = p_values(deltas, [f"m{place // 20}" for place in range(200)])[ALL]
    assert found.meetings[0] > 0.1 > 0.001 > found.queries[0]


def test_a_class_takes_its_part_of_the_flips_and_all_is_their_sum() -> None:
    deltas, groups = sample(90, 2), [f"m{place % 8}" for place in range(90)]
    classes = ["lookup" if place % 3 else "summarize" for place in range(90)]
    found, whole = p_values(deltas, groups, classes), p_values(deltas, groups)
    assert sorted(found) == ["all", "lookup", "summarize"]
    assert found[ALL].meetings.tolist() == whole[ALL].meetings.tolist()
    assert found[ALL].queries.tolist() == whole[ALL].queries.tolist()
    keep = np.array([name == "lookup" for name in classes])
    alone = p_values(deltas[keep], [g for g, kept in zip(groups, keep) if kept])[ALL]
    assert found["lookup"].meetings.tolist() == alone.meetings.tolist()
    assert found["lookup"].queries == pytest.approx(alone.queries, abs=0.03)


def test_under_the_null_p_is_uniform() -> None:
    """Of 400 columns without an effect about a twentieth lie below .05: neither none nor many."""
    deltas = np.random.default_rng(5).normal(0, 1, (120, 400))
    found = p_values(deltas, [f"m{place % 40}" for place in range(120)])[ALL]
    for p in (found.meetings, found.queries):
        assert 0.02 < (p <= 0.05).mean() < 0.09
        assert 0.4 < p.mean() < 0.6


def test_one_arm_more_does_not_move_the_others() -> None:
    deltas, groups = sample(70, 6), [f"m{place % 9}" for place in range(70)]
    alone, beside = p_values(deltas[:, :1], groups)[ALL], p_values(deltas, groups)[ALL]
    assert (alone.meetings[0], alone.queries[0]) == (beside.meetings[0], beside.queries[0])


def test_sums_on_the_grid_are_exact() -> None:
    exact, grid = intervals.on_grid(sample(300, 1))
    drawn = permutation.signs(300)[:20]
    whole = [sum(int(s) * int(v) for s, v in zip(row, exact[:, 0])) for row in drawn]
    assert [int(total) for total in (drawn.astype(float) @ exact)[:, 0]] == whole
    assert exact / grid == pytest.approx(sample(300, 1), abs=1e-11)


def test_threads_do_not_move_a_p() -> None:
    deltas, groups = sample(1576, 21), [f"m{place % 232}" for place in range(1576)]
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            some = p_values(deltas, groups)[ALL]
            found.append((some.meetings.tobytes(), some.queries.tobytes()))
    assert found[0] == found[1]
