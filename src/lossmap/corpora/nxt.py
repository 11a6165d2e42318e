"""NXT XML of the AMI release: sessions, words, dialogue acts, summary sentences and the links between them."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lossmap.errors import LossmapError
from lossmap.transcript import Meeting

NITE = "{http://nite.sourceforge.net/}"
EVENTS = frozenset({"vocalsound", "disfmarker", "gap"})
_IDS = re.compile(r"id\(([^)]+)\)")


@dataclass(frozen=True)
class Word:
    """One timed element of a word file: ``text`` is what was said, or the event's name in braces.

    ``position`` is the element's place in its file, counting elements that are left out (punctuation, untimed ones).
    """

    position: int
    text: str
    start: float
    end: float


@dataclass(frozen=True)
class Session:
    """``agents`` gives the letter of each role's word file; ``recorded_date`` is ISO 8601."""

    recorded_date: str
    agents: Mapping[str, str]


@dataclass(frozen=True)
class Act:
    """A dialogue act: ``first`` to ``last`` element of one agent's word file, both included."""

    agent: str
    first: int
    last: int


def root(path: Path) -> ET.Element:
    """The document element. Raises LossmapError naming the file where it is missing or no XML."""
    try:
        return ET.parse(path).getroot()
    except (OSError, ET.ParseError) as error:
        raise LossmapError(
            "an NXT file is missing or no XML", where=path, observed=error, next_command="./run lossmap corpora verify"
        ) from error


def sessions(folder: Path) -> dict[str, Session]:
    """Per meeting of corpusResources/meetings.xml its date (written dd-mm-yyyy or dd-mm-yy) and its agents by role."""
    return {
        meeting.attrib["observation"]: Session(
            iso_date(meeting.attrib["dateOnly"]),
            {s.attrib["role"]: s.attrib["nxt_agent"] for s in meeting if "role" in s.attrib},
        )
        for meeting in root(folder / "corpusResources" / "meetings.xml")
    }


def iso_date(text: str) -> str:
    day, month, year = text.split("-")
    return f"{year if len(year) == 4 else '20' + year}-{month}-{day}"


def words(path: Path) -> list[Word]:
    """Timed words and events (vocalsound, disfmarker, gap) in file order, without punctuation."""
    return list(_words(root(path)))


def _words(elements: Iterable[ET.Element]) -> Iterator[Word]:
    for position, element in enumerate(elements):
        start, end = element.get("starttime"), element.get("endtime")
        spoken = element.tag == "w" and element.get("punc") != "true"
        if (spoken or element.tag in EVENTS) and start and end:
            yield Word(position, element.text or "" if spoken else f"{{{element.tag}}}", float(start), float(end))


def channels(options: Mapping[str, Any], folder: Path, meeting: Meeting) -> dict[str, list[Word]]:
    """Speaker label of the transcript -> words of the agent who has that role."""
    agents = sessions(folder)[meeting.meeting_id].agents
    return {
        label: words(folder / "words" / f"{meeting.meeting_id}.{agents[role]}.words.xml")
        for label, role in options["roles"].items()
    }


def dates(folder: Path) -> dict[str, str | None]:
    """Recording date of every meeting of the release."""
    return {meeting_id: session.recorded_date for meeting_id, session in sessions(folder).items()}


def acts(folder: Path, meeting_id: str, agent: str) -> dict[str, Act]:
    """Dialogue acts of one agent by id, as ranges of elements of the word file."""
    path = folder / "words" / f"{meeting_id}.{agent}.words.xml"
    place = {element.get(f"{NITE}id"): position for position, element in enumerate(root(path))}
    found = {}
    for act in root(folder / "dialogueActs" / f"{meeting_id}.{agent}.dialog-act.xml"):
        ids = [i for child in act.findall(f"{NITE}child") for i in _IDS.findall(child.attrib["href"])]
        found[act.attrib[f"{NITE}id"]] = Act(agent, place[ids[0]], place[ids[-1]])
    return found


def sentences(folder: Path, meeting_id: str) -> list[tuple[str, str, str]]:
    """(id, type, text) of every sentence of the abstractive summary; types abstract, actions, decisions, problems."""
    return [
        (sentence.attrib[f"{NITE}id"], block.tag, " ".join((sentence.text or "").split()))
        for block in root(folder / "abstractive" / f"{meeting_id}.abssumm.xml")
        for sentence in block
    ]


def links(folder: Path, meeting_id: str) -> list[tuple[str, str]]:
    """(summary sentence id, dialogue act id) pairs, in file order; one pair may stand twice."""
    pairs = []
    for link in root(folder / "extractive" / f"{meeting_id}.summlink.xml"):
        ends = {pointer.attrib["role"]: _IDS.findall(pointer.attrib["href"])[0] for pointer in link}
        pairs.append((ends["abstractive"], ends["extractive"]))
    return pairs
