"""The chunk table: every chunk of the injected files as one sorted file.

Row number = position in (file_uuid, chunk_index) order = Lucene doc id after the index sort and a merge to one segment;
beside a digest plane, whose documents sort before their file's chunks, the order is the same and the numbers are not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from lossmap import canon, progress
from lossmap.engine import postgres
from lossmap.index import read, split
from lossmap.index.chunk import OVERLAP_WORDS, SHORT_TURN_WORDS, TARGET_WORDS, UNKNOWN_SPEAKER, Chunk, chunk_file, words
from lossmap.layout import Layout


@dataclass(frozen=True)
class Row:
    """One chunk with its file's metadata; ``speakers`` are the file's names, sorted."""

    file_uuid: str
    chunk_index: int
    corpus: str
    meeting_id: str
    domain: str
    language: str
    title: str
    recorded_date: str | None
    speaker: str
    speakers: tuple[str, ...]
    start: float
    end: float
    text: str

    @property
    def doc_id(self) -> str:
        return f"{self.file_uuid}_{self.chunk_index}"

    @property
    def roster(self) -> tuple[str, ...]:
        """Everybody in the file, for a header."""
        return self.speakers


def run(at: Layout) -> dict[str, Any]:
    """The rule: the chunk table of a scale from its segment table."""
    with postgres.connect() as conn:
        return build(conn, at.schema, at.documents, at.index_folder, at.order, at.splitter)


def build(
    conn: psycopg.Connection,
    schema: str,
    corpora: Collection[str],
    out: Path,
    order: str = "total",
    splitter: str = "punkt",
) -> dict[str, Any]:
    """chunks.jsonl and chunking.json in ``out``, from the segments of ``corpora``.

    ``order`` (read.ORDERS) and ``splitter`` (split.SPLITTERS) are what they are but in the study of stability.
    """
    files = [file for file in read.files(conn, schema) if file.corpus in corpora]
    rows: list[Row] = []
    for file, segments in progress.bar(read.segments(conn, schema, files, order), "chunk", len(files), "files"):
        speakers = tuple(sorted({s.speaker for s in segments} - {UNKNOWN_SPEAKER}))
        chunks = chunk_file(segments, partial(split.SPLITTERS[splitter], language=file.language))
        rows += [_row(file, index, speakers, chunk) for index, chunk in enumerate(chunks)]
    canon.write_jsonl(out / "chunks.jsonl", map(asdict, rows))
    report = {
        "files": len(files),
        "chunks": len(rows),
        "words": sum(len(words(row.text)) for row in rows),
        "distinct_texts": len({row.text for row in rows}),
        "chunks_sha256": canon.file_sha256(out / "chunks.jsonl"),
        "splitter": split.provenance({file.language for file in files}, splitter),
        "rule": {
            "target_words": TARGET_WORDS,
            "overlap_words": OVERLAP_WORDS,
            "short_turn_words": SHORT_TURN_WORDS,
        },
    }
    canon.write_json(out / "chunking.json", report)
    return report


def _row(file: read.File, index: int, speakers: tuple[str, ...], chunk: Chunk) -> Row:
    return Row(
        file.file_uuid, index, file.corpus, file.meeting_id, file.domain, file.language, file.title, file.recorded_date,
        chunk.speaker, speakers, chunk.start, chunk.end, chunk.text,
    )  # fmt: skip


def load(folder: Path) -> list[Row]:
    return [Row(**{**row, "speakers": tuple(row["speakers"])}) for row in canon.read_jsonl(folder / "chunks.jsonl")]


def doc_ids(rows: Iterable[Row]) -> list[str]:
    return [row.doc_id for row in rows]
