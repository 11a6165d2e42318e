"""Speaker-turn chunks: one per turn, long turns split at sentences (spec/harness 1.2-1.4)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter

TARGET_WORDS = 200
OVERLAP_WORDS = 40
SHORT_TURN_WORDS = 20
UNKNOWN_SPEAKER = "Unknown"

Splitter = Callable[[str], list[str]]


@dataclass(frozen=True)
class Segment:
    """One row of the segment table; times in seconds."""

    start: float
    end: float
    text: str
    speaker: str


@dataclass(frozen=True)
class Chunk:
    """A passage of one speaker; ``start`` and ``end`` in seconds, rounded to two decimals."""

    speaker: str
    start: float
    end: float
    text: str


def words(text: str) -> list[str]:
    return text.split()


def chunk_file(segments: Sequence[Segment], split: Splitter) -> list[Chunk]:
    """Chunks of one file, in spoken order; ``segments`` come sorted by (start, end, id)."""
    chunks: list[Chunk] = []
    for turn in turns(segments):
        count = len(words(turn.text))
        # Reachable only where a blank turn of another speaker was dropped in between.
        if count < SHORT_TURN_WORDS and chunks and chunks[-1].speaker == turn.speaker:
            chunks[-1] = replace(chunks[-1], text=f"{chunks[-1].text} {turn.text}", end=turn.end)
        elif count <= TARGET_WORDS:
            chunks.append(turn)
        else:
            chunks.extend(split_turn(turn, split))
    return [replace(c, start=round(c.start, 2), end=round(c.end, 2)) for c in chunks]


def turns(segments: Iterable[Segment]) -> Iterator[Chunk]:
    """Consecutive segments of one speaker as one passage; its end is that of the last segment, not the maximum."""
    for speaker, group in groupby(segments, key=attrgetter("speaker")):
        run = list(group)
        text = " ".join(t for t in (segment.text.strip() for segment in run) if t)
        if text:
            yield Chunk(speaker, run[0].start, run[-1].end, text)


def split_turn(turn: Chunk, split: Splitter, target: int = TARGET_WORDS, overlap: int = OVERLAP_WORDS) -> list[Chunk]:
    """Pieces of at most ``target`` words (one oversize sentence excepted), each starting with an overlap tail."""
    overlap = min(overlap, target - 1)
    sentences = split(turn.text)
    pieces = (
        _windows(turn.text, target, overlap) if len(sentences) < 2 else _sentence_groups(sentences, target, overlap)
    )
    return _timed(turn, list(pieces))


Piece = tuple[int, int, str]
"""Word offset in the turn, number of words, text."""


def _windows(text: str, target: int, overlap: int) -> Iterator[Piece]:
    """Word windows over a turn without sentence ends; the text is a slice, so that its spacing survives."""
    spans = [match.span() for match in re.finditer(r"\S+", text)]
    begin = 0
    while True:
        end = min(begin + target, len(spans))
        yield begin, end - begin, text[spans[begin][0] : spans[end - 1][1]]
        if end == len(spans):
            return
        begin = end - overlap


def _sentence_groups(sentences: Sequence[str], target: int, overlap: int) -> Iterator[Piece]:
    """Greedy groups of whole sentences; a group is handed on when the next sentence would pass ``target``."""
    offset, group, size = 0, list[str](), 0
    for sentence in sentences:
        count = len(words(sentence))
        if group and size + count > target:
            yield offset, size, " ".join(group)
            tail = _overlap_tail(group, overlap)
            carried = sum(len(words(s)) for s in tail)
            offset, group, size = offset + size - carried, tail, carried
        group.append(sentence)
        size += count
    yield offset, size, " ".join(group)


def _overlap_tail(group: Sequence[str], overlap: int) -> list[str]:
    """The last sentences of ``group`` within ``overlap`` words; one alone may take twice that, a longer one none."""
    tail: list[str] = []
    total = 0
    for sentence in reversed(group):
        count = len(words(sentence))
        if (tail and total + count > overlap) or total + count > 2 * overlap:
            break
        tail.insert(0, sentence)
        total += count
    return tail


def _timed(turn: Chunk, pieces: Sequence[Piece]) -> list[Chunk]:
    """Linear times by word offset; the last piece ends with the turn."""
    total = len(words(turn.text))
    rate = (turn.end - turn.start) / total
    out = [
        Chunk(turn.speaker, turn.start + offset * rate, turn.start + (offset + count) * rate, text)
        for offset, count, text in pieces
    ]
    out[-1] = replace(out[-1], end=turn.end)
    return out
