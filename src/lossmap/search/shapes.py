"""What a counting question asks for, by signals, a link verb and dates: a generic interrogative frame, no wording.

It shares no expression with ``search.intent``, whose expressions are the exact frames: the two answerers can be
compared only because neither reads a question as the other does. The word classes below are ours, from general English;
stop words are the 179 of bm25s. The exact wordings were known when this was written, and it was tried on them: that it
reads them is no evidence of generality. The rewordings were not read, and nothing was changed after they were scored.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import Any

import bm25s

from lossmap import canon, transcript

FACET, LIST, EVENTS, FILES = "speaker_facet", "list_files", "count_events", "count_files"
SHAPES = (FILES, LIST, FACET, EVENTS)
STOPWORDS = frozenset(bm25s.stopwords.STOPWORDS_EN_PLUS)
WORD = re.compile(r"\w+(?:[-'’]\w+)*")
QUOTES = "\"'“”‘’«» "

NOUN = r"(?:meeting|session|recording|call|conversation|discussion|transcript|gathering|file)"
PEOPLE = r"(?:speaker|participant|attendee|colleague|member|individual|person|people)s?"
TIMES = r"(?:times|occasions)"
TALLY = r"(?:number|count|tally|total)"
ASK = r"(?:list|name|enumerate|show|give|find|identify|tell|mention|include|provide)"
# What may stand between the head of a question and the noun that is counted; a preposition or a verb begins another
# phrase ("how many decisions in our meetings" counts no meetings).
BREAK = rf"(?:in|at|across|during|over|throughout|do|does|did|is|are|was|were|has|have|had|{PEOPLE}|{TALLY})"
GAP = rf"(?:(?!{BREAK}\b)[\w'’-]+\s+){{0,5}}?"

SIGNALS = tuple(
    (shape, re.compile(pattern, re.IGNORECASE))
    for shape, pattern in (
        (FACET, rf"\b(?:which|what)\s+{GAP}{PEOPLE}\b|\bwho\b.{{0,60}}\bmost\b"),
        (
            LIST,
            rf"\b(?:which|what)\s+{GAP}{NOUN}s\b|\b{ASK}\s+(?:me\s+|us\s+)?(?:all|every|each|the)\s+{GAP}{NOUN}s?\b",
        ),
        (LIST, rf"\bevery\s+single\s+{GAP}{NOUN}\b"),
        (EVENTS, rf"\bhow\s+(?:often|frequently)\b|\b(?:how\s+many|{TALLY}\s+of)\s+(?:\w+\s+)?{TIMES}\b"),
        (EVENTS, r"\bhow\s+many\s+(?:mentions|references)\b"),
        (FILES, rf"\b(?:how\s+many|{TALLY}\s+of|count)\s+{GAP}{NOUN}s?\b"),
        (EVENTS, r"\bin\s+total\b"),
    )
)

DETERMINED = r"(?<!\bthe )(?<!\ba )(?<!\ban )(?<!\bour )(?<!\btheir )(?<!\bits )"
LINK = re.compile(
    # A verb after an article is a noun of the subject: "the reference architecture".
    rf"{DETERMINED}\b(?:discuss(?:es|ed|ing)?|mention(?:s|ed|ing)?|cover(?:s|ed|ing)?|referenc(?:e|es|ed|ing)"
    r"|rais(?:e|es|ed|ing)|defer(?:s|red|ring)?|involv(?:e|es|ed|ing)|address(?:es|ed|ing)?|featur(?:e|es|ed|ing)"
    r"|bring(?:s|ing)?\s+up|brought\s+up)\b(?:\s+(?:of|to)\b)?"
    r"|\b(?:talk(?:s|ed|ing)?|speak(?:s|ing)?|spoke|spoken|say(?:s|ing)?|said|hear(?:s|d|ing)?)\s+(?:about|of)\b"
    r"|\b(?:mentions?|references?|discussions?)\s+(?:of|to|about)\b"
    r"|\b(?:refer(?:s|red|ring)?\s+to|touch(?:es|ed|ing)?\s+(?:up)?on|deal(?:s|t|ing)?\s+with|relat(?:ed|ing)\s+to)\b"
    r"|\b(?:agree[sd]?|agreeing|decid(?:e|es|ed|ing)|resolv(?:e|es|ed|ing)|choos(?:e|es|ing)|chose|propos(?:e|es|ed|ing)"
    r"|vot(?:e|es|ed|ing)|opt(?:s|ed|ing)?|plan(?:s|ned|ning)?)\s+to\b"
    r"|\b(?:about|regarding|concerning)\b",
    re.IGNORECASE,
)

# Clauses that end a question and are no part of its subject: courtesy, "list them", a second question.
TAILS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?:^|[\s,;.?!])\s*(?:please|kindly|thanks|thank\s+you)[\s,.?!]*$",
        rf"(?:[,;.?!]\s*(?:and\s+|then\s+)*|\s+and\s+)(?:please\s+)?(?:can\s+you\s+|could\s+you\s+)?(?:please\s+)?{ASK}\s+"
        r"(?:\w+\s+){0,4}?(?:all|every|each|them|one|ones|lists?|names?|titles?)\b(?:\s+\w+){0,3}[\s.?!]*$",
        r",?\s+and\s+(?:for\s+|in\s+|on\s+)?(?:when|where|how|who|whom|what|which|why)\b[^?!]*[\s.?!]*$",
    )
)
SCOPE = re.compile(
    rf"\s*,?\s*\b(?:in\s+total|all\s+told|altogether|overall|so\s+far|(?:were|was|are|is)\s+there|"
    rf"(?:in|across|during|over|throughout|within|at|from)\s+(?:(?:all|any|each|every|of|our|the|my|your|these|those)\s+)*"
    rf"{NOUN}s?)[\s,.?!]*$",
    re.IGNORECASE,
)
DETERMINERS = re.compile(r"^(?:(?:the|an?|our|any|some|this|these|those|that|their|its|of|to)\s+)+", re.IGNORECASE)
SENTENCE_END = re.compile(r"[?!.]+(?=\s|$)")
FRAME = re.compile(
    rf"^(?:{NOUN}s?|{PEOPLE}|{TIMES}|{TALLY}|{ASK}|time|occasion|attend|attends|attended|attending|attendance|present"
    r"|join|joins|joined|participated?|participating|took|take|taken|part|appear|appears|appeared|came|come|comes|coming"
    r"|turn|turned|turns|showed|shown|went|go|gone|get|got|gets|many|much|often|frequently|highest|largest|greatest"
    r"|every|single|different|distinct|separate|overall|altogether|please|kindly|thanks|thank|us|let|know|ever|happen"
    r"|happened|across|within|throughout)$",
    re.IGNORECASE,
)

MONTHS = tuple(name.lower() for name in transcript.MONTHS)
_MONTH = rf"(?P<month>{'|'.join(rf'{name[:3]}(?:{name[3:]})?' for name in MONTHS)}|sept)\.?"
_DAY, _YEAR = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?", r"(?P<year>(?:19|20)\d{2})"
_BOUND = r"(?:since|before|after|until|till|between|by)"
_IN = r"(?:\b(?:in|on|during|of|from|for|over|throughout|within)\s+(?:the\s+(?:month|year)\s+(?:of\s+)?)?)"
DATES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_IN}?\b(?P<year>[12]\d{{3}})-(?P<number>\d{{2}})(?:-(?P<day>\d{{2}}))?\b",
        rf"{_IN}?\b{_DAY}\s+(?:of\s+)?{_MONTH},?\s+{_YEAR}\b",
        rf"{_IN}?\b{_MONTH}\s+(?:{_DAY},?\s+)?(?:of\s+)?{_YEAR}\b",
        rf"(?:{_IN}|\b(?P<bound>{_BOUND})\s+){_YEAR}\b(?!-)",
    )
)
# A date as an end of something: before it stands a bound, or after it the other end.
BOUND = re.compile(rf"\b{_BOUND}\s+(?:\w+\s+)?$", re.IGNORECASE)
ONWARD = re.compile(
    r"^\s*(?:(?:to|through|until|till|and|-|–)\s+(?:\w+\.?\s+){0,2}\d{4}|onwards?\b|or\s+later)", re.IGNORECASE
)
RELATIVE = re.compile(
    r"\b(?:in\s+|during\s+|over\s+)?(?:the\s+)?(?:this|last|past|previous|current|next)\s+(?:\w+\s+)?"
    r"(?:day|week|month|quarter|year)s?\b|\b(?:yesterday|today|recently|lately)\b"
    rf"|\b\w+\s+(?:day|week|month|year)s?\s+ago\b|\b(?:in|during)\s+(?:{'|'.join(MONTHS)})\b(?!\s*,?\s*\d)",
    re.IGNORECASE,
)


class Declined(Exception):
    """A question that is not answered; the message is one of REASONS."""


REASONS = {
    "not_aggregate": "the router does not send it to the counting tier",
    "no_shape": "no signal says what is counted or listed",
    "no_subject": "no content word is left beside the frame",
    "several_dates": "more than one absolute date",
    "open_date": "a date as a bound (since, before): only whole periods are resolved",
    "no_such_date": "a date that the calendar does not have",
    "scope_too_large": "the period holds more files than a scope may",
    "tie_at_the_top": "two speakers or more share the first place",
    "no_speaker": "no title in scope fits",
    "exception": "the engine or the database refused, or kept buckets back",
}


@dataclass(frozen=True)
class Period:
    """Days ``low`` <= day < ``high``."""

    low: datetime.date
    high: datetime.date


@dataclass(frozen=True)
class Asked:
    """``subject``: a phrase (``phrase`` true: after the link verb) or content words, all of which must be there.

    ``relative``: dates that were read and not applied, since nothing says which day a question was asked on.
    """

    shape: str
    subject: str
    phrase: bool
    period: Period | None = None
    relative: tuple[str, ...] = ()


def parse(text: str) -> Asked:
    """What ``text`` asks for; raises Declined."""
    collapsed = " ".join(text.split())
    shape = shape_of(collapsed)
    if shape is None:
        raise Declined("no_shape")
    rest, period = _period(_without_tails(collapsed))
    relative = tuple(match[0].strip() for match in RELATIVE.finditer(rest))
    rest = " ".join(RELATIVE.sub(" ", rest).split())
    subject = _linked(rest)
    if subject:
        return Asked(shape, subject, True, period, relative)
    words = content_words(LINK.sub(" ", rest))
    if not words:
        raise Declined("no_subject")
    return Asked(shape, " ".join(words), False, period, relative)


def shape_of(text: str) -> str | None:
    """The shape of the first signal that fires, in the order of SIGNALS."""
    return next((shape for shape, signal in SIGNALS if signal.search(text)), None)


def content_words(text: str) -> list[str]:
    """Words of ``text``, lower-cased, in order, without stop words and words of the frame."""
    words = (re.sub(r"['’]s$", "", word.lower()) for word in WORD.findall(text))
    return [word for word in words if word not in STOPWORDS and not FRAME.match(word)]


def _without_tails(text: str) -> str:
    """``text`` without closing clauses, as long as what stays still asks for something."""
    for pattern in (*TAILS, *TAILS):
        cut = pattern.sub("", text)
        if cut != text and shape_of(cut):
            text = cut
    return text


def _linked(text: str) -> str:
    """The phrase after the last link verb; empty without one, or where nothing but scope and stop words follows."""
    links = list(LINK.finditer(text))
    if not links:
        return ""
    subject = SENTENCE_END.split(text[links[-1].end() :], maxsplit=1)[0]
    for _ in range(2):
        subject = SCOPE.sub("", f" {subject.strip(' ,;:')}").strip(" ,;:")
    subject = DETERMINERS.sub("", subject).strip(QUOTES)
    return subject if content_words(subject) else ""


def _period(text: str) -> tuple[str, Period | None]:
    """``text`` without its date, and the period of the date; None where no absolute date stands."""
    found: list[Period] = []
    for pattern in DATES:
        for match in reversed(list(pattern.finditer(text))):
            named = match.groupdict()
            bound = named.pop("bound", None) or BOUND.search(text[: match.start()])
            if bound or ONWARD.search(text[match.end() :]):
                raise Declined("open_date")
            found.append(period_of(**named))
            text = f"{text[: match.start()]} {text[match.end() :]}"
    if len(set(found)) > 1:
        raise Declined("several_dates")
    return text, found[0] if found else None


def period_of(year: str, month: str | None = None, number: str | None = None, day: str | None = None) -> Period:
    """The day, month (by name or ``number``) or year as a half-open period; raises Declined off the calendar."""
    try:
        if not (month or number):
            return Period(datetime.date(int(year), 1, 1), datetime.date(int(year) + 1, 1, 1))
        index = int(number) if number else [name[:3] for name in MONTHS].index(month[:3].lower()) + 1  # type: ignore[index]
        if day:
            low = datetime.date(int(year), index, int(day))
            return Period(low, low + datetime.timedelta(days=1))
        return Period(*month_range(int(year), index))
    except (ValueError, OverflowError) as error:
        raise Declined("no_such_date") from error


def month_range(year: int, month: int) -> tuple[datetime.date, datetime.date]:
    """First day of the month and of the next one."""
    return datetime.date(year, month, 1), datetime.date(year + month // 12, month % 12 + 1, 1)


def card() -> dict[str, Any]:
    """What a document says of this parser; the hash is over all expressions, in order."""
    expressions = [
        *([shape, signal.pattern] for shape, signal in SIGNALS),
        *(
            one.pattern
            for one in (LINK, *TAILS, SCOPE, DETERMINERS, SENTENCE_END, FRAME, *DATES, BOUND, ONWARD, RELATIVE)
        ),
    ]
    return {
        "expressions_sha256": canon.digest(expressions),
        "stopwords": len(STOPWORDS),
        "subject": "the text after the last link verb; without one, content words that must all be there",
        "written_against": "spec/harness 6, general English and the exact wordings, which were known; no rewording was",
        "dates": "ISO day or month, day of a month, month and year, year: half-open; relative ones are disclosed and "
        "not applied; bounds and several dates are declined",
        "reasons": REASONS,
    }
