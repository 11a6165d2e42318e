"""The calendar of the world: first days of series, and the working days that follow at a cadence."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

from lossmap.synthetic.rng import Rng

FIRST_DAY = date(2025, 1, 6)  # a Monday
STARTS_WITHIN = 330  # days from FIRST_DAY: series begin all through the first year, or all dates would crowd in spring
WORKDAYS = 5
SHIFT = 2


def first_day(rng: Rng) -> date:
    """A working day 0 to 330 days after FIRST_DAY."""
    every = (FIRST_DAY + timedelta(shift) for shift in range(STARTS_WITHIN + 1))
    return rng.choice([day for day in every if day.weekday() < WORKDAYS])


def days(first: date, count: int, cadence: int, rng: Rng) -> Iterator[date]:
    """``count`` working days from ``first`` on, each ``cadence`` +-2 days after the one before.

    The calendar is the real one with its leap years. The corpus at full scale ends in 2027, so 29 February 2028 is
    met by longer series alone.
    """
    day = first
    for _ in range(count):
        yield day
        near = (day + timedelta(cadence + shift) for shift in range(-SHIFT, SHIFT + 1))
        day = rng.choice([other for other in near if other.weekday() < WORKDAYS])
