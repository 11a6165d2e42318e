"""Memories in SQLite: how a corpus is stored, and the keyword search over it (spec/replay 1).

A line is kept once: its key and its text are each under a unique index, and a later line that breaks one is ignored.
The lexical index is FTS5 over trigrams, so that a term matches inside words and letter case does not count, while
diacritics do. bm25 is SQLite's own, with the defaults k1 = 1.2 and b = 0.75: read it from the build that ran, never
derive it again.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lossmap.errors import LossmapError

VERSION = sqlite3.sqlite_version
AGENT = "lossmap"
MOMENT = "2026-01-01T00:00:00Z"
"""The time of every row. The system's own clock would let the order of ties depend on when a row was stored."""
BATCH = 256
SCAN_WINDOW = 300_000
FALLBACK_FACTOR, FALLBACK_LEAST = 5, 50
KEYED = ("rows", "content")
MARK = 0x6C6F736D
"""``application_id`` of a file that lossmap created."""

NEWEST = "created_at DESC, id ASC"
"""The order of every scan, and so the tie-break of equal cosines."""
BEST = "score ASC, m.id ASC"
"""The order of a keyword search: SQLite's bm25 is smaller for the better row."""

# Ids are not AUTOINCREMENT, unlike the system's: that counter also advances for an ignored line, and survives a wipe.
SCHEMA = """
CREATE TABLE IF NOT EXISTS memories (
    id INTEGER PRIMARY KEY, agent_id TEXT NOT NULL, project_id TEXT NOT NULL DEFAULT '',
    msg_id TEXT NOT NULL DEFAULT '', content TEXT NOT NULL, source TEXT NOT NULL DEFAULT '{}', timestamp TEXT NOT NULL,
    metadata TEXT NOT NULL DEFAULT '{}', embedding BLOB, channel TEXT NOT NULL DEFAULT '', created_at TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS newest ON memories (agent_id, created_at DESC);
CREATE UNIQUE INDEX IF NOT EXISTS one_text ON memories (agent_id, project_id, channel, content);
CREATE UNIQUE INDEX IF NOT EXISTS one_key ON memories (agent_id, project_id, msg_id) WHERE msg_id <> '';
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
    content, content = memories, content_rowid = id, tokenize = 'trigram');
CREATE TRIGGER IF NOT EXISTS added AFTER INSERT ON memories BEGIN
    INSERT INTO words (rowid, content) VALUES (new.id, new.content); END;
CREATE TRIGGER IF NOT EXISTS removed AFTER DELETE ON memories BEGIN
    INSERT INTO words (words, rowid, content) VALUES ('delete', old.id, old.content); END;
"""
ADD = """INSERT OR IGNORE INTO memories (agent_id, msg_id, content, timestamp, embedding, channel, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?)"""

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uff66-\uff9f"
TOKEN = re.compile(f"[{CJK}]+|[^\\s{CJK}]+")
IS_CJK = re.compile(f"[{CJK}]")
PUNCTUATION = re.compile(r"[^\w\s]")
SHORTEST = 3

Hit = tuple[int, str, float | None]
"""(rowid, key, bm25): bm25 is minus SQLite's, so larger is better; None where no bm25 ranked the row."""


@dataclass(frozen=True)
class Population:
    """What became of ``lines`` lines: ``kept`` int64 (stored,) holds the line of each row, in row order."""

    lines: int
    stored: int
    collapsed: int
    kept: NDArray[np.int64]


@dataclass(frozen=True)
class Keyword:
    """``hits`` best first; ``fallback``: they are of the LIKE search (an empty list is never flagged)."""

    hits: list[Hit]
    fallback: bool


def terms(text: str, strip_punct: bool = False) -> list[str]:
    """The terms of a query, each once, in order of first appearance: two spellings by case are two terms.

    A run of CJK characters gives its overlapping trigrams; any other run without whitespace is one term, with the
    punctuation that is attached to it. What is shorter than three characters is dropped. ``strip_punct``, an ablation,
    makes a space of every character that is neither of a word nor white, as builders before the system's a5206f6 did.
    """
    found: list[str] = []
    for token in TOKEN.findall(PUNCTUATION.sub(" ", text) if strip_punct else text):
        if IS_CJK.match(token):
            found += [token[at : at + SHORTEST] for at in range(len(token) - SHORTEST + 1)]
        elif len(token) >= SHORTEST:
            found.append(token)
    return list(dict.fromkeys(found))


def query_expression(text: str, strip_punct: bool = False) -> str:
    """The FTS5 expression of a query: its terms as quoted phrases, joined with OR; empty where it has no term."""
    return " OR ".join('"' + term.replace('"', '""') + '"' for term in terms(text, strip_punct))


def like_pattern(text: str) -> str:
    """LIKE pattern (escape character: backslash) of the texts that hold ``text`` literally."""
    return "%" + re.sub(r"([\\%_])", r"\\\1", text) + "%"


class Store:
    """Memories of one agent in a SQLite database: a file that lossmap created, or ":memory:".

    Raises LossmapError (exit 2) on a file that is no store of lossmap, and where SQLite has no trigrams.
    """

    def __init__(self, path: Path | str = ":memory:") -> None:
        self._db = sqlite3.connect(path)
        try:
            self._require_ours(path)
            self._db.executescript(f"PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; {SCHEMA}")
        except sqlite3.DatabaseError as error:
            self._db.close()
            raise LossmapError(
                "SQLite cannot make a store of this",
                where=path,
                observed=f"SQLite {VERSION}: {error}",
                expected="a database file, and FTS5 with the trigram tokenizer (SQLite 3.34 or later)",
                exit_code=2,
            ) from error
        self._db.execute(f"PRAGMA application_id = {MARK}")

    def _require_ours(self, path: Path | str) -> None:
        (mark,) = self._one("PRAGMA application_id")
        (tables,) = self._one("SELECT count(*) FROM sqlite_master")
        if tables and mark != MARK:
            self._db.close()
            raise LossmapError(
                "a database of this name exists and lossmap did not create it",
                where=path,
                observed=f"{tables} tables and indexes, application_id {mark}",
                expected="a store that lossmap created, or no such file",
                next_command="choose another path",
                exit_code=2,
            )

    def close(self) -> None:
        """Close the connection; a store in memory is gone."""
        self._db.close()

    def size(self) -> int:
        """Stored rows: the pool P of the gate."""
        (count,) = self._one("SELECT count(*) FROM memories WHERE agent_id = ?", AGENT)
        return int(count)

    def wipe(self) -> None:
        """Delete every row, and with it what the lexical index knows of it."""
        with self._db:
            self._db.execute("DELETE FROM memories WHERE agent_id = ?", (AGENT,))

    def fill(
        self, keys: Sequence[str], texts: Sequence[str], vectors: NDArray[np.float32] | None, keyed: str = "content"
    ) -> Population:
        """Wipe the store and store one corpus, line by line, the first occurrence of a key and of a text.

        ``vectors`` float32 (lines, d), or None for a store that serves keyword searches alone. ``keyed`` "content" is
        what the system does; "rows" puts each key into a channel of its own, so that equal texts of two keys both stay.
        """
        _check(keys, texts, vectors, keyed)
        self.wipe()
        kept: list[int] = []
        for start in range(0, len(keys), BATCH):
            with self._db:
                for line in range(start, min(start + BATCH, len(keys))):
                    blob = None if vectors is None else vectors[line].astype("<f4").tobytes()
                    channel = keys[line] if keyed == "rows" else ""
                    row = (AGENT, keys[line], texts[line], MOMENT, blob, channel, MOMENT)
                    # A key that was ignored with its line is free for a later one: only SQLite knows what it took.
                    if self._db.execute(ADD, row).rowcount:
                        kept.append(line)
        return Population(len(keys), len(kept), len(keys) - len(kept), np.array(kept, np.int64))

    def scan(self) -> Iterator[tuple[int, str, bytes | None]]:
        """(rowid, key, float32 little-endian vector) of every row, newest first, then by rowid."""
        yield from self._db.execute(
            f"SELECT id, msg_id, embedding FROM memories WHERE agent_id = ? ORDER BY {NEWEST}", (AGENT,)
        )

    def keyword(self, text: str, limit: int, strip_punct: bool = False) -> Keyword:
        """The rows that hold a term of ``text``, at most ``limit``, by bm25 and then by rowid.

        Where no row does, or no term is left, the rows that hold the whole text literally (LIKE), newest first and
        without a score. (In the first case there are none: a row that holds the whole text holds its terms.) A blank
        text gives the newest rows, which is no fallback. Raises on a text with a NUL, which SQLite takes for its end.
        """
        if "\0" in text:
            raise LossmapError("a query holds a NUL character", observed=repr(text), expected="text")
        limit = max(0, min(limit, SCAN_WINDOW))
        if not text.strip():
            return Keyword(self._like("%", limit), fallback=False)
        if hits := self._matches(query_expression(text, strip_punct), limit):
            return Keyword(hits, fallback=False)
        hits = self._like(like_pattern(text), limit)
        return Keyword(hits, fallback=bool(hits))

    def _matches(self, expression: str, limit: int) -> list[Hit]:
        if not expression:
            return []
        found = self._db.execute(
            f"""SELECT m.id, m.msg_id, bm25(words) AS score FROM words JOIN memories m ON m.id = words.rowid
            WHERE words MATCH ? AND m.agent_id = ? ORDER BY {BEST} LIMIT ?""",
            (expression, AGENT, limit),
        )
        return [(rowid, key, -score) for rowid, key, score in found]

    def _like(self, pattern: str, limit: int) -> list[Hit]:
        scanned = self._db.execute(
            f"""SELECT id, msg_id FROM memories WHERE agent_id = ? AND content LIKE ? ESCAPE '\\'
            ORDER BY {NEWEST} LIMIT ?""",
            (AGENT, pattern, scan_limit(limit)),
        ).fetchall()
        return [(rowid, key, None) for rowid, key in scanned[:limit]]

    def _one(self, statement: str, *values: object) -> tuple[Any, ...]:
        row: tuple[Any, ...] = self._db.execute(statement, values).fetchone()
        return row


def scan_limit(limit: int) -> int:
    """How many rows the LIKE search reads for ``limit`` of them: min(scan window, max(5 limit, 50))."""
    return min(SCAN_WINDOW, max(FALLBACK_FACTOR * limit, FALLBACK_LEAST))


def _check(keys: Sequence[str], texts: Sequence[str], vectors: NDArray[np.float32] | None, keyed: str) -> None:
    if keyed not in KEYED:
        raise LossmapError("rows are keyed in no known way", observed=keyed, expected=" or ".join(KEYED))
    if not all(keys):
        raise LossmapError("a line has no key", observed=f"line {list(keys).index('')}", expected="an id of every line")
    if len(texts) != len(keys) or (vectors is not None and len(vectors) != len(keys)):
        raise LossmapError(
            "keys, texts and vectors of a corpus differ in number",
            observed=f"{len(keys)} keys, {len(texts)} texts, {'no' if vectors is None else len(vectors)} vectors",
            expected="one of each a line",
        )
    if vectors is not None and (vectors.dtype != np.float32 or vectors.ndim != 2):
        observed = f"{vectors.dtype} {vectors.shape}"
        raise LossmapError("vectors of a corpus are of another kind", observed=observed, expected="float32 (lines, d)")
