"""Synthetic timings: the stated rate, gap and minimum, and a guard against reading seconds off them."""

from __future__ import annotations

import pytest

from lossmap.corpora import timing
from lossmap.errors import LossmapError
from lossmap.transcript import Turn


def turns(*texts: str) -> tuple[Turn, ...]:
    return tuple(Turn(i, "A", text) for i, text in enumerate(texts))


def test_rate_gap_minimum_and_blank_turns() -> None:
    out, provenance = timing.timed(turns("one two three four five", "", "yes", "a b c"))
    assert [(t.start, t.end) for t in out] == [(0.0, 2.0), (None, None), (2.25, 2.75), (3.0, 4.2)]
    assert provenance["timing_source"] == "synthetic" and provenance["filled"] == 3
    assert provenance["params"]["label"] == "uniform_rate_v1"


def test_given_times_stay_and_the_rest_follow_the_latest_end() -> None:
    given = (Turn(0, "A", "hi", 10.0, 8.0), Turn(1, "B", "one two three four five"))
    out, provenance = timing.timed(given)
    assert out[0] == given[0] and (out[1].start, out[1].end) == (10.25, 12.25)
    assert provenance["timing_source"] == "synthetic" and provenance["filled"] == 1


def test_all_given_is_not_called_synthetic() -> None:
    given = (Turn(0, "A", "hi", 0.0, 1.0), Turn(1, "B", ""))
    assert timing.timed(given) == (given, {"timing_source": "supplied", "params": {}, "filled": 0})


def test_many_turns_stay_on_three_decimals() -> None:
    out, _ = timing.timed(turns(*["three little words"] * 5000))
    assert all(round(t.start, 3) == t.start and round(t.end, 3) == t.end for t in out)
    assert out[-1].end == pytest.approx(5000 * 1.2 + 4999 * 0.25)


@pytest.mark.parametrize("source", ["synthetic", "supplied", None])
def test_seconds_are_refused_on_anything_not_measured(source: str | None) -> None:
    rows = [{"meeting_id": "a", "timing_source": "real"}, {"meeting_id": "b", "timing_source": source}]
    timing.assert_real_timings(rows[:1])
    with pytest.raises(LossmapError, match="not measurements") as caught:
        timing.assert_real_timings(rows)
    assert "1 of 2 files" in str(caught.value) and caught.value.exit_code == 2
