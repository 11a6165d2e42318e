"""Earnings-21 (Del Rio et al. 2021): earnings calls, one token a line with its speaker; nothing is judged."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from lossmap.corpora.readers import Reading, select
from lossmap.corpora.readers.collection import fields_of
from lossmap.corpora.registry import Stanza
from lossmap.transcript import Meeting, Turn

VERSION = "1"
HEADER = "token|speaker|ts|endTs|punctuation|case|tags|wer_tags"


class Token(NamedTuple):
    text: str
    speaker: str


def read(stanza: Stanza, folder: Path, selection: Mapping[str, int] | None = None) -> Reading:
    """Calls as meetings (a sector is a domain), a turn as long as one speaker goes on; tokens carry no times."""
    reading, tokens = Reading(), Counter()
    with fields_of(folder / stanza.options["calls"], "file_id, company_name, financial_quarter, sector"):
        calls = {row["file_id"]: row for row in _table(folder / stanza.options["calls"])}
        sectors = {name: row["sector"] for name, row in calls.items()}
    with fields_of(folder / stanza.options["speakers"], "file_id, speaker_id, speaker_name"):
        people = _table(folder / stanza.options["speakers"])
        names = {(row["file_id"], row["speaker_id"]): row["speaker_name"] for row in people}
    for name in sorted(select(sectors.items(), selection)):
        path = folder / stanza.options["transcripts"].format(call=name)
        with fields_of(path, HEADER):
            spoken = list(_tokens(path))
            title = f"{calls[name]['company_name']} Q{calls[name]['financial_quarter']}"
            turns = tuple(_turns(name, spoken, names))
        tokens[name] = len(spoken)
        reading.meetings.append(Meeting(name, title, sectors[name], stanza.language, None, turns))
    said = {(m.meeting_id, turn.speaker) for m in reading.meetings for turn in m.turns}
    reading.report = {
        "domains": dict(Counter(m.domain for m in reading.meetings)),
        "tokens": tokens.total(),
        "turns": sum(len(m.turns) for m in reading.meetings),
        "speakers": len(said),
        "named_speakers": sum(not speaker.startswith("speaker ") for _, speaker in said),
    }
    return reading


def _table(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def _tokens(path: Path) -> Iterable[Token]:
    """Token and punctuation as written. Raises ValueError on another header or a line of other width."""
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    if header != HEADER:
        raise ValueError(f"header {header[:80]!r}")
    for line in lines:
        text, speaker, _, _, punctuation, _, _, _ = line.split("|")
        yield Token(text + punctuation, speaker)


def _turns(call: str, tokens: Iterable[Token], names: Mapping[tuple[str, str], str]) -> Iterable[Turn]:
    for index, (speaker, run) in enumerate(groupby(tokens, lambda token: token.speaker)):
        said = " ".join(token.text for token in run)
        yield Turn(index, names.get((call, speaker)) or f"speaker {speaker}", said)
