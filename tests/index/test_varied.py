"""What the study of stability varies: how rows lie, the broken order, bulks and merges, vectors of the graph."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from opensearchpy import OpenSearch
from psycopg import sql
from tiny import QUICK, key, rows, vectors_of

from lossmap import transcript
from lossmap.engine import marker
from lossmap.index import build, carriers, inject, read, shuffle, split, table
from lossmap.index.vectors import Vectors
from lossmap.search import legs
from lossmap.transcript import GoldSpan, Meeting, Query, Turn

# Speech that overlaps: each onset is shared by a long turn and a short one.
OVERLAPPING = [
    Turn(i, "A" if i % 2 else "B", f"turn {i} said", float(i // 2), i // 2 + (0.9 if i % 2 else 0.2)) for i in range(40)
]


@pytest.fixture
def schema(postgres, unique_name, tmp_path: Path):  # type: ignore[no-untyped-def]
    name = unique_name("varied")
    meeting = Meeting("m1", "Demo m1", "Demo", "en", None, tuple(OVERLAPPING))
    card = {"key": "demo", "version": "1", "tier": "A", "judged_by": "constructed"}
    query, gold = Query("demo:m1:000", "what ?", "lookup", "Demo"), GoldSpan("demo:m1:000", "m1", 0, 0)
    transcript.write_corpus(tmp_path / "corpus", [meeting], [query], [gold], card)
    with postgres() as conn:
        inject.inject(conn, name, tmp_path / "corpus", tmp_path / "out")
    yield name
    with postgres() as conn:
        marker.drop_schema(conn, name)


def chunks(conn: psycopg.Connection, schema: str, out: Path, order: str) -> list[str]:
    table.build(conn, schema, ["demo"], out, order)
    return [row.text for row in table.load(out)]


def contents(conn: psycopg.Connection, schema: str) -> list[tuple[Any, ...]]:
    query = "SELECT segment_id, segment_uuid, start_time, content FROM {}.segment ORDER BY segment_id"
    return conn.execute(sql.SQL(query).format(sql.Identifier(schema))).fetchall()


def test_shuffled_rows_move_the_chunks_of_the_broken_order_and_none_of_the_total_one(
    postgres, schema: str, tmp_path: Path
) -> None:  # type: ignore[no-untyped-def]
    with postgres() as conn:
        before, whole = contents(conn, schema), chunks(conn, schema, tmp_path, "total")
        broken = []
        for seed in (1, 2, 3):
            shuffle.rows(conn, schema, seed)
            assert contents(conn, schema) == before
            assert chunks(conn, schema, tmp_path, "total") == whole
            broken.append(chunks(conn, schema, tmp_path, "start"))
        assert len({tuple(found) for found in broken}) == 3
        shuffle.rows(conn, schema, 1)
        assert chunks(conn, schema, tmp_path, "start") == broken[0], "a seed says how rows lie, whatever lay before"


def test_the_broken_order_is_the_total_one_cut_short() -> None:
    assert read.ORDERS["start"].strip().endswith("ORDER BY segment.start_time")


def test_cutting_at_marks_is_named_and_differs_at_an_abbreviation() -> None:
    text = "We met Dr. Low at noon. It went well."
    assert split.by_marks(text) == ["We met Dr.", "Low at noon.", "It went well."]
    assert split.sentences(text) == ["We met Dr. Low at noon.", "It went well."]
    assert split.provenance(splitter="marks")["name"] != split.provenance()["name"]


def twice() -> Vectors:
    """Twelve rows, six vectors."""
    value = vectors_of(rows()[:6])
    return Vectors(value.distinct, np.arange(12, dtype=np.int32) % 6)


def test_carriers_own_distinct_jittered() -> None:
    own, distinct, jittered = (carriers.CARRIERS[name](twice()) for name in ("own", "distinct", "jittered"))
    assert own(7) == own(1)
    assert [distinct(i) is None for i in range(12)] == [False] * 6 + [True] * 6
    moved = np.array([jittered(i) for i in (1, 7)])
    assert not np.array_equal(moved[0], moved[1])
    apart = np.linalg.norm(moved - np.array(own(1)), axis=1)
    assert (apart > carriers.JITTER / 4).all() and (apart < carriers.JITTER * 1.01).all()
    assert np.allclose(np.linalg.norm(moved, axis=1), 1, atol=1e-6)


def test_copies_of_a_row_are_every_row_with_its_vector() -> None:
    exact = legs.Exact(twice())
    assert sorted(exact.copies(np.array([7, 2])).tolist()) == [1, 2, 7, 8]
    assert exact.copies(np.array([], np.int64)).tolist() == []


@pytest.fixture
def index(opensearch: OpenSearch, unique_name) -> Iterator[str]:  # type: ignore[no-untyped-def]
    name = unique_name("varied")
    yield name
    marker.delete_index(opensearch, name)


def test_an_index_left_unmerged_in_shuffled_bulks_holds_the_same_documents(opensearch: OpenSearch, index: str) -> None:
    varied = {**key(), "writing": {"bulk": 3, "refresh": True, "shuffle": 1, "merge": False}}
    report = build.build(opensearch, index, rows(), vectors_of(rows()), varied, timing=QUICK)
    assert (report["docs_count"], report["segments"]) == (12, 4)
    again = build.build(opensearch, index, rows(), vectors_of(rows()), varied, timing=QUICK)
    assert again["resumed_chunks"] == 12 and again["indexing_total"] == report["indexing_total"]


def test_a_graph_of_distinct_vectors_holds_each_once(opensearch: OpenSearch, index: str) -> None:
    build.build(opensearch, index, rows(), twice(), {**key(), "vectors": "distinct"}, timing=QUICK)
    assert opensearch.count(index=index)["count"] == 12
    assert opensearch.count(index=index, body={"query": {"exists": {"field": "embedding"}}})["count"] == 6
