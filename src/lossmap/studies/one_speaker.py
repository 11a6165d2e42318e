"""One chunk, one speaker: asserted over a whole index, against what was injected and not against the chunker.

A filter on the speaker is honest only where a chunk holds nobody else's words. So each file is walked twice at once:
its segments in spoken order, joined while one speaker goes on, and its chunks, which must tell the same words of the
same speaker again, from the first to the last, and none of a neighbour's.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from lossmap import canon, transcript
from lossmap.errors import LossmapError
from lossmap.index.chunk import UNKNOWN_SPEAKER
from lossmap.index.table import Row
from lossmap.layout import Layout


class Run(NamedTuple):
    """What one speaker said before another did: its segments' text without white space, and how many they are."""

    speaker: str
    text: str
    segments: int


def check(at: Layout, rows: Sequence[Row]) -> dict[str, Any]:
    """How many chunks (``rows``, the whole table of the index of ``at``) and segments were walked.

    Raises with exit 3 at the first chunk that holds words of another speaker than its own, and at the first words that
    no chunk holds.
    """
    chunks: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        chunks[row.file_uuid].append(row)
    counts: Counter[str] = Counter()
    for key in at.documents:
        for file, spoken in _files(at, key):
            counts += _walk(file, spoken, sorted(chunks.pop(file, []), key=lambda row: row.chunk_index))
    if chunks:
        raise _refusal("the index holds a file that was not injected", min(chunks), f"{len(chunks)} files", "0")
    unknown = sum(row.speaker == UNKNOWN_SPEAKER for row in rows)
    names = ("files", "chunks", "segments", "runs", "runs_in_several_chunks", "merged_segments")
    return {**{name: counts[name] for name in names}, "by_unknown": unknown, "of_several_speakers": 0}


def _files(at: Layout, key: str) -> Iterator[tuple[str, list[Run]]]:
    """Each injected file with its runs in spoken order."""
    texts = {meeting.meeting_id: {turn.index: turn.text for turn in meeting.turns}
             for meeting in transcript.read_meetings(at.corpus(key))}  # fmt: skip
    turns: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for turn in canon.read_jsonl(at.injection(key) / "turns.jsonl"):
        turns[turn["file_uuid"]].append(turn)
    for file in canon.read_jsonl(at.injection(key) / "files.jsonl"):
        said = texts[file["meeting_id"]]
        spoken = sorted(turns[file["file_uuid"]], key=lambda turn: turn["segment_position"])
        groups = [(speaker, list(some)) for speaker, some in groupby(spoken, key=lambda turn: turn["speaker"])]
        yield (
            file["file_uuid"],
            [
                Run(speaker, _bare(" ".join(said[turn["turn_index"]] for turn in some)), len(some))
                for speaker, some in groups
            ],
        )


def _walk(file: str, spoken: Sequence[Run], chunks: Sequence[Row]) -> Counter[str]:
    """Every run in its chunks and every chunk in its run, in order; counts of one file."""
    left = iter(chunks)
    several = 0
    for run in spoken:
        at, used = 0, 0
        while at < len(run.text):
            at, used = _reach(file, run, next(left, None), at), used + 1
        several += used > 1
    if more := next(left, None):
        raise _refusal("a chunk holds words that nobody said there", more.doc_id, more.speaker, "nothing more")
    segments = sum(run.segments for run in spoken)
    return Counter(
        files=1, chunks=len(chunks), segments=segments, runs=len(spoken), runs_in_several_chunks=several,
        merged_segments=segments - len(spoken),
    )  # fmt: skip


def _reach(file: str, run: Run, chunk: Row | None, at: int) -> int:
    """Characters of ``run`` that are told once ``chunk`` is, of which ``at`` were before; it may repeat, not skip."""
    if chunk is None:
        raise _refusal("words of a file are in no chunk", file, f"{at} of {len(run.text)} characters", run.speaker)
    text = _bare(chunk.text)
    place = run.text.rfind(text, 0, at + len(text))
    if chunk.speaker != run.speaker or place < 0 or place + len(text) <= at:
        raise _refusal("a chunk is not what one speaker said", chunk.doc_id, chunk.speaker, f"{run.speaker} alone")
    return place + len(text)


def _bare(text: str) -> str:
    return "".join(text.split())


def _refusal(what: str, where: str, observed: str, expected: str) -> LossmapError:
    return LossmapError(
        what,
        where=where,
        observed=observed,
        expected=expected,
        next_command="./run lossmap inject, then ./run lossmap index --force: a filter on the speaker lies until then",
        exit_code=3,
    )
