"""Values that facts state: by counters, so that no value is given twice and none stands inside another."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, timedelta

from lossmap.synthetic import pools
from lossmap.synthetic.frames import wordings
from lossmap.synthetic.rng import Rng
from lossmap.synthetic.world import Session, World
from lossmap.transcript import MONTHS

TICKETS = ("ARB", "CLD", "FNX", "HVT", "MRQ", "TWN")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
SOONEST, LATEST = 30, 150  # days from a session to the deadline that it states

# How many values a kind has, and the value at a place. All values of a kind are of one length in digits.
NUMBERED: dict[str, tuple[int, Callable[[int], str]]] = {
    "rate": (90_000, lambda n: f"{10_000 + n:,} requests a second"),
    "duration": (9_000, lambda n: f"{100 + n // 10}.{n % 10} milliseconds"),
    "amount": (90_000, lambda n: f"{10_000 + n:,} euros"),
    "ticket": (9_000 * len(TICKETS), lambda n: f"{TICKETS[n // 9_000]}-{1_000 + n % 9_000}"),
    "version": (20_000, lambda n: f"{2 + n // 2_500}.{10 + n // 50 % 50}.{10 + n % 50}"),
    "capacity": (9_000, lambda n: f"{1_000 + n:,} gigabytes"),
    "snapshot": (90_000, lambda n: f"snapshot RP-{10_000 + n}"),
}


class Anchors:
    """Deals the values of the aspects; ``deal`` gives None where an aspect has none left."""

    def __init__(self, world: World, rng: Rng) -> None:
        taken = {person.name for team in world.teams for person in team.roster}
        self._kinds = {name: aspect["anchor"] for name, aspect in wordings()["aspects"].items()}
        self._walks = {kind: _walk(size, rng) for kind, (size, _) in NUMBERED.items()}
        self._dealt = dict.fromkeys(NUMBERED, 0)
        self._names = {
            "person": iter(rng.shuffle([name for name in pools.person_names() if name not in taken])),
            "vendor": iter(rng.shuffle(pools.vendors())),
        }
        self._dates: set[date] = set()
        self._rng = rng

    def deal(self, aspect: str, session: Session) -> str | None:
        """The next value of ``aspect``, said at ``session``."""
        kind = self._kinds[aspect]
        if kind == "date":
            return self._date(date.fromisoformat(session.date))
        if kind in self._names:
            return next(self._names[kind], None)
        (start, step), (size, text) = self._walks[kind], NUMBERED[kind]
        count = self._dealt[kind]
        self._dealt[kind] += 1
        return text((start + count * step) % size) if count < size else None

    def _date(self, said: date) -> str:
        """The first free working day from a drawn one on; weekday and year keep one date out of another."""
        day = said + timedelta(self._rng.randint(SOONEST, LATEST))
        while day.weekday() >= len(WEEKDAYS) or day in self._dates:
            day += timedelta(1)
        self._dates.add(day)
        return f"{WEEKDAYS[day.weekday()]} {day.day} {MONTHS[day.month - 1]} {day.year}"


def _walk(size: int, rng: Rng) -> tuple[int, int]:
    """Start and step of a walk that meets every place below ``size`` once."""
    start, step = rng.randint(0, size - 1), rng.randint(size // 5, size // 2)
    while math.gcd(step, size) != 1:
        step += 1
    return start, step
