"""Sources of a recording's date over the labelled set: what the set promises, and how its parts are counted."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
import yaml

from lossmap import canon
from lossmap.corpora.dating import SOURCES, resolve
from lossmap.studies import dated, dating, stage4
from lossmap.studies.dated import Moment, Recording, Shown
from lossmap.studies.dating import Outcome

DAY, OTHER = date(2025, 3, 4), date(2025, 2, 18)


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return stage4.STUDIES["dates"](None, "stage4")  # type: ignore[arg-type]


def recording(**shown: tuple[str | None, date | None]) -> Recording:
    sources = {name: Shown("kind", *shown.get(name, (None, None))) for name in dated.SOURCES}
    return Recording("one", DAY, date(2025, 6, 1), sources, (sources["transcript"].text or "",))


def test_a_moment_is_written_in_its_own_zone_without_a_locale() -> None:
    at = Moment(datetime(2023, 11, 21, 22, 5, 6, tzinfo=UTC).astimezone(dated.timezone(timedelta(minutes=-300))))
    assert (
        f"{at:%Y-%m-%dT%H:%M:%S%z}|{at:%A %o of %B %W}"
        == "2023-11-21T17:05:06-0500|Tuesday 21st of November twenty twenty-three"
    )
    assert f"{at:%w %e.%n.%y %j %V %s %I%p %Z}" == "twenty-first 21.11.23 325 2023-W47-2 1700604306 5PM -05:00"
    assert [dated._ordinal(day) for day in (1, 12, 20, 30, 31)] == [
        "first",
        "twelfth",
        "twentieth",
        "thirtieth",
        "thirty-first",
    ]
    assert not Moment(datetime(2025, 3, 4)).clear and Moment(datetime(2025, 3, 3)).clear


def test_the_set_is_the_same_everywhere_and_holds_every_form() -> None:
    some = dated.recordings()
    assert some == dated.recordings() and some[:5] == dated.recordings(5) and some != dated.recordings(600, 1)
    assert len({one.name for one in some}) == len(some) == dated.RECORDINGS
    kinds = {
        (source, re.sub(", (clear|ambiguous)$", "", one.shown[source].kind)) for one in some for source in dated.SOURCES
    }
    forms = yaml.safe_load(dated.FORMS.read_text(encoding="utf-8"))
    assert kinds == {(source, card["kind"]) for source in dated.SOURCES for card in forms[source]}
    assert tuple(source.name for source in SOURCES) == dated.SOURCES


def test_a_form_that_can_be_read_in_two_ways_says_nothing() -> None:
    for one in dated.recordings():
        assert one.received >= one.day
        for shown in one.shown.values():
            assert not shown.kind.endswith("ambiguous") or (shown.says is None and one.day.day <= 12)
            assert not shown.kind.endswith("clear") or shown.says == one.day


def test_gold_needs_a_source_that_says_the_day() -> None:
    assert recording().gold is None and not recording().conflict
    exported = recording(container=("2025-02-18", OTHER))
    assert exported.gold is None and not exported.conflict
    both = recording(container=("2025-02-18", OTHER), filename=("2025-03-04.wav", DAY))
    assert both.gold == DAY and both.conflict and both.tells("filename") and not both.tells("container")


def test_every_recording_is_right_wrong_unread_or_rightly_declined() -> None:
    outcomes = [Outcome(DAY, DAY, DAY), Outcome(DAY, DAY, OTHER), Outcome(DAY, None, OTHER), Outcome(DAY, DAY, None),
                Outcome(DAY, None, None)]  # fmt: skip
    found = dating.measured(outcomes)
    counts = ("recordings", "tells", "attempted", "right", "wrong", "wrong_with_nothing_to_find", "declined_with_gold")
    assert [found[name] for name in counts] == [5, 3, 3, 1, 2, 1, 1]
    assert found["precision"] == found["recall"] == pytest.approx(1 / 3)
    assert found["interval"]["precision"] == [0.0, 1.0]
    nothing = dating.measured(outcomes[-1:])
    assert nothing["precision"] is None and nothing["interval"] == {"precision": None, "recall": None}


def test_a_conflict_is_won_by_the_source_that_says_the_day() -> None:
    exported = recording(container=("2025-02-18", OTHER), filename=("2025-03-04.wav", DAY))
    matter = recording(container=("2025-03-04", DAY), filename=("order of 18 February 2025.wav", None))
    unread = recording(container=("2025-03-04", DAY), filename=("18th Feb.wav", OTHER))
    some = [exported, matter, unread]
    found = dating.conflicts(some, [resolve(dating.evidence(one)) for one in some])
    names = ("recordings", "reported", "with_a_right_source", "won_by_the_right_source", "reported_without_one")
    assert [found[name] for name in names] == [2, 1, 2, 1, 1]
    assert (found["precision_where_reported"], found["precision_elsewhere"]) == (0.5, 1.0)
    chosen, reverse, *_ = dating.orders(some)
    assert (chosen["right"], reverse["right"], reverse["delta"]) == (2, 2, 0.0)


def test_the_transcript_is_shown_whole_and_the_label_is_not() -> None:
    one = next(one for one in dated.recordings() if one.gold and one.shown["manual"].text is None)
    seen = dating.evidence(one)
    assert seen.transcript == one.said and len(one.said) == 4 and seen.received == one.received
    assert dating.evidence(replace(one, day=OTHER)) == seen


def test_the_document_adds_up_and_is_the_same_twice(document: dict[str, Any]) -> None:
    assert canon.dumps(document) == canon.dumps(stage4.STUDIES["dates"](None, "stage4"))  # type: ignore[arg-type]
    label = document["labelled"]
    assert label["dated"] + label["undatable"] == label["recordings"] == 600
    for row in [*document["rows"], document["combined"]]:
        assert (row["corpus"], row["tier"], row["judged_by"]) == ("dating", "A", "constructed")
        assert row["attempted"] == row["right"] + row["wrong"]
        low, high = row["interval"]["precision"]
        assert low <= row["precision"] <= high
        kinds = [kind for kind in label["by_kind"] if kind["source"] == row["source"]]
        failed = [one for one in document["failures"] if one["source"] == row["source"]]
        if kinds:
            assert sum(kind["recordings"] for kind in kinds) == 600
            assert sum(kind["tells"] for kind in kinds) == row["tells"]
            assert sum(one["wrong"] for one in failed) == row["wrong"]
            assert sum(one["declined_with_gold"] for one in failed) == row["declined_with_gold"]
    chosen = document["precedence"][0]
    assert (chosen["name"], chosen["delta"], chosen["interval"]) == ("chosen", 0.0, [0.0, 0.0])
    assert chosen["right"] == document["combined"]["right"]


def test_an_alone_order_is_its_row(document: dict[str, Any]) -> None:
    alone = {row["order"]: row["right"] for row in document["precedence"]}
    assert all(alone[row["source"]] == row["right"] for row in document["rows"])
