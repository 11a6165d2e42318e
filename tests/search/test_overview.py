"""An overview block over a real index and a real database: who is in it, what it claims, and who contradicts it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opensearchpy import OpenSearch

from lossmap import transcript
from lossmap.engine import marker
from lossmap.errors import LossmapError
from lossmap.index import build, inject, table
from lossmap.index.vectors import Vectors
from lossmap.search import overview
from lossmap.search.overview import Claims, Recording, Scope, by_mapping, by_ranking, shares, verified
from lossmap.transcript import GoldSpan, Meeting, Query, Turn

DIMENSION = 8
KEY = {"encoder": {"name": "model-a", "dimension": DIMENSION}, "chunks_sha256": "x", "graph": True}
FILES = 25
SPEAKERS = ("Ada", "Bo", "Cy", "Di")


def meeting(number: int) -> Meeting:
    """Two or three speakers of four, Ada in all, a turn without a name, and a length of its own."""
    names = ["Ada", SPEAKERS[number % 4], "", SPEAKERS[number % 3]]
    turns = tuple(
        Turn(i, name, f"{name} speaks of matter {number}", 60.0 * i, 60.0 * i + number + 0.25)
        for i, name in enumerate(names)
    )
    return Meeting(f"m{number:02}", f"Board #{number}", "demo", "en", None, turns)


MEETINGS = [meeting(number) for number in range(FILES)]


@dataclass
class Bench:
    client: OpenSearch
    conn: psycopg.Connection
    name: str
    rows: list[table.Row]

    @property
    def scope(self) -> Scope:
        return Scope(self.client, self.name, self.conn, self.name, "demo")

    @property
    def files(self) -> list[str]:
        of = {row.meeting_id: row.file_uuid for row in self.rows if row.corpus == "demo"}
        return [of[meeting_id] for meeting_id in sorted(of)]


@pytest.fixture(scope="module")
def bench(opensearch: OpenSearch, postgres: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    conn, folder = postgres(), tmp_path_factory.mktemp("overview")
    name = f"lossmap_test_overview_{uuid.uuid4().hex[:10]}"
    for key, meetings in (("demo", MEETINGS), ("other", [meeting(99)])):
        query, gold = Query("q", "what ?", "lookup", "demo"), GoldSpan("q", meetings[0].meeting_id, 0, 0)
        card = {"key": key, "version": "1", "tier": "A", "judged_by": "constructed"}
        transcript.write_corpus(folder / key, meetings, [query], [gold], card)
        inject.inject(conn, name, folder / key, folder / "out" / key)
    table.build(conn, name, ["demo", "other"], folder / "index")
    rows = table.load(folder / "index")
    values = np.random.default_rng(0).normal(size=(len(rows), DIMENSION)).astype(np.float32)
    vectors = Vectors(values / np.linalg.norm(values, axis=1, keepdims=True), np.arange(len(values), dtype=np.int32))
    build.build(opensearch, name, rows, vectors, KEY, timing=(20, 0.05))
    yield Bench(opensearch, conn, name, rows)
    marker.delete_index(opensearch, name)
    conn.rollback()
    marker.drop_schema(conn, name)
    conn.commit()
    conn.close()


def sections(files: list[str], each: int = 8, words: int = 55) -> list[dict[str, Any]]:
    return [
        {"file_uuid": file, "section": n, "text": " ".join([f"f{i}s{n}"] * words), "start": 0.0, "end": 1.0,
         "speakers": ["Ada"]}
        for i, file in enumerate(files) for n in range(each)
    ]  # fmt: skip


def test_mapping_covers_every_recording_and_the_database_confirms_each_claim(bench: Bench) -> None:
    block = by_mapping(bench.scope.recordings(bench.files), sections(bench.files))
    truth = bench.scope.truth(bench.files)
    assert truth == Claims(FILES, sum(180 + i + 0.25 for i in range(FILES)), len(SPEAKERS))
    assert block.claims.recordings == FILES and all(part.sections == 8 for part in block.parts)
    assert block.words == overview.WORDS, "110 words each of 440"
    assert all(claim["verified"] for claim in verified(block.claims, truth).values())
    head, first = block.render().split("\n\n")[:2]
    assert head == "recordings: 25 | duration: 1h 20m | speakers: 4" and first.startswith("Board #0: f0s0 f0s0")
    assert "Board" not in block.render(titles=False)


def test_a_ranking_of_fifty_sections_out_of_eight_files_claims_eight_recordings(bench: Bench) -> None:
    """The defect of the seed: the block is right about what was returned, and wrong about the scope."""
    ranked = sections(bench.files[3:11], each=7)[:50][::-1]
    block = by_ranking(bench.scope.recordings(bench.files), ranked)
    claims = verified(block.claims, bench.scope.truth(bench.files))
    assert (claims["recordings"]["claimed"], claims["recordings"]["truth"]) == (8, FILES)
    assert not claims["recordings"]["verified"] and not claims["duration"]["verified"]
    assert sum(part.sections for part in block.parts) == 50 and block.words == overview.WORDS
    assert [part.text.split()[0] for part in block.parts[:2]] == ["f7s0", "f6s0"], (
        "best file first, its sections as spoken"
    )


def test_sections_beyond_the_limit_and_words_beyond_the_budget_are_cut(bench: Bench) -> None:
    recordings = bench.scope.recordings(bench.files)
    assert len(by_ranking(recordings, sections(bench.files, each=1), limit=8).parts) == 8
    short = by_ranking(recordings, sections(bench.files, each=1), words=60)
    assert [len(part.text.split()) for part in short.parts] == [55, 5]


def test_a_recording_without_sections_stands_in_the_block_and_gives_its_words_to_others(bench: Bench) -> None:
    block = by_mapping(bench.scope.recordings(bench.files), sections(bench.files[:1]), words=100)
    assert block.claims.recordings == FILES and block.words == 100
    assert [part.sections for part in block.parts[:2]] == [8, 0]


def test_a_word_for_each_recording_is_the_least(bench: Bench) -> None:
    recordings = bench.scope.recordings(bench.files)
    assert by_mapping(recordings, sections(bench.files), words=FILES).words == FILES
    with pytest.raises(LossmapError, match="24 words for 25 recordings") as refusal:
        by_mapping(recordings, sections(bench.files), words=FILES - 1)
    assert refusal.value.exit_code == 2


def test_a_recording_that_the_index_lost_is_contradicted_by_the_database(bench: Bench) -> None:
    lost = bench.files[7]
    hits = bench.client.search(index=bench.name, body={"query": {"term": {"file_uuid": lost}}})["hits"]["hits"]
    for hit in hits:
        bench.client.delete(index=bench.name, id=hit["_id"], refresh=True)
    try:
        block = by_mapping(bench.scope.recordings(bench.files), sections(bench.files))
        claims = verified(block.claims, bench.scope.truth(bench.files))
        assert (claims["recordings"]["claimed"], claims["recordings"]["verified"]) == (FILES - 1, False)
        assert not claims["duration"]["verified"] and claims["speakers"]["verified"]
    finally:
        for hit in hits:
            bench.client.index(index=bench.name, id=hit["_id"], body=hit["_source"], refresh=True)


def test_a_digest_that_names_a_stranger_changes_no_claim(bench: Bench) -> None:
    document = {
        "file_uuid": bench.files[0],
        "chunk_index": -1,
        "doc_type": "digest",
        "corpus": "demo",
        "title": "Other",
        "content": "x",
        "speakers": ["Zed"],
        "end_time": 99999.0,
        "meeting_id": "m00",
    }
    bench.client.index(index=bench.name, id="digest", body=document, refresh=True)
    try:
        (recording,) = bench.scope.recordings(bench.files[:1])
        assert (recording.title, recording.speakers) == ("Board #0", ("Ada",))
        assert recording.duration == pytest.approx(180.25, abs=0.01)
    finally:
        bench.client.delete(index=bench.name, id="digest", refresh=True)


def test_a_speaker_of_many_recordings_is_one_and_a_duration_has_a_hundredth_each() -> None:
    one, two = (Recording(name, name, 10.004, ("Ada", name)) for name in "ab")
    claims = by_mapping([one, two], []).claims
    assert (claims.recordings, claims.speakers) == (2, 3) and claims.duration == pytest.approx(20.008)
    assert verified(claims, Claims(2, 20.02, 3))["duration"]["verified"]
    assert not verified(claims, Claims(2, 20.05, 3))["duration"]["verified"]


@given(st.lists(st.integers(0, 40), max_size=12), st.integers(0, 200))
def test_shares_spend_the_budget_or_all_there_is_and_no_short_text_is_cut_before_a_long_one(
    lengths: list[int], budget: int
) -> None:
    given_ = shares(lengths, budget)
    assert sum(given_) == min(budget, sum(lengths)) and all(g <= n for g, n in zip(given_, lengths, strict=True))
    most = max(given_, default=0)
    assert all(g == n or g >= most - 1 for g, n in zip(given_, lengths, strict=True))
