"""A question in its wordings: the exact one, and two rewordings that say the same in other words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lossmap.synthetic.frames import Frame, fill, kind_words, listed, rewordings, wordings
from lossmap.synthetic.rng import Rng

EXACT = "exact"
REWORDED = ("reworded-1", "reworded-2")
SUFFIX = {EXACT: "", "reworded-1": "-r1", "reworded-2": "-r2"}


@dataclass(frozen=True)
class Subject:
    """What a question is about; ``aspects``, ``marker`` and ``deferral`` are keys of frames.yaml.

    ``said`` is the topic as it is spoken, with an article where it takes one.
    """

    team: str = ""
    kind: str = ""
    topic: str = ""
    said: str = ""
    aspects: tuple[str, ...] = ()
    marker: str = ""
    deferral: str = ""
    month: str = ""
    year: str = ""
    anchor: str = ""

    @property
    def phrase(self) -> str:
        """The phrase of the marker or deferral, as it is planted."""
        frames = wordings()
        found = frames["markers"].get(self.marker) or frames["deferrals"].get(self.deferral) or ""
        return str(found.format(project=self.topic))


def surfaces(rule: str, subject: Subject, rng: Rng) -> Iterator[tuple[str, str, str]]:
    """(surface, frame id, text): the exact wording and two rewordings by different frames.

    The verbatim control has no rewording: it asks for the words themselves.
    """
    frame = rng.choice(wordings()["exact"][rule])
    yield EXACT, frame["id"], fill(frame["text"], **_exact(subject))
    frames: list[Frame] = rewordings()["reworded"].get(rule, [])
    if not frames:
        return
    turn = rng.randint(0, 5)
    for place, (surface, frame) in enumerate(zip(REWORDED, rng.sample(frames, len(REWORDED)), strict=True)):
        yield surface, frame["id"], fill(frame["text"], **_reworded(subject, turn + place))


def _common(subject: Subject) -> dict[str, str]:
    return {"team": subject.team, "topic": subject.said, "month": subject.month, "year": subject.year}


def _exact(subject: Subject) -> dict[str, str]:
    phrases = [wordings()["aspects"][name]["phrase"] for name in subject.aspects]
    return {
        **_common(subject),
        "kind": subject.kind,
        "anchor": subject.anchor,
        "aspect": phrases[0] if phrases else "",
        "aspects": listed(phrases) if phrases else "",
        "marker": subject.phrase if subject.marker else "",
        "deferral": subject.phrase if subject.deferral else "",
    }


def _reworded(subject: Subject, turn: int) -> dict[str, str]:
    """Other words for every part; ``turn`` picks among them, so that two turns in a row differ."""
    words = rewordings()

    def pick(table: str, key: str) -> str:
        options: list[str] = words[table][key] if key else [""]
        return options[turn % len(options)]

    values = _common(subject)
    if subject.kind:
        kind = kind_words(subject.kind)
        values |= {"one": kind["one"], "kinds": kind["many"]}
    if subject.aspects:
        values["clause"] = pick("clauses", subject.aspects[0]).format(it=subject.said)
        values["clauses"] = listed([pick("clauses", name).format(it="it") for name in subject.aspects])
    for table, key in (("markers", subject.marker), ("deferrals", subject.deferral)):
        values[table[:-1]] = pick(table, key).format(project=subject.topic)
    return values
