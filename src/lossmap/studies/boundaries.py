"""Two chunkings of one corpus, chunk by chunk: how many files are cut differently, how many chunks are in one alone.

Chunks are compared by file and text: a number would say that all chunks after the first difference differ.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

from lossmap import canon

Texts = Mapping[str, list[str]]
"""File uuid to the texts of its chunks, in order."""


def texts(folder: Path) -> Texts:
    """The chunk texts of an index, by file."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for row in canon.read_jsonl(folder / "chunks.jsonl"):
        found[row["file_uuid"]].append(row["text"])
    return found


def apart(a: Texts, b: Texts) -> dict[str, int]:
    """Files whose lists of chunks differ, and chunks that are in one alone; a text counts as often as its file has it.

    ``chunks_differ`` is the sum of both sides: one boundary that moves takes two chunks from each.
    """
    held = [Counter((file, text) for file, some in side.items() for text in some) for side in (a, b)]
    only_a, only_b = (held[0] - held[1]).total(), (held[1] - held[0]).total()
    return {
        "files": len(a.keys() | b.keys()),
        "files_differ": sum(a.get(file) != b.get(file) for file in a.keys() | b.keys()),
        "chunks_a": held[0].total(),
        "chunks_b": held[1].total(),
        "only_in_a": only_a,
        "only_in_b": only_b,
        "chunks_differ": only_a + only_b,
    }
