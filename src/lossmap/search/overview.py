"""An overview of a scope of recordings, composed without a model, and the claims it makes about the whole scope.

Composed from a ranking it describes what the ranking returned: fifty sections out of eight files head a block with
"recordings: 8" over a scope of twenty-five, and whoever reads it repeats that. Composed by mapping, every recording
gives its part, however little of the budget is left for each. Claims come from the chunk plane of the index, so that
PostgreSQL, which wrote none of them, can contradict them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from psycopg import sql

from lossmap.errors import LossmapError
from lossmap.index.chunk import UNKNOWN_SPEAKER
from lossmap.search.aggregate import Counting

SECTIONS = 50
WORDS = SECTIONS * 55
"""Both arms have the room of fifty sections at the digest's target of 55 words (spec/harness 1.6)."""
TOLERANCE = 0.01
"""Seconds a recording by which a claimed duration may be off: chunks carry hundredths, the engine single precision."""
DURATIONS = "SELECT file_uuid::text, duration FROM {}.file WHERE corpus = %s AND file_uuid = ANY(%s::uuid[])"
SPEAKERS = """
SELECT count(DISTINCT speaker.name)
FROM {0}.speaker AS speaker JOIN {0}.file AS file USING (file_uuid)
WHERE file.corpus = %s AND file_uuid = ANY(%s::uuid[]) AND speaker.name <> %s
"""

Section = Mapping[str, Any]
"""``file_uuid``, ``section`` (number within the file), ``text``, and more that is not read here."""


@dataclass(frozen=True)
class Recording:
    """One file as the chunk plane shows it; ``duration`` in seconds."""

    file_uuid: str
    title: str
    duration: float
    speakers: tuple[str, ...]


@dataclass(frozen=True)
class Claims:
    """What a block says of the whole scope; ``duration`` in seconds."""

    recordings: int
    duration: float
    speakers: int


@dataclass(frozen=True)
class Part:
    """What one recording gives: words of ``sections`` of its sections, in spoken order; may be empty."""

    recording: Recording
    text: str
    sections: int


@dataclass(frozen=True)
class Block:
    parts: tuple[Part, ...]

    @property
    def claims(self) -> Claims:
        """Over the recordings of the block: it knows of no other."""
        mine = [part.recording for part in self.parts]
        names = {name for recording in mine for name in recording.speakers}
        return Claims(len(mine), math.fsum(recording.duration for recording in mine), len(names))

    @property
    def words(self) -> int:
        return sum(len(part.text.split()) for part in self.parts)

    def render(self, titles: bool = True) -> str:
        """The head with the claims, then one paragraph a recording."""
        claims = self.claims
        hours, minutes = divmod(round(claims.duration / 60), 60)
        head = f"recordings: {claims.recordings} | duration: {hours}h {minutes:02}m | speakers: {claims.speakers}"
        parts = (f"{part.recording.title}: {part.text}" if titles else part.text for part in self.parts)
        return "\n\n".join([head, *parts]) + "\n"


class Scope(Counting):
    """Recordings of one corpus by the index, and the truth about them by the database."""

    def recordings(self, files: Sequence[str]) -> list[Recording]:
        """The files that have chunks, in the order of ``files``."""
        each = {"end": {"max": {"field": "end_time"}}, "speakers": self._terms("speakers"),
                "titles": self._terms("title.keyword")}  # fmt: skip
        among = [{"terms": {"file_uuid": sorted(files)}}]
        found = self._aggregate(among, {"files": {**self._terms("file_uuid"), "aggs": each}})["files"]
        known = {bucket["key"]: self._recording(bucket) for bucket in self._whole(found, f"{len(files)} files")}
        return [known[file] for file in files if file in known]

    def _recording(self, bucket: Mapping[str, Any]) -> Recording:
        names = tuple(one["key"] for one in self._whole(bucket["speakers"], bucket["key"]))
        title = self._whole(bucket["titles"], bucket["key"])[0]["key"]
        return Recording(bucket["key"], title, bucket["end"]["value"], names)

    def truth(self, files: Sequence[str]) -> Claims:
        """Number, summed duration and distinct named speakers of ``files`` in PostgreSQL."""
        given = (self.corpus, list(files))
        durations = self.conn.execute(sql.SQL(DURATIONS).format(self.schema), given).fetchall()
        speakers = self.conn.execute(sql.SQL(SPEAKERS).format(self.schema), (*given, UNKNOWN_SPEAKER)).fetchone()
        return Claims(len(durations), math.fsum(row[1] for row in durations), speakers[0])  # type: ignore[index]


def by_mapping(recordings: Sequence[Recording], sections: Iterable[Section], words: int = WORDS) -> Block:
    """Every recording gives its part within ``words``: an equal share each, and what short ones leave to the others.

    Within a recording its sections share alike. A recording without sections still stands in the block, by its title.
    Raises where a share would be less than one word.
    """
    if words < len(recordings):
        raise LossmapError(
            "an overview has less than a word for each recording",
            observed=f"{words} words for {len(recordings)} recordings",
            expected="at least one word each",
            next_command="raise words, or narrow the scope",
            exit_code=2,
        )
    held: defaultdict[str, list[list[str]]] = defaultdict(list)
    for section in sorted(sections, key=lambda one: (one["file_uuid"], one["section"])):
        held[section["file_uuid"]].append(section["text"].split())
    own = [held.get(recording.file_uuid, []) for recording in recordings]
    given = shares([sum(map(len, texts)) for texts in own], words)
    return Block(tuple(_part(one, texts, room) for one, texts, room in zip(recordings, own, given, strict=True)))


def by_ranking(
    recordings: Sequence[Recording], ranked: Iterable[Section], words: int = WORDS, limit: int = SECTIONS
) -> Block:
    """The defect, kept as the arm to compare with: the first ``limit`` sections of a ranking, cut at ``words``.

    Recordings stand in the order of their best section; one without a section among them is not in the block.
    """
    known = {recording.file_uuid: recording for recording in recordings}
    held: defaultdict[str, list[tuple[int, list[str]]]] = defaultdict(list)
    left = words
    for section in list(ranked)[:limit]:
        taken = section["text"].split()[:left]
        left -= len(taken)
        if taken and section["file_uuid"] in known:
            held[section["file_uuid"]].append((section["section"], taken))
    parts = []
    for file, taken in held.items():
        texts = [text for _, text in sorted(taken)]
        parts.append(_part(known[file], texts, sum(map(len, texts))))
    return Block(tuple(parts))


def shares(lengths: Sequence[int], budget: int) -> list[int]:
    """How many of ``budget`` words each text of ``lengths`` words gets: never more than it has, equal where all have
    enough, the words that do not divide to the first ones.
    """
    given, left = [0] * len(lengths), budget
    waiting = [i for i, length in enumerate(lengths) if length]
    while left and waiting:
        each, odd = divmod(left, len(waiting))
        for place, i in enumerate(waiting):
            taken = min(each if each else int(place < odd), lengths[i] - given[i])
            given[i] += taken
            left -= taken
        waiting = [i for i in waiting if given[i] < lengths[i]]
    return given


def _part(recording: Recording, texts: Sequence[list[str]], room: int) -> Part:
    cut = [text[:share] for text, share in zip(texts, shares([len(text) for text in texts], room), strict=True)]
    return Part(recording, " ".join(" ".join(text) for text in cut if text), sum(map(bool, cut)))


def verified(claims: Claims, truth: Claims) -> dict[str, dict[str, Any]]:
    """Each claim beside the truth; a duration within TOLERANCE for each recording, the others exactly."""
    true = asdict(truth)
    slack = {name: TOLERANCE * truth.recordings if name == "duration" else 0 for name in true}
    return {
        name: {"claimed": claim, "truth": true[name], "verified": abs(claim - true[name]) <= slack[name]}
        for name, claim in asdict(claims).items()
    }
