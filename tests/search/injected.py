"""Small invented corpora in one schema and one index of the real servers, as the tests of the answerers ask them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import psycopg
from opensearchpy import OpenSearch

from lossmap import transcript
from lossmap.engine import marker
from lossmap.index import build, inject, table
from lossmap.index.vectors import Vectors
from lossmap.transcript import GoldSpan, Meeting, Query, Turn

DIMENSION = 8
KEY = {"encoder": {"name": "model-a", "dimension": DIMENSION}, "chunks_sha256": "x", "graph": True}


def meeting(meeting_id: str, *said: str, date: str | None = None, title: str = "", by: Sequence[str] = "AB") -> Meeting:
    turns = [Turn(i, by[i % len(by)], text, float(i), i + 0.5) for i, text in enumerate(said)]
    return Meeting(meeting_id, title or f"Untitled {meeting_id}", "demo", "en", date, tuple(turns))


def session(meeting_id: str, title: str, *speakers: str, date: str | None = None) -> Meeting:
    return meeting(meeting_id, *(f"{name} reports" for name in speakers), title=title, by=speakers, date=date)


def write_corpus(folder: Path, key: str, meetings: Sequence[Meeting]) -> Path:
    first = meetings[0].meeting_id
    query, gold = Query("q", "what ?", "lookup", "demo"), GoldSpan("q", first, 0, 0)
    card = {"key": key, "version": "1", "tier": "A", "judged_by": "constructed"}
    transcript.write_corpus(folder, meetings, [query], [gold], card)
    return folder


def vectors_of(rows: Sequence[table.Row]) -> Vectors:
    values = np.random.default_rng(0).normal(size=(len(rows), DIMENSION)).astype(np.float32)
    return Vectors(values / np.linalg.norm(values, axis=1, keepdims=True), np.arange(len(rows), dtype=np.int32))


class Bench:
    """Corpora injected into one schema, chunked, and (when asked) built into one index."""

    def __init__(
        self, client: OpenSearch, conn: psycopg.Connection, folder: Path, **corpora: Sequence[Meeting]
    ) -> None:
        self.client, self.conn = client, conn
        self.name = f"lossmap_test_answers_{uuid.uuid4().hex[:10]}"
        for key, meetings in corpora.items():
            inject.inject(conn, self.name, write_corpus(folder / key, key, meetings), folder / "out" / key)
        table.build(conn, self.name, list(corpora), folder / "index")
        self.rows = table.load(folder / "index")

    def build(self) -> None:
        build.build(self.client, self.name, self.rows, vectors_of(self.rows), KEY, timing=(20, 0.05))

    def drop(self) -> None:
        marker.delete_index(self.client, self.name)
        self.conn.rollback()
        marker.drop_schema(self.conn, self.name)
        self.conn.commit()
        self.conn.close()
