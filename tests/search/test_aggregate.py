"""The reference answerer over a real OpenSearch and a real PostgreSQL: what it counts, and what it must not."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import injected
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from injected import KEY, meeting, session, vectors_of
from opensearchpy import OpenSearch
from psycopg import sql

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.index import build, settle
from lossmap.search import aggregate, intent
from lossmap.search.aggregate import Answer, Nobody, Reference

PHRASE = "Amber Heron safety review"
DEFERRED = "push the Amber Heron rollout (phase_1, 50%) back"


# 201 words without a sentence end: two windows, the phrase within the 40 words that both hold.
LONG = " ".join([*["word"] * 170, PHRASE, *["word"] * 60])
# The phrase begins with the last word of the first window: whole in the second one alone.
CUT = " ".join([*["word"] * 199, PHRASE, *["word"] * 60])

PHRASES = [
    meeting("m01", f"today the {PHRASE} is due", "yes", date="2024-02-29"),
    meeting("m02", "the amber  heron\nSAFETY review, again", date="2024-02-01"),
    meeting("m03", f"{PHRASE}.", date="2024-03-01"),
    meeting("m04", f"({PHRASE})", date="2024-01-31"),
    meeting("m05", PHRASE),
    meeting("m06", LONG, date="2023-02-28"),
    meeting("m07", CUT, date="2024-12-31"),
    meeting("n01", "Amber Heron safety", "review", date="2024-02-10"),
    meeting("n02", "Amber Herons safety review and Amber Heron safety reviews", date="2024-02-10"),
    meeting("n03", "Heron Amber safety review, and amber is the safety review", date="2024-02-10"),
]
HOLDERS = [m.meeting_id for m in PHRASES if m.meeting_id < "n"]

EVENTS = [
    meeting("e01", f"we {DEFERRED}, and then {DEFERRED.upper()} once more", f"so: {DEFERRED}"),
    meeting("e02", f"they {DEFERRED.replace(' ', '  ')}"),
    meeting(
        "e03", "push the Amber Heron rollout (phase11, 50%) back", "push the Amber Heron rollout (phase_1, 50x) back"
    ),
    meeting("e04", f"{DEFERRED}wards"),
]

SESSIONS = [
    session("s01", "The Harbour Team — weekly sync #1", "Ada", "Bo", "Cy"),
    session("s02", "The Harbour Team — weekly sync #2", "Ada", "Bo"),
    session("s03", "The Harbour Team — weekly sync #3", "Ada", "Cy"),
    *(session(f"s1{i}", f"The Harbour Team two — weekly sync #{i}", "Bo", "Di") for i in range(4)),
    *(session(f"s2{i}", f"The Harbour Team — weekly sync board #{i}", "Cy", "Di") for i in range(4)),
    *(session(f"s3{i}", f"The North Harbour Team — weekly sync #{i}", "Bo", "Di") for i in range(4)),
    session("s41", "The Quarry Team — design review #1", "Ada", "Bo"),
    session("s42", "The Quarry Team — design review #2", "Bo", "Ada"),
]
DEMO = [*PHRASES, *EVENTS, *SESSIONS]
OTHER = [
    meeting("o01", f"the {PHRASE}, and {DEFERRED}", date="2024-02-10"),
    session("o02", "The Harbour Team — weekly sync #4", "Bo"),
    session("o03", "The Harbour Team — weekly sync #5", "Bo"),
]


class Bench(injected.Bench):
    def write(self, files: int) -> None:
        """The first ``files`` files of the corpus, as a build that is not done leaves them."""
        first = sorted({row.file_uuid for row in self.rows})[:files]
        build._ensure(self.client, self.name, KEY, False)
        todo = [i for i, row in enumerate(self.rows) if row.file_uuid in first]
        build._write(self.client, self.name, {"encoder": {"name": "model-a"}}, self.rows, vectors_of(self.rows), todo)
        self.client.indices.refresh(index=self.name)

    def reference(self, corpus: str = "demo", **options: Any) -> Reference:
        return Reference(self.client, self.name, self.conn, self.name, corpus, **options)


@pytest.fixture(scope="module")
def bench(opensearch: OpenSearch, postgres: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench(opensearch, postgres(), tmp_path_factory.mktemp("answers"), demo=DEMO, other=OTHER)
    made.build()
    yield made
    made.drop()


def meetings(bench: Bench, files: Sequence[str]) -> list[str]:
    of = {row.file_uuid: row.meeting_id for row in bench.rows}
    return sorted(of[file] for file in files)


def test_a_phrase_is_found_word_for_word_in_any_case_and_in_its_own_corpus(bench: Bench) -> None:
    assert meetings(bench, bench.reference().phrase_files(PHRASE)) == HOLDERS
    assert meetings(bench, bench.reference("other").phrase_files(PHRASE)) == ["o01"]
    assert bench.reference().phrase_files("never said by anybody") == []


def test_a_phrase_in_the_overlap_of_two_chunks_is_one_file(bench: Bench) -> None:
    for meeting_id, chunks in (("m06", 2), ("m07", 1)):
        mine = [row for row in bench.rows if row.meeting_id == meeting_id]
        assert len(mine) == 2 and sum(PHRASE in row.text for row in mine) == chunks
    found = meetings(bench, bench.reference().phrase_files(PHRASE))
    assert found.count("m06") == found.count("m07") == 1


def test_a_digest_that_repeats_the_phrase_does_not_count(bench: Bench) -> None:
    """Without the plane filter the file of the digest, which has no such chunk, would be one more."""
    silent = next(row for row in bench.rows if row.meeting_id == "n01")
    document = {"file_uuid": silent.file_uuid, "chunk_index": -1, "doc_type": "digest", "corpus": "demo",
                "content": f"They spoke of the {PHRASE}.", "title": "The Harbour Team — weekly sync #9",
                "speakers": ["Bo"], "meeting_id": "n01"}  # fmt: skip
    bench.client.index(index=bench.name, id="digest", body=document, refresh=True)
    try:
        everything = {"query": {"match_phrase": {"content.exact": PHRASE}}}
        hits = bench.client.search(index=bench.name, body=everything, size=50)["hits"]["hits"]
        assert any(hit["_id"] == "digest" for hit in hits)
        assert meetings(bench, bench.reference().phrase_files(PHRASE)) == HOLDERS
        assert bench.reference().attendance("the Harbour team", "weekly sync")[0] == ("Ada", 3)
    finally:
        bench.client.delete(index=bench.name, id="digest", refresh=True)


def test_buckets_that_are_cut_off_raise_and_as_many_as_fit_do_not(bench: Bench) -> None:
    assert len(bench.reference(buckets=len(HOLDERS)).phrase_files(PHRASE)) == len(HOLDERS)
    with pytest.raises(LossmapError, match="cut off") as refusal:
        bench.reference(buckets=len(HOLDERS) - 1).phrase_files(PHRASE)
    assert "documents in others" in str(refusal.value)
    with pytest.raises(LossmapError, match="cut off"):
        bench.reference(buckets=2).attendance("the Harbour team", "weekly sync")


def test_repeats_within_a_segment_are_events_and_signs_are_literal(bench: Bench) -> None:
    assert bench.reference().events(DEFERRED) == 4, "three in e01, one in e02; e03 and e04 say something else"
    assert bench.reference("other").events(DEFERRED) == 1
    assert bench.reference().events("never said by anybody") == 0


def test_a_team_is_its_whole_label_and_a_kind_its_whole_name(bench: Bench) -> None:
    reference = bench.reference()
    assert reference.attendance("the Harbour team", "weekly sync") == [("Ada", 3), ("Bo", 2), ("Cy", 2)]
    assert reference.attendance("the harbour team two", "weekly sync") == [("Bo", 4), ("Di", 4)]
    assert reference.attendance("the Harbour team", "weekly sync board") == [("Cy", 4), ("Di", 4)]
    assert reference.attendance("the Harbour team", "design review") == []


def exact(rule: str, **slots: str) -> str:
    """The exact wording of ``rule``."""
    frames = yaml.safe_load(intent.FRAMES.read_text(encoding="utf-8"))["exact"]
    return frames[rule][0]["text"].format(**slots)


def test_each_rule_answers_its_exact_wording(bench: Bench) -> None:
    reference = bench.reference()
    assert reference.answer(exact("R3", marker=PHRASE)) == Answer("integer", len(HOLDERS), "R3")
    assert reference.answer(exact("R4", marker=PHRASE)) == Answer("file_set", HOLDERS, "R4")
    assert reference.answer(exact("R5", deferral=DEFERRED)) == Answer("integer", 4, "R5")
    most = reference.answer(exact("R6", team="the Harbour team", kind="weekly sync"))
    assert most == Answer("speaker_count", {"speaker": "Ada", "sessions": 3}, "R6")


@pytest.mark.parametrize(
    ("month", "year", "count"),
    [("February", 2024, 2), ("March", 2024, 1), ("January", 2024, 1), ("February", 2023, 1), ("December", 2024, 1),
     ("January", 2025, 0), ("April", 2024, 0), ("February", 2025, 0)],
)  # fmt: skip
def test_a_month_holds_its_first_and_its_last_day_leap_days_too(
    bench: Bench, month: str, year: int, count: int
) -> None:
    """The undated holder is in none of them, and the other corpus's meeting of 10 February 2024 neither."""
    question = exact("R7", month=month, year=str(year), marker=PHRASE)
    assert bench.reference().answer(question) == Answer("integer", count, "R7")


def test_the_date_of_a_month_is_the_database_columns(bench: Bench) -> None:
    """Dates may be injected again without indexing again: the index's own copy is not what is asked."""
    move = sql.SQL("UPDATE {}.file SET recorded_date = '2024-04-30' WHERE meeting_id = 'm03'")
    bench.conn.execute(move.format(sql.Identifier(bench.name)))
    try:
        question = exact("R7", month="April", year="2024", marker=PHRASE)
        assert bench.reference().answer(question) == Answer("integer", 1, "R7")
    finally:
        bench.conn.rollback()


def test_month_ranges_are_half_open_and_cover_every_day_once() -> None:
    months = [aggregate.month_range(year, month) for year in (2023, 2024, 2100) for month in range(1, 13)]
    assert all(low.day == high.day == 1 and 28 <= (high - low).days <= 31 for low, high in months)
    assert [(high - low).days for low, high in months[1::12]] == [28, 29, 28]
    assert all(high == low for (_, high), (low, _) in zip(months[:11], months[1:12]))
    assert aggregate.month_range(2024, 12)[1] == datetime.date(2025, 1, 1)


def test_a_tie_at_the_top_and_a_series_that_is_not_there_are_declined(bench: Bench) -> None:
    for team, kind in (("the Quarry team", "design review"), ("the Harbour team two", "weekly sync"),
                       ("the Harbour team", "design review"), ("the absent team", "weekly sync")):  # fmt: skip
        assert bench.reference().answer(exact("R6", team=team, kind=kind)) is None


def test_a_question_that_no_frame_fits_is_declined_and_nobody_declines_all(bench: Bench) -> None:
    assert bench.reference().answer(f"In which rooms did people speak of the {PHRASE}?") is None
    assert Nobody().answer(exact("R3", marker=PHRASE)) is None


def test_cards_say_how_and_that_it_is_no_product(bench: Bench) -> None:
    card = bench.reference().describe()
    assert set(card["mechanism"]) == set(intent.RULES)
    assert card["filters"] == {"chunk_plane": {"term": {"doc_type": "chunk"}}, "corpus": {"term": {"corpus": "demo"}}}
    assert int(card["postgres"].split(".")[0]) >= 15
    for each in (card, Nobody().describe()):
        assert (each["is_production_path"], each["llm_required"]) == (False, False)
        canon.dumps(each)


def test_no_aggregation_rides_on_a_hybrid_body(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[dict[str, Any]] = []
    search = bench.client.search
    monkeypatch.setattr(bench.client, "search", lambda **sends: sent.append(sends) or search(**sends))
    for question in (exact("R3", marker=PHRASE), exact("R6", team="the Harbour team", kind="weekly sync")):
        bench.reference().answer(question)
    assert len(sent) == 3 and all(set(each) == {"index", "body"} for each in sent)
    for each in sent:
        assert each["body"]["size"] == 0 and set(each["body"]["query"]) == {"bool"}
        assert {"term": {"doc_type": "chunk"}} in each["body"]["query"]["bool"]["filter"]
        assert {"term": {"corpus": "demo"}} in each["body"]["query"]["bool"]["filter"]


def test_files_that_the_database_lacks_are_an_error_and_not_a_shorter_list(bench: Bench) -> None:
    bench.conn.execute(sql.SQL("DELETE FROM {}.file WHERE meeting_id = 'm03'").format(sql.Identifier(bench.name)))
    try:
        with pytest.raises(LossmapError, match="the database does not") as refusal:
            bench.reference().answer(exact("R4", marker=PHRASE))
        assert refusal.value.exit_code == 3
    finally:
        bench.conn.rollback()


@given(st.text("aB_%\\.*+?()[]{}|^$-/é ß'", min_size=1, max_size=8), st.integers(0, 3))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_phrase_is_counted_literally_and_the_prefilter_loses_none(bench: Bench, phrase: str, times: int) -> None:
    phrase = " ".join(phrase.split())
    if not phrase:
        return
    content = " \n ; ".join([phrase.replace(" ", "  ")] * times) or "nothing"
    found = bench.conn.execute(
        "SELECT regexp_count(%(text)s, %(expression)s, 1, 'i'), %(text)s ILIKE %(like)s",
        {"text": content, "expression": aggregate.expression(phrase), "like": aggregate.like(phrase)},
    ).fetchone()
    assert found and found[0] >= times and (found[1] or not found[0])


TWELVE = [meeting(f"h{i:02}", f"the {PHRASE} is due", date="2024-02-10") for i in range(12)]


def test_a_half_indexed_corpus_is_counted_with_confidence_and_settling_refuses_it(
    opensearch: OpenSearch, postgres: Any, tmp_path: Path
) -> None:
    """The seed's 3 of 12 files: the answer does not say that the index is not done, so the rules of settling must."""
    half = Bench(opensearch, postgres(), tmp_path, demo=TWELVE)
    try:
        half.write(3)
        assert half.reference().answer(exact("R3", marker=PHRASE)) == Answer("integer", 3, "R3")
        with pytest.raises(LossmapError, match="3 of 12 files carry chunks") as refusal:
            settle.await_settled(opensearch, half.name, settle.Expected(12), timeout=0.3, interval=0.05)
        assert refusal.value.exit_code == 3
        half.build()
        settle.await_settled(opensearch, half.name, settle.Expected(12), timeout=20, interval=0.05)
        assert half.reference().answer(exact("R3", marker=PHRASE)) == Answer("integer", 12, "R3")
    finally:
        half.drop()
