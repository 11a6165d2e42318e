"""Whom a question names: whole names, as they are written, the longest at each place."""

from __future__ import annotations

import pytest

from lossmap.index.table import Row
from lossmap.search import speakers

NAMES = ("Grad A", "Grad B", "Professor", "Professor B", "Marketing", "Ann", "Ann Lee", "Hon. Bo", "O'Dea", "Lee")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("What did Grad B say about the net?", ("Grad B",)),
        ("What did Grad B and then Grad A think, and Grad B again?", ("Grad B", "Grad A")),
        ("What did Professor B say?", ("Professor B",)),
        ("What did the Professor say?", ("Professor",)),
        ("What were Professor B’s and O'Dea's views?", ("Professor B", "O'Dea")),
        ("Ann Lee or Ann?", ("Ann Lee", "Ann")),
        ("What did Marketing say?", ("Marketing",)),
        ("What was said of marketing, by grad a?", ()),
        ("Did Grad AB, Annette, XAnn or ProfessorB speak?", ()),
        ("Hon. Bo, Hon Bo", ("Hon. Bo",)),
        ("", ()),
    ],
)
def test_names_are_met_whole_as_written_and_the_longest(text: str, found: tuple[str, ...]) -> None:
    assert speakers.named(text, NAMES) == speakers.named(text, reversed(NAMES)) == found


def test_a_longer_name_takes_its_words_from_a_shorter_one_within_it() -> None:
    assert speakers.named("Ann Lee spoke", ("Lee", "Ann Lee")) == ("Ann Lee",)
    assert speakers.named("Ann Lee spoke", ("Lee",)) == ("Lee",)


def test_without_names_nobody_is_named() -> None:
    assert speakers.named("anybody, and  nobody", ()) == ()


def test_signs_of_a_name_are_no_expression() -> None:
    assert speakers.named("A. and AB", ("A.", "(x)")) == ("A.",)
    assert speakers.named("who is (x)?", ("A.", "(x)")) == ("(x)",)


def test_the_speakers_of_an_index_have_chunks_and_a_name() -> None:
    rows = [
        Row("f", i, "demo", "m", "Demo", "en", "Demo m", None, speaker, ("Bo", "Silent"), 0.0, 1.0, "text")
        for i, speaker in enumerate(("Bo", "Unknown", "Ada", "Bo"))
    ]
    assert speakers.of(rows) == ("Ada", "Bo")
