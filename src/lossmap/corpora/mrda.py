"""Word times of the ICSI meetings in the MRDA archive: one comma-separated file a meeting, one utterance a line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lossmap.corpora.nxt import Word
from lossmap.transcript import Meeting

ENCODING = "iso-8859-1"
DATABASE = "mrda_archive/database"
WORDS, CHANNEL = 4, 6  # columns
UNTIMED = "XXXX"
BRACKETS = "<>{}"  # around what the transcriber was unsure of
LETTERS = "ABCDEFGHIJ"


def channels(options: Mapping[str, Any], folder: Path, meeting: Meeting) -> dict[str, list[Word]]:
    """Speaker label of the transcript -> words of its channel.

    A label ends in a letter, which is the rank of the channel among those of the meeting (c1, c4, c8, cb: A, B, C, D).
    A label whose letter has no channel gets none.
    """
    found: dict[str, list[Word]] = defaultdict(list)
    with open(folder / DATABASE / f"{meeting.meeting_id}.dadb", encoding=ENCODING) as lines:
        for line in lines:
            cells = line.rstrip("\n").split(",")
            words = found[cells[CHANNEL].rpartition("-")[2]]
            for spoken in filter(None, cells[WORDS].split("|")):
                start, end, text = spoken.split("+", 2)
                if UNTIMED not in (start, end):
                    words.append(Word(len(words), text.strip(BRACKETS), float(start), float(end)))
    letters = dict(zip(LETTERS, sorted(found), strict=False))
    labels = {turn.speaker for turn in meeting.turns if turn.speaker}
    return {label: found[letters[label[-1]]] for label in sorted(labels) if label[-1] in letters}


def dates(folder: Path) -> dict[str, str | None]:
    """The meetings of the archive, which states no recording dates."""
    return {path.stem: None for path in sorted((folder / DATABASE).glob("*.dadb"))}
