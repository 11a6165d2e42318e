"""From gold turn ranges to graded chunk judgements (spec/harness 3.1).

A chunk is matched to the turns of its own speaker that it overlaps in time; its coverage for a query is the gold share
of the words it matched; a policy turns coverage into a grade. Coverage does not depend on the policy, so it is computed
once and graded as often as one likes.
"""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.transcript import GoldSpan

Qrels = dict[str, dict[str, int]]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SLIVER = 0.01
NO_SPAN = "no gold span"
NOT_INJECTED = "a gold meeting was not injected"
NO_CHUNK = "no chunk overlaps a gold turn"
TOO_LOW = "every coverage is at or below the low threshold"


class TurnRow(NamedTuple):
    """An injected turn; ``start`` and ``end`` in seconds."""

    file_uuid: str
    turn_index: int
    speaker: str
    start: float
    end: float
    word_count: int


class ChunkDoc(NamedTuple):
    """An indexed chunk; ``start`` and ``end`` in seconds."""

    file_uuid: str
    chunk_index: int
    speaker: str
    start: float
    end: float

    @property
    def doc_id(self) -> str:
        return f"{self.file_uuid}_{self.chunk_index}"


Row = TypeVar("Row", TurnRow, ChunkDoc)


@dataclass(frozen=True)
class RelevancePolicy:
    """Coverage to grade: <= ``low`` is 0; else 1 if ``binary``; else 2 from ``high`` on and 1 below it."""

    high: float = 0.5
    low: float = 0.0
    binary: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high <= 1:
            seen, rule = f"low {self.low}, high {self.high}", "0 <= low < high <= 1"
            raise LossmapError("relevance thresholds do not make a ladder", observed=seen, expected=rule, exit_code=2)

    def card(self) -> dict[str, Any]:
        """The ``relevance_policy`` block of a metrics document."""
        return {"rule": "gold share of the words of the same-speaker turns a chunk overlaps in time", **asdict(self)}


@dataclass(frozen=True)
class Overlaps:
    """Which chunks cover which turns.

    ``turns`` sorted by (file, turn index), T of them; ``doc_ids`` (C,) by (file, chunk index). Pairs are sorted by turn
    row: those of turn t are ``chunk[start[t]:start[t + 1]]`` with their ``weight`` in words. ``total`` (C,) is the
    weight that a chunk matched in all.
    """

    turns: list[TurnRow]
    doc_ids: NDArray[np.object_]
    start: Ints
    chunk: Ints
    weight: Floats
    total: Floats


@dataclass(frozen=True)
class Coverage:
    """Per query the chunks with coverage > 0: ``chunk[start[q]:start[q + 1]]`` (rows of ``doc_ids``) and ``share``.

    ``grades`` is the corpus's own grade of each, the highest of the gold turns it touches; 0 where coverage decides.
    """

    query_ids: tuple[str, ...]
    doc_ids: NDArray[np.object_]
    start: Ints
    chunk: Ints
    share: Floats
    grades: Ints
    unjudgeable: Mapping[str, str]
    unmatched_chunks: int


@dataclass(frozen=True)
class Graded:
    """Judgements of one policy; ``dropped`` maps an unjudgeable query to its reason."""

    qrels: Qrels
    dropped: dict[str, str]
    slivers: int
    unmatched_chunks: int

    def summary(self) -> dict[str, Any]:
        """The ``qrels`` block of a metrics document. ``slivers``: grade 1 on coverage below SLIVER, an artefact of
        chunk times with two decimals against turn times with three."""
        judged = sum(map(len, self.qrels.values()))
        return {
            "queries": len(self.qrels),
            "judged_documents": judged,
            "mean_judged_per_query": round(judged / len(self.qrels), 4) if self.qrels else 0.0,
            "queries_dropped_unjudgeable": len(self.dropped),
            "dropped": dict(sorted(self.dropped.items())),
            "grade_2": sum(grade == 2 for docs in self.qrels.values() for grade in docs.values()),
            "slivers": self.slivers,
            "chunks_without_turns": self.unmatched_chunks,
        }


def read_turns(path: Path) -> list[TurnRow]:
    return [TurnRow(*(row[name] for name in TurnRow._fields)) for row in canon.read_jsonl(path)]


def read_chunks(path: Path) -> list[ChunkDoc]:
    return [ChunkDoc(*(row[name] for name in ChunkDoc._fields)) for row in canon.read_jsonl(path)]


def overlaps(turns: Iterable[TurnRow], chunks: Iterable[ChunkDoc]) -> Overlaps:
    """Match turns and chunks of the same file and the same speaker string by time overlap.

    weight(turn, chunk) = words * min(1, overlap / duration); a turn without duration contributes nothing.
    Raises when a (file, index) occurs twice.
    """
    turns, chunks = _ordered(turns, "turn"), _ordered(chunks, "chunk")
    buckets: dict[tuple[str, str], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for row, turn in enumerate(turns):
        buckets[turn.file_uuid, turn.speaker][0].append(row)
    for row, chunk in enumerate(chunks):
        buckets[chunk.file_uuid, chunk.speaker][1].append(row)
    turn_times = np.array([(t.start, t.end, t.word_count) for t in turns], float).reshape(-1, 3)
    chunk_times = np.array([(c.start, c.end) for c in chunks], float).reshape(-1, 2)
    nothing = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    parts = [_match(np.array(t), np.array(c), turn_times, chunk_times) for t, c in buckets.values() if t and c]
    turn_row, chunk_row, weight = map(np.concatenate, zip(nothing, *parts))
    # One order of summation for the total and for every gold share: a chunk that is all gold has coverage 1.0 exactly.
    order = np.lexsort((chunk_row, turn_row))
    turn_row, chunk_row, weight = turn_row[order], chunk_row[order], weight[order]
    return Overlaps(
        turns=turns,
        doc_ids=np.array([c.doc_id for c in chunks], object),
        start=np.searchsorted(turn_row, np.arange(len(turns) + 1)),
        chunk=chunk_row,
        weight=weight,
        total=np.bincount(chunk_row, weight, len(chunks)),
    )


def _ordered(rows: Iterable[Row], kind: str) -> list[Row]:
    ordered = sorted(rows, key=lambda row: row[:2])
    for before, after in zip(ordered, ordered[1:]):
        if before[:2] == after[:2]:
            raise LossmapError(f"a {kind} occurs twice", where=f"file {after[0]}, {kind} {after[1]}")
    return ordered


def _match(turn_rows: Ints, chunk_rows: Ints, turn_times: Floats, chunk_times: Floats) -> tuple[Ints, Ints, Floats]:
    """Overlapping pairs of one bucket as (turn rows, chunk rows, weights)."""
    turn_rows = turn_rows[np.argsort(turn_times[turn_rows, 0], kind="stable")]
    begin, end, _ = turn_times[turn_rows].T
    chunk_begin, chunk_end = chunk_times[chunk_rows].T
    # The furthest end so far bounds the search from below. (Begin minus the longest duration would too, but for a
    # subtraction that rounds.)
    low = np.searchsorted(np.maximum.accumulate(end), chunk_begin, side="right")
    count = np.maximum(np.searchsorted(begin, chunk_end, side="left") - low, 0)
    turn = turn_rows[_ranges(low, count)]
    chunk = np.repeat(chunk_rows, count)
    begin, end, words = turn_times[turn].T
    inside = np.minimum(end, chunk_times[chunk, 1]) - np.maximum(begin, chunk_times[chunk, 0])
    keep = (inside > 0) & (words > 0)
    turn, chunk, inside, words, duration = turn[keep], chunk[keep], inside[keep], words[keep], (end - begin)[keep]
    return turn, chunk, words * np.minimum(1.0, inside / duration)


def coverage(pairs: Overlaps, query_ids: Iterable[str], gold: Iterable[GoldSpan], files: Mapping[str, str]) -> Coverage:
    """Coverage of every chunk that a query's gold touches; spans of a file are united first.

    ``files`` maps meeting ids to file uuids. A reversed span is empty; turns that were not injected count for nothing.
    """
    spans: dict[str, list[GoldSpan]] = defaultdict(list)
    for span in gold:
        spans[span.query_id].append(span)
    rows_of_file = _rows_by_file(pairs.turns)
    ids = tuple(sorted(set(query_ids)))
    chunks, shares, grades = [np.empty(0, np.int64)], [np.empty(0)], [np.empty(0, np.int64)]
    reasons: dict[str, str] = {}
    for query_id in ids:
        mine = spans.get(query_id, [])
        missing = any(span.meeting_id not in files or files[span.meeting_id] not in rows_of_file for span in mine)
        chunk, share, own = _shares(pairs, *_gold_rows([] if missing else mine, files, rows_of_file))
        chunks.append(chunk)
        shares.append(share)
        grades.append(own)
        if not len(chunk):
            reasons[query_id] = NO_SPAN if not mine else NOT_INJECTED if missing else NO_CHUNK
    return Coverage(
        query_ids=ids,
        doc_ids=pairs.doc_ids,
        start=np.cumsum([len(part) for part in chunks]),
        chunk=np.concatenate(chunks),
        share=np.concatenate(shares),
        grades=np.concatenate(grades),
        unjudgeable=reasons,
        unmatched_chunks=int(np.count_nonzero(pairs.total == 0)),
    )


def _rows_by_file(turns: Sequence[TurnRow]) -> dict[str, tuple[int, Ints]]:
    """Per file its first turn row and its turn indices; the rows of a file are contiguous."""
    indices: dict[str, list[int]] = defaultdict(list)
    first: dict[str, int] = {}
    for row, turn in enumerate(turns):
        first.setdefault(turn.file_uuid, row)
        indices[turn.file_uuid].append(turn.turn_index)
    return {file: (first[file], np.array(numbers)) for file, numbers in indices.items()}


def _gold_rows(
    spans: Iterable[GoldSpan], files: Mapping[str, str], rows_of_file: Mapping[str, tuple[int, Ints]]
) -> tuple[Ints, Ints]:
    """Turn rows that the spans cover, ascending, each once, and the highest upstream grade of each (0 for none)."""
    parts, own = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for span in spans:
        row, numbers = rows_of_file[files[span.meeting_id]]
        low, high = np.searchsorted(numbers, (span.first, span.last + 1))
        parts.append(np.arange(row + low, row + high))
        own.append(np.full(high - low, span.grade or 0))
    rows, place = np.unique(np.concatenate(parts), return_inverse=True)
    return rows, _highest(np.concatenate(own), place, len(rows))


def _highest(values: Ints, place: Ints, size: int) -> Ints:
    """The largest of the ``values`` that fall into each of ``size`` places."""
    out = np.zeros(size, np.int64)
    np.maximum.at(out, place, values)
    return out


def _shares(pairs: Overlaps, gold_rows: Ints, own: Ints) -> tuple[Ints, Floats, Ints]:
    """Chunk rows (ascending) that the gold turns touch, the gold share of each, and its highest upstream grade."""
    low = pairs.start[gold_rows]
    count = pairs.start[gold_rows + 1] - low
    mine = _ranges(low, count)
    chunk, place = np.unique(pairs.chunk[mine], return_inverse=True)
    share = np.bincount(place, pairs.weight[mine], len(chunk)) / pairs.total[chunk]
    return chunk, share, _highest(np.repeat(own, count), place, len(chunk))


def _ranges(low: Ints, count: Ints) -> Ints:
    """The ranges low[i], ..., low[i] + count[i] - 1, one after another."""
    return np.arange(count.sum()) + np.repeat(low - np.cumsum(count) + count, count)


def grade(cover: Coverage, policy: RelevancePolicy = RelevancePolicy()) -> Graded:
    """Judgements (grades > 0 only) under ``policy``; queries left without any are dropped with a reason."""
    share = cover.share
    high = np.where((share >= policy.high) & (not policy.binary), 2, 1)
    by_coverage = np.where(share <= policy.low, 0, high)
    grades = np.where(cover.grades > 0, np.minimum(cover.grades, 1) if policy.binary else cover.grades, by_coverage)
    qrels: Qrels = {}
    dropped = dict(cover.unjudgeable)
    for place, query_id in enumerate(cover.query_ids):
        cut = slice(cover.start[place], cover.start[place + 1])
        kept = grades[cut] > 0
        docs = cover.doc_ids[cover.chunk[cut][kept]].tolist()
        if docs:
            qrels[query_id] = dict(zip(docs, grades[cut][kept].tolist()))
        else:
            dropped.setdefault(query_id, TOO_LOW)
    slivers = int(np.count_nonzero((grades == 1) & (share < SLIVER)))
    return Graded(qrels, dropped, slivers, cover.unmatched_chunks)


def write_qrels(path: Path, qrels: Qrels) -> None:
    """TREC qrels, gzipped: ``query 0 document grade``, sorted."""
    with canon.gzip_atomic(path) as text:
        for query_id, docs in sorted(qrels.items()):
            text.writelines(f"{query_id} 0 {doc} {value}\n" for doc, value in sorted(docs.items()))


def read_qrels(path: Path) -> Qrels:
    qrels: Qrels = defaultdict(dict)
    with gzip.open(path, "rt", encoding="utf-8") as text:
        for row in text:
            query_id, _, doc, value = row.split()
            qrels[query_id][doc] = int(value)
    return dict(qrels)
