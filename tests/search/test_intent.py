"""The parser: every exact frame gives back what was put in, and what no frame fits is declined."""

from __future__ import annotations

import builtins
import random
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lossmap.search import intent
from lossmap.search.intent import Intent
from lossmap.transcript import MONTHS

EXACT = yaml.safe_load(intent.FRAMES.read_text(encoding="utf-8"))["exact"]
FRAMES = [(rule, frame["text"]) for rule in intent.RULES for frame in EXACT[rule]]
PHRASE = "Amber Heron safety review"
SLOTS = {
    "marker": PHRASE,
    "deferral": PHRASE,
    "team": "the retail billing team",
    "kind": "weekly sync",
    "month": "February",
    "year": "2024",
}


def expected(rule: str) -> Intent:
    if rule == "R6":
        return Intent(rule, team=SLOTS["team"], kind=SLOTS["kind"])
    return Intent(rule, PHRASE, (2024, 2) if rule == "R7" else (0, 0))


@pytest.mark.parametrize(("rule", "frame"), FRAMES)
def test_every_exact_frame_gives_its_slots_back(rule: str, frame: str) -> None:
    assert intent.parse(frame.format(**SLOTS)) == expected(rule)


@pytest.mark.parametrize(("rule", "frame"), FRAMES)
def test_case_space_courtesy_and_end_signs_do_not_matter(rule: str, frame: str) -> None:
    text = frame.format(**SLOTS)
    for said in (f"  {text.replace(' ', '  ')}\n", f"{text} Please.", f"Please, {text}", text.rstrip("?."), f"{text}?"):
        assert intent.parse(said) == expected(rule), said
    shouted = intent.parse(text.upper())
    assert shouted and shouted.rule == rule and shouted.month == expected(rule).month
    assert (shouted.subject, shouted.team) == (expected(rule).subject.upper(), expected(rule).team.upper())


def test_an_instruction_to_list_may_be_left_out_and_quotes_put_around() -> None:
    (frame,) = (text for rule, text in FRAMES if rule == "R4")
    first, _, rest = frame.partition("? ")
    assert rest, "the frame says to list"
    for said in (first + "?", frame):
        assert intent.parse(said.format(marker=f"“{PHRASE}”")) == Intent("R4", PHRASE)


@given(st.sampled_from(MONTHS), st.integers(1000, 2999))
def test_the_temporal_frame_comes_first(month: str, year: int) -> None:
    (frame,) = (text for rule, text in FRAMES if rule == "R7")
    found = intent.parse(frame.format(marker=PHRASE, month=month, year=year))
    assert found == Intent("R7", PHRASE, (year, MONTHS.index(month) + 1))
    assert "{month}" in frame and intent.compiled()[0][0] == "R7"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "?",
        "please",
        "What did they decide on the Amber Heron safety review?",
        "How many meetings discussed the ?",
        "How many meetings discussed the —?",
        "How many meetings in Smarch 2024 discussed the Amber Heron safety review?",
        "Tell me: how many meetings discussed the Amber Heron safety review?",
        "How many meetings discussed the Amber Heron safety review? And who was there?",
        "Who attended the most weekly sync sessions?",
    ],
)
def test_what_no_frame_fits_is_declined(text: str) -> None:
    assert intent.parse(text) is None


def test_no_retrieval_frame_is_taken_for_a_count() -> None:
    filler = {**SLOTS, "aspect": "the deadline", "aspects": "the deadline and the owner", "topic": "Amber Heron",
              "anchor": "QX-1", "project": "Amber Heron"}  # fmt: skip
    others = [frame["text"].format(**filler) for rule in EXACT if rule not in intent.RULES for frame in EXACT[rule]]
    assert others and [intent.parse(text) for text in others] == [None] * len(others)


@given(st.text(max_size=80))
def test_any_text_at_all_is_parsed_or_declined(text: str) -> None:
    assert intent.parse(text) is None or intent.parse(text).rule in intent.RULES  # type: ignore[union-attr]


@given(st.sampled_from(FRAMES), st.text("abcXYZ09 -_%.()'&", min_size=1, max_size=40), st.randoms())
def test_any_phrase_survives_its_frame(frame: tuple[str, str], phrase: str, _: random.Random) -> None:
    collapsed = " ".join(phrase.split())
    clean = collapsed.strip(intent.QUOTES).rstrip(".")
    if frame[0] == "R6" or collapsed != clean or not any(c.isalnum() for c in clean):
        return
    found = intent.parse(frame[1].format(**{**SLOTS, "marker": clean, "deferral": clean}))
    assert found and (found.rule, found.subject) == (frame[0], clean)


def test_the_parser_reads_the_exact_frames_and_no_other_file(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    real = builtins.open

    def watching(path: Any, *rest: Any, **options: Any) -> Any:
        opened.append(str(path))
        return real(path, *rest, **options)

    intent.compiled.cache_clear()
    monkeypatch.setattr(builtins, "open", watching)
    intent.parse("anything")
    assert opened == [str(intent.FRAMES)]
    assert len(intent.card()["expressions_sha256"]) == 64
