"""No chunk holds two speakers' words: walked against the injected segments, whatever the chunker believes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import planted
import pytest

from lossmap import layout
from lossmap.engine import marker
from lossmap.errors import LossmapError
from lossmap.index import inject, table
from lossmap.index.table import Row
from lossmap.layout import Layout
from lossmap.studies import one_speaker

LONG = " ".join(f"Sentence {i} is about the budget of the remote and of its buttons." for i in range(40))
TALK = planted.meeting("m1", ("Ada", LONG), ("Bo", "Yes."), ("Bo", "I  think so."), (" ", "Hm."), ("Ada", "Good."))
OTHER = planted.meeting("m2", ("Bo", "Hello."), ("Ada", " "), ("Bo", "Anybody?"))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, postgres: Any, unique_name: Any, tmp_path: Path) -> tuple[Layout, list[Row]]:
    """Injected and chunked by the real code."""
    indexes = {"mixed": {"documents": ["demo"], "scored": []}}
    at = planted.scale(monkeypatch, tmp_path, indexes, {}, {})
    held = layout.load("tiny", "mixed")
    planted.corpus(at, "demo", [TALK, OTHER], {}, {})
    schema = unique_name("speaker")
    with postgres() as conn:
        inject.inject(conn, schema, at.corpus("demo"), held.injection("demo"))
        table.build(conn, schema, ["demo"], held.index_folder)
        marker.drop_schema(conn, schema)
    return held, table.load(held.index_folder)


def place(rows: list[Row], text: str) -> int:
    return next(i for i, row in enumerate(rows) if row.text.startswith(text))


def test_every_chunk_and_every_segment_is_walked(world: tuple[Layout, list[Row]]) -> None:
    at, rows = world
    pieces = sum(row.speaker == "Ada" and row.meeting_id == "m1" for row in rows) - 1
    assert pieces == 4, "a long turn is several chunks, with words told twice"
    assert one_speaker.check(at, rows) == {
        "files": 2, "chunks": 8, "segments": 7, "runs": 5, "runs_in_several_chunks": 1, "merged_segments": 2,
        "by_unknown": 1, "of_several_speakers": 0,
    }  # fmt: skip
    assert one_speaker.check(at, rows[::-1])["chunks"] == 8


def broken(rows: list[Row], how: str) -> list[Row]:
    """A table as a wrong chunker, or a wrong hand, would leave it."""
    at = place(rows, "Yes.")
    yes, hm = rows[at], rows[place(rows, "Hm.")]
    changed = {
        "merged with the next speaker": replace(yes, text=f"{yes.text} {hm.text}"),
        "given to another": replace(yes, speaker="Ada"),
        "cut": replace(yes, text="Yes. I"),
        "begun late": replace(yes, text="I think so."),
    }
    if how in changed:
        return [changed[how] if row is yes else row for row in rows]
    if how == "lost":
        return [row for row in rows if row is not yes]
    last = max((row for row in rows if row.file_uuid == yes.file_uuid), key=lambda row: row.chunk_index)
    more = replace(last, chunk_index=last.chunk_index + 1)
    return [*rows, more if how == "told twice" else replace(more, file_uuid="0" * 8)]


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ("merged with the next speaker", "not what one speaker said"),
        ("given to another", "not what one speaker said"),
        ("cut", "not what one speaker said"),
        ("begun late", "not what one speaker said"),
        ("lost", "not what one speaker said"),
        ("told twice", "words that nobody said there"),
        ("of no file", "a file that was not injected"),
    ],
)
def test_a_chunk_of_two_speakers_or_of_none_raises(world: tuple[Layout, list[Row]], how: str, what: str) -> None:
    at, rows = world
    with pytest.raises(LossmapError, match=what) as refusal:
        one_speaker.check(at, broken(rows, how))
    assert refusal.value.exit_code == 3


def test_the_last_words_of_a_file_must_be_in_a_chunk(world: tuple[Layout, list[Row]]) -> None:
    at, rows = world
    with pytest.raises(LossmapError, match="words of a file are in no chunk"):
        one_speaker.check(at, [row for row in rows if row.text != "Good."])
