"""LoCoMo (Maharana et al. 2024): long conversations over many sessions, questions with evidence turns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lossmap.corpora.readers import Reading, load_json, select
from lossmap.corpora.readers.collection import ALL, fields_of
from lossmap.corpora.registry import Stanza
from lossmap.transcript import GoldSpan, Meeting, Query, Turn

VERSION = "1"
SESSION = re.compile(r"session_(\d+)")
DIALOGUE = re.compile(r"D:?(\d+):(\d+)")  # D1:3; some are written D:11:26 or D30:05, some stand several in one string


def read(stanza: Stanza, folder: Path, selection: Mapping[str, int] | None = None) -> Reading:
    """One meeting a conversation with its sessions in order, questions with their evidence turns, grade 1.

    Retrieval is meant within the conversation: the second part of a query id names it. Evidence that names no turn
    is dropped, a question that has none left as well; both are counted.
    """
    path, reading, met = folder / stanza.options["conversations"], Reading(), Counter()
    rows = load_json(path)
    with fields_of(path, "LoCoMo's fields"):
        kept = select(((row["sample_id"], ALL) for row in rows), selection)
        for row in (row for row in rows if row["sample_id"] in kept):
            places = _meeting(stanza, reading, row, met)
            for position, question in enumerate(row["qa"]):
                _question(f"{stanza.key}:{row['sample_id']}:{position:04d}", reading, question, places, met)
    categories = {name.split()[1]: count for name, count in met.items() if name.startswith("category ")}
    counts = {name: met[name] for name in ("turns", "sessions", "turns_with_an_image", "mended_evidence")}
    skipped = {name: met[name] for name in ("evidence_without_turn", "without_evidence")}
    reading.report = {"domains": {ALL: len(reading.meetings)}, **counts, "categories": categories, "skipped": skipped}
    return reading


def _meeting(stanza: Stanza, reading: Reading, row: Mapping[str, Any], met: Counter[str]) -> dict[tuple[int, int], int]:
    """Add the conversation; its turns by (session, number)."""
    talk, turns, places = row["conversation"], [], {}
    sessions = sorted(int(found[1]) for name in talk if (found := SESSION.fullmatch(name)))
    for session in sessions:
        for said in talk[f"session_{session}"]:
            places[_place(said["dia_id"])] = len(turns)
            met["turns_with_an_image"] += "blip_caption" in said
            turns.append(Turn(len(turns), said["speaker"].strip(), said["text"].strip()))
    met["turns"] += len(turns)
    met["sessions"] += len(sessions)
    title = f"{talk['speaker_a']} and {talk['speaker_b']}"
    reading.meetings.append(Meeting(row["sample_id"], title, ALL, stanza.language, None, tuple(turns)))
    return places


def _place(text: str) -> tuple[int, int]:
    session, number = DIALOGUE.fullmatch(text).groups()
    return int(session), int(number)


def _question(
    query_id: str, reading: Reading, row: Mapping[str, Any], places: Mapping[tuple[int, int], int], met: Counter[str]
) -> None:
    gold = set()
    for text in row["evidence"]:
        named = [(int(a), int(b)) for a, b in DIALOGUE.findall(text)]
        gold.update(places[place] for place in named if place in places)
        met["evidence_without_turn"] += sum(place not in places for place in named) or not named
        met["mended_evidence"] += bool(named) and [f"D{a}:{b}" for a, b in named] != [text]
    if not gold:
        met["without_evidence"] += 1
        return
    met[f"category {row['category']}"] += 1
    reading.queries.append(Query(query_id, row["question"].strip(), "lookup", ALL))
    meeting_id = reading.meetings[-1].meeting_id
    reading.gold.extend(GoldSpan(query_id, meeting_id, turn, turn, 1) for turn in sorted(gold))
