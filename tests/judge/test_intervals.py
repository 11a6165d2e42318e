"""The shared resamples, both intervals, and the same bytes under any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from lossmap.judge import intervals


def sample(queries: int, columns: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((queries, columns))


def test_every_resample_draws_as_many_units_as_there_are() -> None:
    drawn = intervals.counts(37)
    assert drawn.shape == (intervals.RESAMPLES, 37)
    assert set(drawn.sum(axis=1, dtype=int)) == {37}
    assert abs(float(drawn.mean(axis=0).max()) - 1) < 0.05


def test_the_interval_by_query_is_that_of_a_plain_bootstrap() -> None:
    values = sample(200, 1)
    generator = np.random.default_rng(99)
    plain = values[generator.integers(200, size=(10_000, 200)), 0].mean(axis=1)
    found = intervals.means_with_intervals(values, None)
    assert found.queries[0] == pytest.approx(np.quantile(plain, (0.025, 0.975)), abs=0.002)
    assert found.mean[0] == pytest.approx(values.mean(), abs=1e-12)
    assert found.meetings.tolist() == found.queries.tolist()
    assert (found.query_count, found.meeting_count) == (200, 200)


def test_by_meeting_is_a_ratio_of_sums() -> None:
    """Two meetings, ten queries at 1 and one at 0: a resample gives 1, 10/11 or 0, never their plain mean of 1/2."""
    found = intervals.means_with_intervals(np.array([[1.0]] * 10 + [[0.0]]), ["a"] * 10 + ["b"])
    assert found.meeting_count == 2
    assert found.meetings[0].tolist() == [0.0, 1.0]
    assert found.mean[0] == pytest.approx(10 / 11)
    table = intervals._percentiles(np.array([[10.0], [0.0]]), np.array([10.0, 1.0]))
    assert table.tolist() == [[0.0, 1.0]]


def test_queries_that_move_together_widen_the_interval_by_meeting() -> None:
    values = np.repeat(sample(20, 1), 10, axis=0)
    found = intervals.means_with_intervals(values, [f"m{place // 10}" for place in range(200)])
    (low, high), (low_q, high_q) = found.meetings[0], found.queries[0]
    assert high - low > 2 * (high_q - low_q)


def test_meetings_of_one_query_each_give_the_interval_by_query() -> None:
    values = sample(50, 3)
    found = intervals.means_with_intervals(values, [f"m{place:02d}" for place in range(50)])
    assert found.meetings.tolist() == found.queries.tolist()


def test_a_paired_delta_is_narrower_than_its_parts_and_changes_sign_with_its_order() -> None:
    control = sample(300, 2)
    arm = control + 0.01 * sample(300, 2, seed=1)
    delta = intervals.paired(arm, control, None)
    assert (delta.queries[:, 0] > 0).all()
    back = intervals.paired(control, arm, None)
    assert delta.queries == pytest.approx(-back.queries[:, ::-1], abs=1e-12)


def test_one_arm_more_does_not_move_the_others() -> None:
    values = sample(120, 5)
    groups = [f"m{place % 17}" for place in range(120)]
    alone = intervals.means_with_intervals(values[:, :1], groups)
    beside = intervals.means_with_intervals(values, groups)
    assert alone.meetings[0] == pytest.approx(beside.meetings[0], abs=1e-12)


def test_the_order_of_meeting_names_is_the_order_of_clusters_not_of_queries() -> None:
    values = sample(60, 2)
    groups = [f"m{place % 7}" for place in range(60)]
    back = intervals.means_with_intervals(values[::-1], groups[::-1])
    assert back.meetings == pytest.approx(intervals.means_with_intervals(values, groups).meetings, abs=1e-12)


def test_threads_do_not_change_a_byte() -> None:
    values = sample(1576, 21) - 0.5
    groups = [f"m{place % 232}" for place in range(1576)]
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            estimate = intervals.means_with_intervals(values, groups)
            found.append((estimate.mean.tobytes(), estimate.queries.tobytes(), estimate.meetings.tobytes()))
    assert found[0] == found[1]


def test_products_with_the_counts_are_exact() -> None:
    """Integers in Python and float64 through BLAS agree to the last bit: the reason threads cannot matter."""
    values = sample(400, 1) - 0.5
    grid = 2.0**40
    drawn = intervals.counts(400)[:20]
    table = np.rint(values * grid)
    product = drawn.astype(float) @ table
    whole = [sum(int(n) * int(v) for n, v in zip(row, table[:, 0])) for row in drawn]
    assert [int(total) for total in product[:, 0]] == whole


def test_the_resamples_are_pinned() -> None:
    assert intervals.counts(6)[:2].tolist() == [[1, 1, 1, 1, 0, 2], [3, 1, 0, 0, 2, 0]]
