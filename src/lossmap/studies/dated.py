"""Six hundred invented recordings whose day is known, with what their sources show of it.

Container times, file names, statements and dates set by hand are written from dated.yaml, as recorders and people write
them, right and misleading; the day is drawn first, so the gold is known by construction. This module and its forms
were committed (ee544258ad29) before corpora/dating.py was begun, and that was committed before it met the set; no rule
was ever changed because of a form. Both have one author: the set is earlier than the parser, not independent of who
wrote it. How often a form occurs is our choice, so a rate over the set is no estimate of anybody's archive.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from lossmap.synthetic.rng import Rng, derive
from lossmap.transcript import MONTHS

FORMS = Path(__file__).with_name("dated.yaml")
RECORDINGS = 600
SEED = 20_250_304
SOURCES = ("manual", "container", "filename", "transcript")
FIRST, DAYS = date(2016, 1, 4), 3_600
ZONES = (-480, -300, -180, 0, 60, 120, 330, 540)
"""Offsets in minutes; the set has no zone that changes within a recording."""
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
GERMAN = ("Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September", "Oktober", "November",
          "Dezember")  # fmt: skip
FRENCH = ("janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août", "septembre", "octobre", "novembre",
          "décembre")  # fmt: skip
UNITS = ("", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
         "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")  # fmt: skip
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
            "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth",
            "nineteenth", "twentieth")  # fmt: skip


class Moment:
    """A time that a form can write; the codes are those at the head of dated.yaml, none of them read a locale."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    @property
    def day(self) -> date:
        return self.at.date()

    @property
    def clear(self) -> bool:
        """Whether day and month in digits can be told apart, or do not differ."""
        return self.at.day > 12 or self.at.day == self.at.month

    def __format__(self, form: str) -> str:
        codes = {**self._digits(), **self._words()}
        return re.sub(r"%(\w)", lambda found: codes[found[1]], form)

    def _digits(self) -> dict[str, str]:
        at, week = self.at, self.at.isocalendar()
        minutes = int((at.utcoffset() or timedelta()).total_seconds()) // 60
        sign, (hours, rest) = "-" if minutes < 0 else "+", divmod(abs(minutes), 60)
        return {
            **{"Y": f"{at.year}", "m": f"{at.month:02}", "d": f"{at.day:02}", "y": f"{at.year % 100:02}"},
            **{"H": f"{at.hour:02}", "M": f"{at.minute:02}", "S": f"{at.second:02}", "I": str((at.hour - 1) % 12 + 1)},
            **{"n": str(at.month), "e": str(at.day), "j": f"{at.timetuple().tm_yday:03}"},
            **{"V": f"{week.year}-W{week.week:02}-{week.weekday}", "s": str(int(at.timestamp()))},
            **{"z": f"{sign}{hours:02}{rest:02}", "Z": f"{sign}{hours:02}:{rest:02}"},
        }

    def _words(self) -> dict[str, str]:
        at, month = self.at, self.at.month - 1
        tail = "th" if 10 < at.day < 14 else {1: "st", 2: "nd", 3: "rd"}.get(at.day % 10, "th")
        year = "oh " + UNITS[at.year % 10] if at.year % 100 < 10 else _tens(at.year % 100)
        return {
            **{"B": MONTHS[month], "b": MONTHS[month][:3], "E": GERMAN[month], "F": FRENCH[month]},
            **{"A": WEEKDAYS[at.weekday()], "a": WEEKDAYS[at.weekday()][:3], "p": "PM" if at.hour >= 12 else "AM"},
            **{"o": f"{at.day}{tail}", "w": _ordinal(at.day), "W": f"twenty {year}"},
        }


def _ordinal(day: int) -> str:
    """The day in words: fourth, twenty-first."""
    tens = {2: "twenty", 3: "thirty"}.get(day // 10, "")
    whole = {30: "thirtieth"}.get(day)
    return whole or (ORDINALS[day - 1] if day <= len(ORDINALS) else f"{tens}-{ORDINALS[day % 10 - 1]}")


def _tens(number: int) -> str:
    """A number from 10 to 39 in words."""
    if number < len(UNITS):
        return UNITS[number]
    return "-".join(part for part in ({2: "twenty", 3: "thirty"}[number // 10], UNITS[number % 10]) if part)


@dataclass(frozen=True)
class Shown:
    """What one source shows: ``kind`` of form, ``text`` (None: absent), and the day that it ``says`` to a careful
    reader, which need not be the day of the recording.
    """

    kind: str
    text: str | None
    says: date | None


@dataclass(frozen=True)
class Recording:
    """One recording of ``day`` in its own zone, ``received`` on a later day; ``said`` is its transcript in turns, of
    which the source transcript shows one.
    """

    name: str
    day: date
    received: date
    shown: Mapping[str, Shown]
    said: tuple[str, ...]

    @property
    def gold(self) -> date | None:
        """The day, where any source says it; else there is nothing to find, and any date is wrong."""
        return self.day if any(self.tells(source) for source in SOURCES) else None

    def tells(self, source: str) -> bool:
        return self.shown[source].says == self.day

    @property
    def conflict(self) -> bool:
        """Whether two sources say different days, right or not."""
        return len({one.says for one in self.shown.values()} - {None}) > 1


@cache
def forms() -> dict[str, Any]:
    return yaml.safe_load(FORMS.read_text(encoding="utf-8"))


def recordings(count: int = RECORDINGS, seed: int = SEED) -> list[Recording]:
    """The set: every draw from named streams of ``seed``, the same everywhere."""
    decks = {source: _deck(forms()[source], Rng(derive(seed, source))) for source in SOURCES}
    return [
        _recording(f"dating-{place:03}", {source: next(decks[source]) for source in SOURCES}, Rng(derive(seed, place)))
        for place in range(count)
    ]


def _deck(cards: Sequence[dict[str, Any]], rng: Rng) -> Iterator[dict[str, Any]]:
    """Forms without end, each deck shuffled anew, so that rare ones come as often as their weight says."""
    whole = [card for card in cards for _ in range(card.get("weight", 1))]
    while True:
        yield from rng.shuffle(whole)


def _recording(name: str, cards: Mapping[str, dict[str, Any]], rng: Rng) -> Recording:
    moments = _moments(rng)
    fields = {**moments, "topic": rng.choice(forms()["topics"])}
    shown = {source: _show(card, fields, moments) for source, card in cards.items()}
    around = [rng.choice(forms()["said"]).format(**fields) for _ in range(3)]
    said = (around[0], shown["transcript"].text or "", *around[1:])
    return Recording(name, moments["at"].day, moments["copied"].day + timedelta(rng.randint(0, 9)), shown, said)


def _moments(rng: Rng) -> dict[str, Moment]:
    """The recording and what stands around it, in one zone; ``copied`` before it was received, ``ahead`` after."""
    zone = timezone(timedelta(minutes=rng.choice(ZONES)))
    day = FIRST + timedelta(rng.randint(0, DAYS - 1))
    hour = rng.weighted(range(8, 23), [6] * 10 + [2] * 5)
    at = datetime(day.year, day.month, day.day, hour, rng.randint(0, 59), rng.randint(0, 59), tzinfo=zone)
    shifts = {"other": -rng.randint(3, 400), "ahead": rng.randint(70, 300), "copied": rng.randint(2, 50)}
    shifts["wrong"] = -rng.choice((365, 366, 731, 30, 1))
    moved = {name: Moment(at + timedelta(days)) for name, days in shifts.items()}
    return {"at": Moment(at), "utc": Moment(at.astimezone(UTC)), **moved}


def _show(card: Mapping[str, Any], fields: Mapping[str, Any], moments: Mapping[str, Moment]) -> Shown:
    """A form filled; one whose digits can be read in two ways says nothing and is of a kind of its own."""
    text = None if card["form"] is None else card["form"].format(**fields)
    if card["says"] is None:
        return Shown(card["kind"], text, None)
    moment = moments[card["says"]]
    if card.get("numeric"):
        kind = f"{card['kind']}, {'clear' if moment.clear else 'ambiguous'}"
        return Shown(kind, text, moment.day if moment.clear else None)
    return Shown(card["kind"], text, moment.day)
