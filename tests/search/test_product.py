"""The product's answerer over a real OpenSearch and a real PostgreSQL: what it counts, what it declines, and why."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import injected
import pytest
from injected import meeting, session
from opensearchpy import OpenSearch
from psycopg import sql

from lossmap import canon
from lossmap.search import shapes
from lossmap.search.aggregate import Answer
from lossmap.search.product import Product
from lossmap.search.shapes import EVENTS, FACET, FILES, LIST

PHRASE = "Amber Heron safety review"
DEFERRED = "shut the Amber Heron quay"


DEMO = [
    meeting("m01", f"today the {PHRASE} is due", date="2024-02-29"),
    meeting("m02", "the amber  heron\nSAFETY review, again", date="2024-02-01"),
    meeting("m03", f"{PHRASE}.", date="2024-03-01"),
    meeting("m04", PHRASE, date="2024-01-31"),
    meeting("m05", PHRASE),
    meeting("n01", "a review of the safety of the heron, which is amber", date="2024-02-10"),
    meeting("n02", "the amber heron is here", "a safety review is not of it " + "and on " * 250, date="2024-02-10"),
    meeting("e01", f"we {DEFERRED}, and then {DEFERRED.upper()} once more", f"so: {DEFERRED}", date="2024-02-05"),
    meeting("e02", f"they {DEFERRED.replace(' ', '  ')}", date="2024-05-05"),
    meeting("e03", "the quay of amber is shut by a heron"),
    session("s01", "The Harbour Team — weekly sync #1", "Ada", "Bo", date="2024-02-02"),
    session("s02", "The Harbour Team — weekly sync #2", "Ada", "Bo", date="2024-03-02"),
    session("s03", "The Harbour Team — weekly sync #3", "Ada", "Cy", date="2024-03-03"),
    *(session(f"s1{i}", f"The North Quarry Team — weekly sync #{i}", "Bo", "Di") for i in range(2)),
]
OTHER = [
    meeting("o01", f"the {PHRASE}, and {DEFERRED}", date="2024-02-10"),
    session("o02", "The Harbour Team — weekly sync #4", "Bo", date="2024-02-10"),
    session("o03", "The Harbour Team — weekly sync #5", "Bo", date="2024-02-10"),
]
HOLDERS = ["m01", "m02", "m03", "m04", "m05"]
COUNT = f"How many meetings discussed the {PHRASE}?"
ATTENDED = "Who attended the most weekly sync sessions of the Harbour team, and how many were they at?"


class Bench(injected.Bench):
    def product(self, corpus: str = "demo", **options: Any) -> Product:
        return Product(self.client, self.name, self.conn, self.name, corpus, **options)


@pytest.fixture(scope="module")
def bench(opensearch: OpenSearch, postgres: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench(opensearch, postgres(), tmp_path_factory.mktemp("product"), demo=DEMO, other=OTHER)
    made.build()
    yield made
    made.drop()


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (COUNT, Answer("integer", 5, FILES)),
        (f"Which meetings mention the {PHRASE}? List them all.", Answer("file_set", HOLDERS, LIST)),
        (f"How many times in total did we decide to {DEFERRED}?", Answer("integer", 4, EVENTS)),
        (ATTENDED, Answer("speaker_count", {"speaker": "Ada", "sessions": 3}, FACET)),
        (f"How many meetings in February 2024 discussed the {PHRASE}?", Answer("integer", 2, FILES)),
        (f"How many meetings in 2024 discussed the {PHRASE}?", Answer("integer", 4, FILES)),
        (f"How many meetings on 2024-02-29 discussed the {PHRASE}?", Answer("integer", 1, FILES)),
        (f"How many meetings in April 2024 discussed the {PHRASE}?", Answer("integer", 0, FILES)),
        (f"How many times in 2024-02 did we decide to {DEFERRED}?", Answer("integer", 3, EVENTS)),
        ("Which speakers came to the weekly sync of the Harbour team in March 2024, most of all Ada?", None),
        ("How many meetings discussed the purple walrus?", Answer("integer", 0, FILES)),
    ],
)
def test_each_shape_counts_its_own_thing_in_its_own_corpus(bench: Bench, text: str, answer: Answer | None) -> None:
    assert bench.product().answer(text) == answer


def test_without_a_link_verb_all_words_in_one_chunk_are_a_mention(bench: Bench) -> None:
    """n01 holds the words in another order; n02 holds them in two chunks, none of which has them all."""
    asked = "In how many meetings was the Amber Heron safety review mentioned?"
    assert bench.product().answer(asked) == Answer("integer", 6, FILES)
    times = "How many times was the Amber Heron quay mentioned?"
    assert bench.product().answer(times) == Answer("integer", 4, EVENTS), "segments that hold all words, e03 among them"


def test_undated_files_are_left_out_and_reported_with_the_source_of_the_dates(bench: Bench) -> None:
    found = bench.product().respond(f"How many meetings in 2024 discussed the {PHRASE}?")
    undated = sum(m.recorded_date is None for m in DEMO)
    assert undated == 4 and found.coverage == {
        "period": ["2024-01-01", "2025-01-01"],
        "files_in_period": len(DEMO) - undated,
        "undated_files_excluded": undated,
        "date_sources": {"recorded_date": len(DEMO) - undated},
        "relative_dates_skipped": [],
    }


def test_a_month_is_half_open_at_both_ends(bench: Bench) -> None:
    """The holders of 31 January and of 1 March 2024 stand at its borders."""
    for name, number in (("January", 1), ("February", 2), ("March", 1), ("December", 0)):
        text = f"How many meetings in {name} 2024 discussed the {PHRASE}?"
        assert bench.product().answer(text) == Answer("integer", number, FILES), name


def test_a_relative_date_is_skipped_and_disclosed(bench: Bench) -> None:
    found = bench.product().respond(f"How many meetings last month discussed the {PHRASE}?")
    assert found.answer == Answer("integer", 5, FILES)
    assert found.coverage == {"relative_dates_skipped": ["last month"]}


def test_before_dates_a_month_is_the_day_of_injection_and_the_same_questions_fail(bench: Bench) -> None:
    """R7: every file has the one upload date, so a month holds none of them, or all."""
    text = f"How many meetings in February 2024 discussed the {PHRASE}?"
    later = bench.product(injected_on=datetime.date(2026, 8, 1))
    assert later.answer(text) == Answer("integer", 0, FILES)
    assert later.note(text)["coverage"]["undated_files_excluded"] == 0
    within = bench.product(injected_on=datetime.date(2024, 2, 20))
    assert within.answer(text) == Answer("integer", 5, FILES), "the undated holder too"
    for arm in (later, within):
        assert arm.answer(COUNT) == bench.product().answer(COUNT), "without a date nothing differs"
        card = arm.describe()
        assert (card["answerer"], card["is_production_path"]) == ("product-before-dates", False)


def declined(product: Product, text: str) -> str | None:
    assert product.answer(text) is None
    return product.note(text)["reason"]


def test_a_tie_at_the_top_has_no_speaker(bench: Bench) -> None:
    text = "Who attended the most weekly sync sessions of the North Quarry team?"
    assert declined(bench.product(), text) == "tie_at_the_top"
    assert declined(bench.product(), "Who attended the most weekly sync sessions of the Lunar team?") == "no_speaker"


def test_a_period_of_more_files_than_a_scope_holds_is_declined_and_the_whole_corpus_is_no_list(bench: Bench) -> None:
    text = f"How many meetings in February 2024 discussed the {PHRASE}?"
    size = bench.product().respond(text).coverage["files_in_period"]
    assert bench.product(scope_limit=size).answer(text) == Answer("integer", 2, FILES)
    assert declined(bench.product(scope_limit=size - 1), text) == "scope_too_large"
    assert bench.product(scope_limit=size - 1).answer(COUNT) == Answer("integer", 5, FILES)


def test_what_the_engine_or_the_database_refuses_is_declined_and_the_next_question_is_not(bench: Bench) -> None:
    cut = bench.product(buckets=4)
    assert declined(cut, COUNT) == "exception", "five files in four buckets"
    lost = Product(bench.client, f"{bench.name}_absent", bench.conn, bench.name, "demo")
    assert declined(lost, COUNT) == "exception"
    broken = bench.product()
    broken.schema = sql.Identifier("lossmap_test_no_such_schema")
    assert declined(broken, f"How many meetings in 2024 discussed the {PHRASE}?") == "exception"
    assert bench.product().answer(f"How many meetings in 2024 discussed the {PHRASE}?") == Answer("integer", 4, FILES)


def test_what_the_router_keeps_from_the_counting_tier_is_not_answered(bench: Bench) -> None:
    product = bench.product(routed=lambda text: "times" in text)
    assert declined(product, COUNT) == "not_aggregate"
    assert product.answer(f"How many times did we decide to {DEFERRED}?") == Answer("integer", 4, EVENTS)


def test_a_digest_that_repeats_the_phrase_does_not_count(bench: Bench) -> None:
    silent = next(row for row in bench.rows if row.meeting_id == "e02")
    document = {"file_uuid": silent.file_uuid, "chunk_index": -1, "doc_type": "digest", "corpus": "demo",
                "content": f"They spoke of the {PHRASE}.", "title": "The Harbour Team — weekly sync #9",
                "speakers": ["Bo"], "meeting_id": "e02"}  # fmt: skip
    bench.client.index(index=bench.name, id="digest", body=document, refresh=True)
    try:
        assert bench.product().answer(COUNT) == Answer("integer", 5, FILES)
        most = bench.product().answer(ATTENDED)
        assert most == Answer("speaker_count", {"speaker": "Ada", "sessions": 3}, FACET)
    finally:
        bench.client.delete(index=bench.name, id="digest", refresh=True)


def test_every_aggregation_has_the_plane_the_corpus_and_no_hybrid_body(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[dict[str, Any]] = []
    search = bench.client.search
    monkeypatch.setattr(bench.client, "search", lambda **sends: sent.append(sends) or search(**sends))
    asked = (COUNT, f"Which meetings in 2024 mention {PHRASE}?", ATTENDED, "In how many meetings was Ada mentioned?")
    for text in asked:
        bench.product().answer(text)
    assert len(sent) == len(asked) and all(set(each) == {"index", "body"} for each in sent)
    for each in sent:
        clauses = each["body"]["query"]["bool"]["filter"]
        assert each["body"]["size"] == 0 and set(each["body"]["query"]) == {"bool"}
        assert {"term": {"doc_type": "chunk"}} in clauses and {"term": {"corpus": "demo"}} in clauses
    assert any("terms" in clause for clause in sent[1]["body"]["query"]["bool"]["filter"]), "the files of the period"


def test_the_card_says_how_counts_the_shapes_and_is_of_the_product(bench: Bench) -> None:
    product = bench.product()
    for text in (COUNT, COUNT, ATTENDED, "When was it?", f"How many meetings since 2024 discussed the {PHRASE}?"):
        product.answer(text)
    card = product.describe()
    assert (card["answerer"], card["is_production_path"], card["llm_required"]) == ("product", True, False)
    assert card["shapes_used"] == {FILES: 2, LIST: 0, FACET: 1, EVENTS: 0} and set(card["mechanism"]) == set(
        shapes.SHAPES
    )
    assert card["declined"] == {"no_shape": 1, "open_date": 1}
    assert (card["router"], card["dates"]["scope_limit"], card["dates"]["injected_on"]) == (False, 500, None)
    canon.dumps(card)
