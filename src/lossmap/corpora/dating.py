"""The day of a recording from what its container, its file name, its transcript and its owner say of it.

A source gives one day or declines: what could be read in two ways, what no clock or calendar allows, and several days
where one is asked for are never guessed at. The first source in order of precedence that gives a day decides; another
that gives another day is a conflict, which is reported and not resolved by counting.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from lossmap import transcript
from lossmap.errors import LossmapError

MONTHS = tuple(name.lower() for name in transcript.MONTHS)
EPOCHS = tuple(date(year, 1, 1) for year in (1601, 1904, 1970, 1980, 2001))
"""Day zero of file systems and containers (NTFS, QuickTime, POSIX, FAT, Apple): what an unset field or clock shows."""
ZONE = timedelta(1)
"""How far a day may be off because two places write it in different zones."""

NAME = rf"(?P<month>{'|'.join(f'{name[:3]}(?:{name[3:]})?' for name in MONTHS)}|sept)\.?"
YEAR, DAY = r"(?P<y>(?:19|20)\d\d)(?!\d)", r"(?P<d>\d{1,2})(?:st|nd|rd|th)?"
SEPARATED = r"[\s._,-]*"
FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        r"(?<!\d)(?P<y>(?:19|20)\d\d)([-_.])(?P<m>\d{1,2})\2(?P<d>\d{1,2})(?!\d)",
        r"(?<!\d)(?P<y>(?:19|20)\d\d)(?P<m>\d\d)(?P<d>\d\d)(?:\d{4}|\d{6})?(?!\d)",
        rf"(?<![a-z]){NAME}{SEPARATED}(?:the\s+)?{DAY}(?![a-z\d]){SEPARATED}{YEAR}",
        rf"(?<!\d){DAY}{SEPARATED}(?:of\s+)?{NAME}{SEPARATED}{YEAR}",
        rf"(?<!\d)(?P<first>\d{{1,2}})([-_./])(?P<second>\d{{1,2}})\2{YEAR}",
    )
)
"""ISO and its like with the year first; YYYYMMDD, a time behind it or not; Month D, YYYY; D Month YYYY; digits with the
year last. A year has four digits in all of them."""

CONTAINER = re.compile(
    r"(?P<front>UTC )?(?P<date>\d{4}([-:])\d\d\3\d\d|\d{8})"
    r"(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?\s*(?P<zone>Z|UTC|[+-]\d\d:?\d\d)?"
)
GREETING = (
    r"(?:(?:so|okay|ok|well|right|now|and|hello|hi|welcome|good (?:morning|afternoon|evening)|everyone|everybody|all|"
    r"um|uh)[\s,]+)*"
)
STATED = (
    r"(?:just )?for the record,? (?:it is|it's|today is)",
    r"today is",
    r"today's date is",
    r"the date (?:today )?is",
    r"(?:this (?:meeting|call|session|interview|recording)? ?(?:is |was )?(?:being )?)?recorded on",
)
STATEMENT = re.compile(
    rf"(?:^|[.!?]\s+){GREETING}(?:{'|'.join(STATED)})[\s:,]+"
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day[\s,]+)?(?:the\s+)?",
    re.IGNORECASE,
)
"""What says that this meeting takes place on the day that follows: at the head of a sentence, or it may be quoted."""
ENDS = re.compile(r"\s*(?:$|[.,;:!?]|\b(?:and|at|in|here|um|uh)\b)", re.IGNORECASE)
"""What may follow such a day: "it is the 4 March 2025 version" speaks of a version."""


@dataclass(frozen=True)
class Evidence:
    """What is known of one recording: ``container`` is its creation time, ``transcript`` its turns in order, ``manual``
    a date set by hand; ``received`` the day on which the file came in, after which nothing was recorded.
    """

    received: date
    container: str | None = None
    filename: str | None = None
    transcript: Sequence[str] = ()
    manual: str | None = None


@dataclass(frozen=True)
class Candidate:
    """The day that a source gives, as ``written`` there; ``offset`` is the zone that the text names, and the day is one
    in that zone: it is not moved to another, for where the recorder stood is not known.
    """

    source: str
    day: date
    written: str
    offset: str | None = None


@dataclass(frozen=True)
class Dated:
    """``day`` and ``source`` are None where no source gave a day; ``candidates`` stand in order of precedence, and
    ``declined`` holds (source, reason) of those that showed something and gave none.
    """

    day: date | None
    source: str | None
    candidates: tuple[Candidate, ...]
    declined: tuple[tuple[str, str], ...]

    @property
    def conflict(self) -> bool:
        """Whether two sources name different days."""
        return len({candidate.day for candidate in self.candidates}) > 1


Found = Iterator[tuple[date, str, str | None]]
"""(day, text, offset) of each day that a source shows."""


@dataclass(frozen=True)
class Source:
    """``why`` it stands at its place in the order."""

    name: str
    read: Callable[[Evidence], Found]
    why: str


def resolve(evidence: Evidence, order: Sequence[str] | None = None) -> Dated:
    """The day of a recording by the first source of ``order`` (SOURCES by default) that gives one.

    Raises LossmapError for a source that does not exist.
    """
    given = [_give(evidence, source) for source in _ordered(order)]
    candidates = tuple(one for one in given if isinstance(one, Candidate))
    declined = tuple(one for one in given if isinstance(one, tuple))
    if not candidates:
        return Dated(None, None, (), declined)
    return Dated(candidates[0].day, candidates[0].source, candidates, declined)


def _ordered(order: Sequence[str] | None) -> list[Source]:
    if order is None:
        return list(SOURCES)
    known = {source.name: source for source in SOURCES}
    for name in order:
        if name not in known:
            raise LossmapError(
                "no such source of a date",
                observed=name,
                expected=sorted(known),
                next_command="name a source of lossmap.corpora.dating.SOURCES",
                exit_code=2,
            )
    return [known[name] for name in order]


def _give(evidence: Evidence, source: Source) -> Candidate | tuple[str, str] | None:
    """The one day of a source, or why it gives none; None where it shows no day at all."""
    found = list(source.read(evidence))
    if not found:
        return None
    likely = [one for one in found if one[0] <= evidence.received + ZONE]
    if source.name == "container":
        likely = [one for one in likely if all(abs(one[0] - epoch) > ZONE for epoch in EPOCHS)]
    if not likely:
        return source.name, "an unset clock, or after the file was received"
    if len({day for day, _, _ in likely}) > 1:
        return source.name, "several days"
    return Candidate(source.name, *likely[0])


def days(text: str) -> Found:
    """Every day written in ``text`` in one of FORMS, those that the calendar does not have and those that can be read
    in two ways left out.
    """
    for form in FORMS:
        for match in form.finditer(text):
            day = _day(match)
            if day:
                yield day, match[0], None


def _day(match: re.Match[str]) -> date | None:
    """The day of a match; None for 30 February, and for digits that are two days by two orders."""
    part = match.groupdict()
    year = int(part["y"])
    if "first" in part:
        first, second = int(part["first"]), int(part["second"])
        readings = {_calendar(year, first, second), _calendar(year, second, first)} - {None}
        return readings.pop() if len(readings) == 1 else None
    month = int(part["m"]) if "m" in part else _month(part["month"])
    return _calendar(year, month, int(part["d"]))


def _month(name: str) -> int:
    return next(place for place, month in enumerate(MONTHS, 1) if month.startswith(name[:3].lower()))


def _calendar(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _manual(evidence: Evidence) -> Found:
    """A date set by hand is the whole entry."""
    entry = (evidence.manual or "").strip()
    return (one for one in days(entry) if one[1] == entry)


def _container(evidence: Evidence) -> Found:
    """The creation time of ISO 8601, of Exif (colons) or as MediaInfo prints it: its day as written, its offset."""
    match = CONTAINER.fullmatch((evidence.container or "").strip())
    if match:
        digits = re.sub(r"\D", "", match["date"])
        day = _calendar(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
        if day:
            yield day, match[0], "UTC" if match["front"] or match["zone"] in ("Z", "UTC") else match["zone"]


def _filename(evidence: Evidence) -> Found:
    """Every day in the name."""
    return days(evidence.filename or "")


def _transcript(evidence: Evidence) -> Found:
    """Days that a turn states to be the day of this meeting; a day that is merely mentioned is none."""
    for turn in evidence.transcript:
        for cue in STATEMENT.finditer(turn):
            for form in FORMS:
                match = form.match(turn, cue.end())
                day = match and ENDS.match(turn, match.end()) and _day(match)
                if match and day:
                    yield day, match[0], None


SOURCES = (
    Source("manual", _manual, "set by somebody who looked at this recording, and who expects it to hold"),
    Source("container", _container, "written by the recorder while it recorded, by no hand; wrong when its clock is"),
    Source(
        "filename", _filename, "written at the time by most recorders, but also by hand, late, and about the matter"
    ),
    Source("transcript", _transcript, "said in the room, but heard by a recogniser, and rarely said at all"),
)
"""The sources in order of precedence."""
