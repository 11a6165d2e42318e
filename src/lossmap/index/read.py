"""Reads of the segment table: each in the total order (start, end, id).

Overlapping speech shares its onset, and a server returns tied rows in physical order, which a rewrite reshuffles: with
the start time alone one unchanged corpus gave three different chunk counts (seed 000).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
from psycopg import sql

from lossmap.index.chunk import Segment

FILES = """
SELECT file_uuid::text, corpus, meeting_id, title, domain, language, recorded_date::text
FROM {}.file ORDER BY file_uuid
"""
SEGMENTS = """
SELECT segment.start_time, segment.end_time, segment.content, speaker.name
FROM {0}.segment AS segment JOIN {0}.speaker AS speaker USING (speaker_id)
WHERE segment.file_uuid = %s
ORDER BY segment.start_time, segment.end_time, segment.segment_id
"""


ORDERS = {"total": SEGMENTS, "start": SEGMENTS.replace(", segment.end_time, segment.segment_id", "")}
"""``start`` is the broken order: for the study of stability alone, which measures what it costs."""


@dataclass(frozen=True)
class File:
    file_uuid: str
    corpus: str
    meeting_id: str
    title: str
    domain: str
    language: str
    recorded_date: str | None


def files(conn: psycopg.Connection, schema: str) -> list[File]:
    """Every injected file, by uuid."""
    return [File(*row) for row in conn.execute(sql.SQL(FILES).format(sql.Identifier(schema))).fetchall()]


def segments(
    conn: psycopg.Connection, schema: str, files: list[File], order: str = "total"
) -> Iterator[tuple[File, list[Segment]]]:
    """Each file with its segments in spoken order."""
    statement = sql.SQL(ORDERS[order]).format(sql.Identifier(schema))
    for file in files:
        yield file, [Segment(*row) for row in conn.execute(statement, (file.file_uuid,)).fetchall()]
