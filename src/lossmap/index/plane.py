"""The digest plane: digests.jsonl beside the chunk table, one row a section of a file, sorted by (file, section).

A second rule and a second file: the chunk table, its row numbers and its vectors know nothing of digests.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg

from lossmap import canon, progress
from lossmap.engine import postgres
from lossmap.index import digest, read, split, terms
from lossmap.index.chunk import UNKNOWN_SPEAKER, words
from lossmap.layout import Layout

ROWS = "digests.jsonl"
REPORT = "digesting.json"


@dataclass(frozen=True)
class DigestRow:
    """One digest with its file's metadata; ``speakers`` said its sentences, ``roster`` is everybody in the file.

    ``sentences`` as stored: text, order among the file's candidates, speaker, rank, and the positions of its segments
    in the file's total order.
    """

    file_uuid: str
    section: int
    corpus: str
    meeting_id: str
    domain: str
    language: str
    title: str
    recorded_date: str | None
    speakers: tuple[str, ...]
    roster: tuple[str, ...]
    start: float
    end: float
    text: str
    sentences: tuple[dict[str, Any], ...]

    @property
    def doc_id(self) -> str:
        return f"{self.file_uuid}_digest_{self.section}"

    @property
    def chunk_index(self) -> int:
        """Below every chunk's: -1 is the first section."""
        return -1 - self.section


def run(at: Layout) -> dict[str, Any]:
    """The rule: the digests of a scale from its segment table."""
    with postgres.connect() as conn:
        return build(conn, at.schema, at.documents, at.index_folder)


def build(conn: psycopg.Connection, schema: str, corpora: Collection[str], out: Path) -> dict[str, Any]:
    """digests.jsonl and digesting.json in ``out``, from the segments of ``corpora``; a file may have no digest."""
    files = [file for file in read.files(conn, schema) if file.corpus in corpora]
    rows: list[DigestRow] = []
    for file, segments in progress.bar(read.segments(conn, schema, files), "digest", len(files), "files"):
        roster = tuple(sorted({s.speaker for s in segments} - {UNKNOWN_SPEAKER}))
        rows += [_row(file, roster, found) for found in digest.digests(segments, file.language)]
    canon.write_jsonl(out / ROWS, map(asdict, rows))
    report = {
        "files": len(files),
        "files_without": len(files) - len({row.file_uuid for row in rows}),
        "digests": len(rows),
        "words": sum(len(words(row.text)) for row in rows),
        "digests_sha256": canon.file_sha256(out / ROWS),
        "splitter": split.provenance({file.language for file in files}),
        "terms": terms.provenance(),
        "rule": digest.RULE,
    }
    canon.write_json(out / REPORT, report)
    return report


def _row(file: read.File, roster: tuple[str, ...], found: digest.Digest) -> DigestRow:
    sentences = tuple(
        {"text": s.text, "order": s.order, "speaker": s.speaker, "rank": rank, "provenance": list(s.segments)}
        for s, rank in zip(found.sentences, found.ranks, strict=True)
    )
    return DigestRow(
        file.file_uuid, found.section, file.corpus, file.meeting_id, file.domain, file.language, file.title,
        file.recorded_date, found.speakers or roster, roster, found.start, found.end, found.text, sentences,
    )  # fmt: skip


def load(folder: Path) -> list[DigestRow]:
    return [_typed(row) for row in canon.read_jsonl(folder / ROWS)]


def _typed(row: dict[str, Any]) -> DigestRow:
    return DigestRow(**{**row, **{name: tuple(row[name]) for name in ("speakers", "roster", "sentences")}})


def doc_ids(rows: Iterable[DigestRow]) -> list[str]:
    return [row.doc_id for row in rows]
