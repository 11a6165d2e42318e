"""The router: which cues speak, which of several wins, what a literal bars, and which time a question names."""

from __future__ import annotations

import datetime

import pytest

from lossmap.search import route
from lossmap.search.route import LABELS, TIERS, literals, signals, temporal

INTENTS = {
    "What did the chair say about the budget?": "lookup",
    "What did the chair say in March 2024 about the budget?": "lookup",
    "When did the chair talk about the budget?": "temporal",
    "What is the latest budget?": "temporal",
    "What was said of the budget in the last two quarters?": "temporal",
    "What has happened since the vote?": "temporal",
    "What did the chair say today, and what yesterday?": "lookup",
    "Summarise the talk about the budget.": "summarize",
    "tl;dr of the budget round": "summarize",
    "Describe the budget round": "summarize",
    "How does the report describe the budget?": "lookup",
    "Please walk me through the vote": "summarize",
    "What happened during the vote?": "summarize",
    "Why is what happened during the vote secret?": "lookup",
    "What were the main topics of the debate?": "summarize",
    "What were the main topics of the book?": "lookup",
    "Which recordings mention the budget?": "aggregate",
    "Which of our quarterly review meetings mention the budget?": "aggregate",
    "Which members attended?": "aggregate",
    "Who spoke about the budget the most?": "aggregate",
    "Who said that the price was the most important point?": "lookup",
    "How often was the budget mentioned across all of them?": "aggregate",
    "List every action item of these sessions": "aggregate",
}


@pytest.mark.parametrize(("text", "intent"), INTENTS.items())
def test_a_cue_speaks_for_its_intent(text: str, intent: str) -> None:
    found = route.route(text)
    assert (found.intent, found.tiers) == (intent, TIERS[intent])
    assert found.source == ("query" if found.signals else "default")


def test_one_meeting_that_holds_a_passage_is_looked_up() -> None:
    assert route.route('Which meeting recorded "87 requests a second"?').intent == "lookup"
    assert route.route("Which meeting discussed the pricing freeze?").intent == "lookup"
    assert route.route("Which meetings discussed the pricing freeze?").intent == "aggregate"


def test_a_plural_of_another_clause_is_not_asked_for() -> None:
    assert route.route("Which tool was shown in the meetings?").intent == "lookup"
    assert route.route("Which tool did meetings rely on?").intent == "lookup"


@pytest.mark.parametrize(
    "head", ["How many chairs", "How often", "List all", "What is the number of chairs", "Read all decisions"]
)
def test_a_scoped_head_needs_more_than_one_recording(head: str) -> None:
    assert route.route(f"{head} in the hall?").intent == "lookup"
    assert route.route(f"{head} in the meeting?").intent == "aggregate"
    assert route.route(f"{head} in total?").intent == "aggregate"


def test_the_name_of_a_meeting_is_no_request() -> None:
    assert route.route("In the incident debrief of the search team, what was the cost of the index?").intent == "lookup"
    assert route.route("Debrief me on the index").intent == "summarize"


def test_the_more_specific_of_two_labels_wins() -> None:
    both = {
        "When did they summarise the vote?": "summarize",
        "Summarise which meetings discussed it": "aggregate",
        "Which meetings discussed it last week?": "aggregate",
    }
    assert {text: route.route(text).intent for text in both} == both
    assert list(TIERS) == list(LABELS)


def test_signals_name_the_cues_and_the_markers_they_needed() -> None:
    assert signals("Which meetings discussed it? List all of them.") == ("which-plural", "list-all", "records")
    assert signals("How many times in total did we agree?") == ("how-many", "in-total")
    assert signals("Who attended the most sessions?") == ("who-most",)
    assert signals("What did the meeting say in total?") == ()


@pytest.mark.parametrize(
    "text", ['Summarise the "cold start"', "Summarise the 'cold start'", "Summarise the “cold start”"]
)
def test_a_quoted_phrase_or_a_speaker_bars_digests_and_nothing_else(text: str) -> None:
    found = route.route(text)
    assert (found.intent, found.tiers, found.literal) == ("summarize", ("chunk",), ("cold start",))
    assert route.route("Summarise the cold start", speaker="Ada").tiers == ("chunk",)
    assert route.route("Summarise the 'UI'").tiers == ("digest", "chunk")
    assert route.route(f"{text} in all meetings which meetings").tiers == ("aggregate", "chunk")


def test_an_apostrophe_within_or_after_a_word_opens_nothing() -> None:
    assert literals("the customer's needs and the team's view") == ()
    assert literals("the users' plans and the board's view") == ()
    assert literals("the board's 'hot swap' and \"don't ask\"") == ("hot swap", "don't ask")
    assert literals("'it's fine now' they said") == ("it's fine now",)


def test_a_quoted_cue_is_said_by_somebody_else() -> None:
    found = route.route("Who said 'summarise which meetings were held in March 2024'?")
    assert (found.intent, found.temporal) == ("lookup", None)


def test_a_rewritten_text_decides_where_it_is_more_specific() -> None:
    found = route.route("And that one?", "Summarise the meeting of 2024-03-05")
    assert (found.intent, found.source) == ("summarize", "rewritten")
    assert found.temporal and found.temporal.value == "2024-03-05"
    kept = route.route("Which meetings in May 2024 had it?", "Summarise the 'cold start' of June 2024")
    assert (kept.intent, kept.source, kept.literal) == ("aggregate", "query", ("cold start",))
    assert kept.temporal and kept.temporal.value == "2024-05"
    assert route.route("And that one?", "And this one?").source == "default"


TIMES = {
    "on 2024-02-29": ("day", "2024-02-29"),
    "in 2024-02": ("month", "2024-02"),
    "in February 2024": ("month", "2024-02"),
    "in Feb. 2024": ("month", "2024-02"),
    "on february 3rd, 2024": ("month", "2024-02"),
    "in 2024": ("year", "2024"),
    "in the Last Two  quarters": ("relative", "last two quarters"),
    "this month": ("relative", "this month"),
    "in 2024, in May 2025 and on 2026-01-02, last week": ("day", "2026-01-02"),
    "last week, in 2024 and in May 2025": ("month", "2025-05"),
    "last week and in 2024": ("year", "2024"),
}


@pytest.mark.parametrize(("text", "expected"), TIMES.items())
def test_the_most_exact_time_is_the_slot_on_every_route(text: str, expected: tuple[str, str]) -> None:
    for head in ("What was said", "When did they speak", "Summarise it", "Which meetings had it"):
        found = route.route(f"{head} {text}?").temporal
        assert found and (found.kind, found.value, found.relation) == (*expected, "in")


@pytest.mark.parametrize(
    "text",
    [
        "on 2024-02-30",
        "in 1999",
        "2,024 or 2024.5 units",
        "$2024",
        "AB-2024",
        "2024-7",
        "today and yesterday",
        "in May",
        "12024",
    ],
)
def test_what_is_no_time_is_no_slot(text: str) -> None:
    assert temporal(f"What was said {text}?") is None


def test_a_slot_covers_half_open_dates() -> None:
    spans = {
        "2024-02-29": ("2024-02-29", "2024-03-01"),
        "December 2024": ("2024-12-01", "2025-01-01"),
        "2024": ("2024-01-01", "2025-01-01"),
    }
    for text, (start, end) in spans.items():
        found = temporal(text)
        assert found and (found.start, found.end) == (
            datetime.date.fromisoformat(start),
            datetime.date.fromisoformat(end),
        )
    relative = temporal("last year")
    assert relative and (relative.start, relative.end) == (None, None)


def test_a_slot_says_whether_it_can_be_filtered_to() -> None:
    relations = {
        "since March 2024": "since", "after 2024-03-01": "after", "before the end of 2024": "before",
        "till early 2024": "until", "in March 2024": "in", "from March 2024 to May 2024": "several",
        "in March 2024, so March 2024": "in", "from March to May 2024": "several",
        "in March 2024 or May": "several", "in March 2024 and then": "in",
    }  # fmt: skip
    assert {text: found.relation for text in relations if (found := temporal(text))} == relations


def test_the_card_names_the_cues_and_changes_with_them() -> None:
    card = route.card()
    assert card["precedence"] == ["aggregate", "summarize", "temporal", "lookup"]
    assert len(set(card["cues"])) == len(card["cues"]) and {cue.intent for cue in route.rules().cues} == set(LABELS[1:])
    assert card["cues_sha256"] == route.card()["cues_sha256"] and card["llm_required"] is False


def test_every_needed_marker_exists() -> None:
    assert {name for cue in route.rules().cues for name in cue.needs} == set(route.rules().markers)
