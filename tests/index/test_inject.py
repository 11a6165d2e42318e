"""Injection into a real PostgreSQL: counts, repairs, and what a second run leaves alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import psycopg
import pytest
from opensearchpy import OpenSearch
from psycopg import sql

from lossmap import canon, transcript
from lossmap.engine import marker
from lossmap.errors import LossmapError
from lossmap.index import build, inject, read, table
from lossmap.index.vectors import Vectors
from lossmap.transcript import GoldSpan, Meeting, Query, Turn


def corpus(folder: Path, meetings: list[Meeting]) -> Path:
    query, gold = Query("demo:m1:000", "what ?", "lookup", "Demo"), GoldSpan("demo:m1:000", "m1", 0, 0)
    card = {"key": "demo", "version": "1", "tier": "A", "judged_by": "constructed"}
    transcript.write_corpus(folder, meetings, [query], [gold], card)
    return folder


def meeting(turns: list[Turn], meeting_id: str = "m1", date: str | None = None) -> Meeting:
    return Meeting(meeting_id, f"Demo {meeting_id}", "Demo", "en", date, tuple(turns))


TIED = [
    Turn(0, "A", "long one", 1.0, 4.0),
    Turn(1, "B", "uh", 1.0, 1.5),
    Turn(2, "A", "", None, None),
    Turn(3, "B", "back", 9.0, 7.0),
    Turn(4, "A", "same", 5.0, 5.0),
    Turn(5, "A", "same", 5.0, 5.0),
]


def test_ties_zero_lengths_reversed_and_repeated_spans_are_counted_and_ordered() -> None:
    counts: Counter[str] = Counter()
    placed = inject.place("demo", meeting(TIED), TIED, counts)
    assert [(p.turn.index, p.start, p.end) for p in placed] == [
        (1, 1.0, 1.5), (0, 1.0, 4.0), (4, 5.0, 5.0), (5, 5.0, 5.001), (3, 7.0, 9.0),
    ]  # fmt: skip
    assert counts == {
        "reversed_swapped": 1, "duplicate_spans_nudged": 1, "zero_length": 1, "start_tie_groups": 2,
        "segments_in_start_ties": 4,
    }  # fmt: skip


@pytest.fixture
def schema(postgres, unique_name):  # type: ignore[no-untyped-def]
    name = unique_name("inject")
    yield name
    with postgres() as conn:
        marker.drop_schema(conn, name)


def run(postgres, schema: str, folder: Path, out: Path, force: bool = False) -> dict:  # type: ignore[no-untyped-def]
    with postgres() as conn:
        return inject.inject(conn, schema, folder, out, force)


def segment_ids(conn: psycopg.Connection, schema: str) -> list[int]:
    query = sql.SQL("SELECT segment_id FROM {}.segment ORDER BY segment_id").format(sql.Identifier(schema))
    return [row[0] for row in conn.execute(query).fetchall()]


def test_skip_refresh_update_force_and_removal(postgres, schema: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    folder, out = corpus(tmp_path / "c", [meeting(TIED), meeting(TIED, "m2")]), tmp_path / "out"
    assert run(postgres, schema, folder, out)["actions"] == {"created": 2, "updated": 0, "skipped": 0}
    with postgres() as conn:
        first = segment_ids(conn, schema)
        assert len(first) == 10
    files = (out / "files.jsonl").read_bytes()

    # A new date alone refreshes it and writes no segment.
    corpus(folder, [meeting(TIED, date="2004-02-03"), meeting(TIED, "m2")])
    assert run(postgres, schema, folder, out)["actions"]["skipped"] == 2
    with postgres() as conn:
        assert segment_ids(conn, schema) == first
        assert {f.recorded_date for f in read.files(conn, schema)} == {"2004-02-03", None}
    assert (out / "files.jsonl").read_bytes() != files

    # A changed text rewrites that file only; force rewrites both; a meeting that left the corpus goes.
    corpus(folder, [meeting([Turn(0, "A", "new text", 0.0, 1.0)]), meeting(TIED, "m2")])
    assert run(postgres, schema, folder, out)["actions"] == {"created": 0, "updated": 1, "skipped": 1}
    assert run(postgres, schema, folder, out, force=True)["actions"]["updated"] == 2
    corpus(folder, [meeting(TIED, "m2")])
    assert run(postgres, schema, folder, out)["counts"]["files"] == 1
    with postgres() as conn:
        assert [f.meeting_id for f in read.files(conn, schema)] == ["m2"]


def test_dates_injected_again_leave_the_index_as_it_is(
    postgres, opensearch, schema: str, unique_name, tmp_path: Path
) -> None:  # type: ignore[no-untyped-def]
    name, vectors = unique_name("dates"), Vectors(np.eye(8, dtype=np.float32)[:1], np.zeros(5, np.int32))
    key = {"encoder": {"name": "model-a", "dimension": 8}, "graph": False}
    with postgres() as conn:
        inject.inject(conn, schema, corpus(tmp_path / "one", [meeting(TIED, date="2024-02-01")]), tmp_path / "m")
        table.build(conn, schema, ["demo"], tmp_path / "index")
        rows = table.load(tmp_path / "index")
        build.build(
            opensearch, name, rows, replace(vectors, inverse=vectors.inverse[: len(rows)]), key, timing=(20, 0.05)
        )
        try:
            before = store(opensearch, name)
            again = inject.inject(
                conn, schema, corpus(tmp_path / "two", [meeting(TIED, date="2024-03-01")]), tmp_path / "m"
            )
            assert again["actions"] == {"created": 0, "updated": 0, "skipped": 1}
            dated = conn.execute(sql.SQL("SELECT recorded_date FROM {}.file").format(sql.Identifier(schema))).fetchone()
            assert str(dated[0])[:10] == "2024-03-01" and store(opensearch, name) == before
        finally:
            marker.delete_index(opensearch, name)


def store(client: OpenSearch, index: str) -> dict[str, int]:
    client.indices.refresh(index=index)
    found = client.indices.stats(index=index)["indices"][index]["primaries"]
    return {
        "count": found["docs"]["count"],
        "deleted": found["docs"]["deleted"],
        "bytes": found["store"]["size_in_bytes"],
        "writes": found["indexing"]["index_total"],
    }


def test_chunks_of_tied_segments_do_not_depend_on_the_physical_order(postgres, schema: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    folder = corpus(tmp_path / "c", [meeting(TIED)])
    run(postgres, schema, folder, tmp_path / "out")
    with postgres() as conn:
        table.build(conn, schema, ["demo"], tmp_path / "a")
        # An update rewrites rows at the end of the heap: a read without a total order would now return ties swapped.
        rewrite = sql.SQL("UPDATE {}.segment SET content = content WHERE content = 'uh'")
        conn.execute(rewrite.format(sql.Identifier(schema)))
        table.build(conn, schema, ["demo"], tmp_path / "b")
    assert (tmp_path / "a/chunks.jsonl").read_bytes() == (tmp_path / "b/chunks.jsonl").read_bytes()
    assert [row.text for row in table.load(tmp_path / "a")] == ["uh", "long one same same", "back"]


def test_a_new_title_or_new_times_are_written_though_the_words_are_the_same(
    postgres, schema: str, tmp_path: Path
) -> None:  # type: ignore[no-untyped-def]
    folder, out = corpus(tmp_path / "c", [meeting(TIED)]), tmp_path / "out"
    run(postgres, schema, folder, out)
    other = replace(meeting(TIED), title="Another title")
    assert run(postgres, schema, corpus(folder, [other]), out)["actions"]["updated"] == 1
    moved = replace(other, turns=(replace(TIED[0], start=0.5), *TIED[1:]))
    assert run(postgres, schema, corpus(folder, [moved]), out)["actions"]["updated"] == 1


def test_positions_follow_the_order_of_a_read_after_a_nudge() -> None:
    turns = [Turn(0, "A", "same", 0.0, 1.0), Turn(1, "A", "same", 0.0, 1.0), Turn(2, "A", "other", 0.0, 1.0)]
    placed = inject.place("demo", meeting(turns), turns, Counter())
    assert [(p.turn.index, p.end) for p in placed] == [(0, 1.0), (2, 1.0), (1, 1.001)]


def test_two_runs_write_the_same_bytes(postgres, schema: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    folder = corpus(tmp_path / "c", [meeting(TIED)])
    for out in ("one", "two"):
        run(postgres, schema, folder, tmp_path / out, force=True)
    for name in ("manifest.json", "files.jsonl", "turns.jsonl"):
        assert canon.file_sha256(tmp_path / "one" / name) == canon.file_sha256(tmp_path / "two" / name)


def test_tables_of_another_version_are_made_anew(postgres, schema: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    folder = corpus(tmp_path / "c", [meeting(TIED)])
    run(postgres, schema, folder, tmp_path / "out")
    with postgres() as conn:
        name = sql.Identifier(schema)
        conn.execute(sql.SQL("ALTER TABLE {}.file RENAME COLUMN state_sha256 TO old").format(name))
        conn.execute(sql.SQL("COMMENT ON SCHEMA {} IS 'lossmap: tables of old'").format(name))
        conn.commit()
    assert run(postgres, schema, folder, tmp_path / "out")["actions"]["created"] == 1


def test_a_schema_that_somebody_else_owns_is_refused(postgres, unique_name, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    theirs = unique_name("theirs")
    name = sql.Identifier(theirs)
    with postgres() as conn:
        conn.execute(sql.SQL("CREATE SCHEMA {}").format(name))
        conn.commit()
        with pytest.raises(LossmapError) as refusal:
            inject.inject(conn, theirs, corpus(tmp_path / "c", [meeting(TIED)]), tmp_path / "out")
        conn.rollback()
        conn.execute(sql.SQL("DROP SCHEMA {}").format(name))
    assert refusal.value.exit_code == 2
