"""What injected transcripts are like: turns, speakers, ties, and speech that overlaps where times are measured."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from lossmap import canon, layout
from lossmap.corpora import timing
from lossmap.judge import qrels
from lossmap.judge.qrels import TurnRow
from lossmap.layout import Layout

SHORT_WORDS = 20


def study(at: Layout, places: Sequence[str]) -> dict[str, Any]:
    """ingest.json: a row an injection (``INDEX/CORPUS``), source and reference of its times; never pooled."""
    return {"short_words": SHORT_WORDS, "rows": [row for place in places for row in _rows(at, place)]}


def _rows(at: Layout, place: str) -> list[dict[str, Any]]:
    index, _, key = place.partition("/")
    folder = layout.load(at.scale, index).injection(key)
    head = {k: v for k, v in canon.read_json(folder / "manifest.json")["corpus"].items() if k in ("tier", "judged_by")}
    turns: defaultdict[str, list[TurnRow]] = defaultdict(list)
    for turn in qrels.read_turns(folder / "turns.jsonl"):
        turns[turn.file_uuid].append(turn)
    by_source: defaultdict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for file in canon.read_jsonl(folder / "files.jsonl"):
        by_source[file["timing_source"], file.get("reference", "none")].append(file)
    return [
        {"index": index, "corpus": key, **head, "timing_source": source, "reference": reference,
         **shape(files, [turns[f["file_uuid"]] for f in files]), **_seconds(source, files, turns)}
        for (source, reference), files in sorted(by_source.items())
    ]  # fmt: skip


def shape(files: Sequence[Mapping[str, Any]], turns: Iterable[Sequence[TurnRow]]) -> dict[str, Any]:
    """Counts of turns, words and speakers, and of segments that share their start with another of the file."""
    grouped = list(turns)
    words = np.array([turn.word_count for file in grouped for turn in file])
    ties = [n for file in grouped for n in Counter(turn.start for turn in file).values() if n > 1]
    return {
        "files": len(files),
        "turns": len(words),
        "words": int(words.sum()),
        "words_per_turn_mean": float(words.mean()) if len(words) else None,
        "words_per_turn_median": float(np.median(words)) if len(words) else None,
        "short_turns": float((words < SHORT_WORDS).mean()) if len(words) else None,
        "speakers_per_file": float(np.mean([file["speaker_count"] for file in files])),
        "tie_groups": len(ties),
        "turns_in_ties": sum(ties),
    }


def _seconds(
    source: str, files: Sequence[Mapping[str, Any]], turns: Mapping[str, Sequence[TurnRow]]
) -> dict[str, float | None]:
    """Measures in seconds: none over times that nobody measured."""
    if source != timing.REAL:
        return {"overlap": None, "overlapped_turns": None}
    timing.assert_real_timings(files)
    spans = [np.array([(t.start, t.end) for t in turns[file["file_uuid"]]]) for file in files]
    spoken, shared, touched = np.sum([overlap(file) for file in spans], axis=0)
    return {"overlap": shared / spoken, "overlapped_turns": touched / sum(map(len, spans))}


def overlap(spans: np.ndarray) -> tuple[float, float, int]:
    """(seconds in which anybody speaks, seconds in which two or more do, turns that share time with another).

    ``spans``: float64 (turns, 2), start and end in seconds. A turn without length shares no time.
    """
    spans = spans[spans[:, 1] > spans[:, 0]]
    times = np.concatenate([spans[:, 0], spans[:, 1]])
    order = np.argsort(times, kind="stable")
    active = np.cumsum(np.repeat([1, -1], len(spans))[order])[:-1]
    lasting = np.diff(times[order])
    starts, ends = np.sort(spans[:, 0]), np.sort(spans[:, 1])
    # Turns that begin before this one ends, less those that ended by its begin: itself and whoever overlaps it.
    meeting = np.searchsorted(starts, spans[:, 1], "left") - np.searchsorted(ends, spans[:, 0], "right")
    return float(lasting[active > 0].sum()), float(lasting[active > 1].sum()), int((meeting > 1).sum())
