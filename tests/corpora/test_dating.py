"""The day of a recording: each source alone, their order, conflicts, and what is declined."""

from __future__ import annotations

from datetime import date

import pytest

from lossmap.corpora import dating
from lossmap.corpora.dating import Evidence
from lossmap.errors import LossmapError

RECEIVED = date(2025, 6, 30)
DAY = date(2025, 3, 4)


def of(**shown: object) -> date | None:
    return dating.resolve(Evidence(RECEIVED, **shown)).day  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name",
    [
        "2025-03-04 board.mp4",
        "board_2025_03_04.wav",
        "2025.3.4.wav",
        "VID_20250304_140506.mp4",
        "20250304140506.wav",
        "4 March 2025.m4a",
        "the 4th of March, 2025.m4a",
        "board March 4, 2025.m4a",
        "04Mar2025.wav",
        "Sept review Mar. 4 2025.wav",
        "2025-03-04 again 20250304.wav",
    ],
)
def test_a_name_with_one_day_gives_it(name: str) -> None:
    assert of(filename=name) == DAY


@pytest.mark.parametrize(
    "name",
    [
        "03-04-2025 board.mp3",
        "board 04.03.2025.m4a",
        "250304_1405.mp3",
        "04-03-25.mp3",
        "March 2025.mp3",
        "March 4.mp3",
        "2025-02-30.wav",
        "20251342.wav",
        "call_+4920250304731.wav",
        "2025-03-04 review of 2025-02-18.mp4",
        "2048-03-04.wav",
        "ZOOM0012.WAV",
        "",
    ],
)
def test_a_name_that_gives_no_day_or_several_is_declined(name: str) -> None:
    assert of(filename=name) is None


@pytest.mark.parametrize("name", ["25-03-2025.mp3", "03.25.2025.mp3"])
def test_digits_that_only_one_order_allows_are_read(name: str) -> None:
    assert of(filename=name) == date(2025, 3, 25)
    assert of(filename="05-05-2025.mp3") == date(2025, 5, 5)


@pytest.mark.parametrize(
    ("written", "offset"),
    [
        ("2025-03-04T23:30:00.000000Z", "UTC"),
        ("2025-03-04T00:30:00+0900", "+0900"),
        ("2025-03-04 23:30:00-08:00", "-08:00"),
        ("UTC 2025-03-04 23:30:00", "UTC"),
        ("2025:03:04 23:30:00", None),
        ("2025-03-04", None),
    ],
)
def test_a_container_time_keeps_its_day_and_its_offset(written: str, offset: str | None) -> None:
    (candidate,) = dating.resolve(Evidence(RECEIVED, container=written)).candidates
    assert (candidate.day, candidate.offset, candidate.written) == (DAY, offset, written)


@pytest.mark.parametrize(
    "written",
    ["1904-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "1903-12-31T19:00:00-0500", "1980-01-01", "2040-02-06T06:28:15Z"],
)
def test_an_unset_clock_is_no_evidence_and_the_name_decides(written: str) -> None:
    found = dating.resolve(Evidence(RECEIVED, container=written, filename="2025-03-04.wav"))
    assert (found.day, found.source, found.conflict) == (DAY, "filename", False)
    assert [source for source, _ in found.declined] == ["container"]


@pytest.mark.parametrize("written", ["0000-00-00 00:00:00", "2025", "2025-03-04T", "yesterday"])
def test_what_is_no_time_is_no_evidence(written: str) -> None:
    assert of(container=written) is None


@pytest.mark.parametrize(
    "turn",
    [
        "Good morning everybody, today is the 4th of March 2025.",
        "Right. Today is Tuesday, March 4, 2025, and we have four items.",
        "For the record, it is March 4th, 2025, two in the afternoon.",
        "This is being recorded on 4 March 2025.",
        "Recorded on 2025-03-04",
        "Today's date is March the 4th, 2025.",
    ],
)
def test_a_statement_that_the_meeting_is_that_day_gives_it(turn: str) -> None:
    assert of(transcript=["Can everybody hear me?", turn, "The deadline is 1 April 2025."]) == DAY


@pytest.mark.parametrize(
    "turn",
    [
        "The contract was signed on the 4th of March 2025.",
        "The last meeting was recorded on 4 March 2025.",
        "Her mail said, today is the 4th of March 2025.",
        "Suppose today is March 4, 2025.",
        "Today is not the 4th of March 2025.",
        "For the record, it is the 4 March 2025 version that we approved.",
        "Today is the 4th of March.",
        "Today is 03/04/2025.",
    ],
)
def test_a_day_that_is_mentioned_is_not_the_day(turn: str) -> None:
    assert of(transcript=[turn]) is None


def test_the_sources_decide_in_order_and_a_conflict_is_reported() -> None:
    shown = {"transcript": ["Today is 7 March 2025."], "filename": "2025-03-06.wav", "container": "2025-03-05"}
    found = dating.resolve(Evidence(RECEIVED, manual="4 March 2025", **shown))
    assert [candidate.source for candidate in found.candidates] == ["manual", "container", "filename", "transcript"]
    assert (found.day, found.source, found.conflict) == (DAY, "manual", True)
    assert dating.resolve(Evidence(RECEIVED, manual="2025-07-04", **shown)).source == "container"
    backward = dating.resolve(Evidence(RECEIVED, **shown), ["transcript", "filename"])
    assert (backward.source, len(backward.candidates)) == ("transcript", 2)
    agreed = dating.resolve(Evidence(RECEIVED, container="2025-03-04T23:59:59Z", filename="20250304.wav"))
    assert (agreed.source, agreed.conflict) == ("container", False)


def test_two_statements_of_different_days_are_declined() -> None:
    found = dating.resolve(Evidence(RECEIVED, transcript=["Today is 4 March 2025.", "Today is 5 March 2025."]))
    assert found == dating.Dated(None, None, (), (("transcript", "several days"),))


def test_a_source_unheard_of_is_refused() -> None:
    with pytest.raises(LossmapError, match="no such source"):
        dating.resolve(Evidence(RECEIVED), ["diary"])
