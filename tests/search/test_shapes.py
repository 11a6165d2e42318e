"""What the generic frame reads in a question; the sentences are ours, none is a wording of the generated corpus."""

from __future__ import annotations

import ast
import datetime
import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lossmap.search import intent, shapes
from lossmap.search.shapes import EVENTS, FACET, FILES, LIST, Asked, Declined, Period


def month(year: int, number: int) -> Period:
    return Period(*shapes.month_range(year, number))


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("Which speakers came to the budget rounds?", FACET),
        ("Who spoke at the most budget rounds?", FACET),
        ("What people joined the harbour talks?", FACET),
        ("Which recordings mention granite?", LIST),
        ("What sessions mention granite?", LIST),
        ("List every session about granite.", LIST),
        ("Give me all the calls that mention granite", LIST),
        ("Every single meeting about granite, please", LIST),
        ("How often was granite mentioned?", EVENTS),
        ("How many times did we mention granite?", EVENTS),
        ("What is the number of times granite was mentioned?", EVENTS),
        ("How many mentions of granite were there in total?", EVENTS),
        ("In total, how many meetings covered granite?", FILES),
        ("How many of our weekly calls covered granite?", FILES),
        ("What is the count of sessions about granite?", FILES),
        ("Count the meetings about granite", FILES),
    ],
)
def test_a_signal_decides_the_shape(text: str, shape: str) -> None:
    assert shapes.shape_of(text) == shape


@pytest.mark.parametrize(
    "text",
    ["When did granite arrive?", "How many decisions in our meetings concern granite?", "Summarise the meetings.",
     "How many people in the meetings mentioned granite?", "Which meeting mentioned granite first?", ""],
)  # fmt: skip
def test_what_counts_nothing_of_the_corpus_is_declined(text: str) -> None:
    with pytest.raises(Declined, match="no_shape"):
        shapes.parse(text)


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("How many meetings discussed the granite quota?", "granite quota"),
        ("Which meetings talked about raising the granite quota?", "granite quota"),
        ("How many calls said they would talk about regarding   the granite quota ?", "granite quota"),
        ("How many meetings covered the reference architecture?", "reference architecture"),
        ("How many meetings covered granite 2.1?", "granite 2.1"),
        ("Which meetings mention granite? Please list them all.", "granite"),
        ("Which meetings mention granite, and list all of them please", "granite"),
        ("Which meetings mention granite? Thanks!", "granite"),
        ("Please, list every meeting that mentions granite", "granite"),
        ("How many meetings mention granite, and when was it?", "granite"),
        ("How many meetings mention granite across all of our recordings?", "granite"),
        ("How many mentions of granite were there in total?", "granite"),
        ('How many meetings covered "the granite quota"?', "the granite quota"),
        ("How many times in total did we decide to sell the quarry?", "sell the quarry"),
    ],
)
def test_the_subject_is_what_follows_the_last_link_verb(text: str, subject: str) -> None:
    asked = shapes.parse(text)
    assert (asked.subject, asked.phrase) == (subject, True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "Who came to the most budget rounds of the port crew, and how many did they attend?",
            "budget rounds port crew",
        ),
        ("In how many meetings was the granite quota mentioned?", "granite quota"),
        ("How often was the granite quota raised in our sessions?", "granite quota"),
        ("Which speakers joined the harbour crew's rounds?", "harbour crew rounds"),
    ],
)
def test_without_a_link_verb_or_with_nothing_after_it_all_content_words_count(text: str, words: str) -> None:
    asked = shapes.parse(text)
    assert (asked.subject, asked.phrase) == (words, False)


def test_a_question_of_frame_words_alone_has_no_subject() -> None:
    for text in (
        "How many meetings were there?",
        "How many meetings discussed it in 2024?",
        "Which speakers attended most?",
    ):
        with pytest.raises(Declined, match="no_subject"):
            shapes.parse(text)


@pytest.mark.parametrize(
    ("words", "period"),
    [
        ("in February 2024", month(2024, 2)),
        ("in Feb. 2024", month(2024, 2)),
        ("in the month of December 2024", month(2024, 12)),
        ("in 2024-02", month(2024, 2)),
        ("on 2024-02-29", Period(datetime.date(2024, 2, 29), datetime.date(2024, 3, 1))),
        ("on 31 December 2024", Period(datetime.date(2024, 12, 31), datetime.date(2025, 1, 1))),
        ("on December 31st, 2024", Period(datetime.date(2024, 12, 31), datetime.date(2025, 1, 1))),
        ("during 2024", Period(datetime.date(2024, 1, 1), datetime.date(2025, 1, 1))),
    ],
)
def test_a_date_is_a_half_open_period_wherever_it_stands_and_no_part_of_the_subject(words: str, period: Period) -> None:
    for text in (f"How many meetings {words} covered granite?", f"How many meetings covered granite {words}?"):
        assert shapes.parse(text) == Asked(FILES, "granite", True, period)


@given(st.integers(1900, 2099), st.integers(1, 12))
def test_every_month_by_name_and_by_number_is_the_same_period(year: int, number: int) -> None:
    name = shapes.MONTHS[number - 1].title()
    for words in (f"in {name} {year}", f"in {year}-{number:02}"):
        assert shapes.parse(f"How many meetings {words} covered granite?").period == month(year, number)


def test_a_bare_number_is_no_year_and_a_year_of_the_subject_stays() -> None:
    assert shapes.parse("How many meetings covered the 2024 quota?") == Asked(FILES, "2024 quota", True)


@pytest.mark.parametrize("words", ["last month", "this quarter", "in March", "recently", "two weeks ago"])
def test_a_relative_date_is_not_applied_and_disclosed(words: str) -> None:
    asked = shapes.parse(f"How many meetings covered granite {words}?")
    assert (asked.subject, asked.period, asked.relative) == ("granite", None, (words,))


@pytest.mark.parametrize(
    ("words", "reason"),
    [("since March 2024", "open_date"), ("since 2024", "open_date"), ("from 2023 to 2025", "open_date"),
     ("from March 2024 onwards", "open_date"), ("between 2023 and 2025", "open_date"),
     ("before 2024-03-01", "open_date"), ("between March 2024 and May 2024", "open_date"),
     ("on 2024-02-30", "no_such_date"), ("in 2024-13", "no_such_date"), ("in 2024-05, in 2024-06", "several_dates")],
)  # fmt: skip
def test_a_date_that_is_no_one_period_is_declined_and_not_ignored(words: str, reason: str) -> None:
    with pytest.raises(Declined, match=reason):
        shapes.parse(f"How many meetings {words} covered granite?")


def test_the_parser_shares_nothing_with_the_exact_frames_and_reads_no_file() -> None:
    tree = ast.parse(inspect.getsource(shapes))
    imported = {a.name for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)) for a in node.names}
    assert imported == {"annotations", "datetime", "re", "dataclass", "Any", "bm25s", "canon", "transcript"}
    assert not {"open", "read_text"} & {getattr(node, "id", getattr(node, "attr", "")) for node in ast.walk(tree)}
    assert shapes.card()["expressions_sha256"] != intent.card()["expressions_sha256"]
    assert shapes.card() == shapes.card()


@given(st.text(max_size=80))
def test_any_text_is_read_or_declined(text: str) -> None:
    try:
        assert shapes.parse(text).subject
    except Declined as reason:
        assert str(reason) in shapes.REASONS
