"""Where a question goes: rules over its words alone, from the cues of route.yaml (spec/harness 7). No model is asked.

A wrong tier costs more than a missed one: a digest is selected sentences, so that a phrase that was said can be absent
from it and an answer read from digests would deny it. Therefore the chunk tier is never removed, and what names
a phrase or a speaker never gets digests.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from lossmap import canon
from lossmap.transcript import MONTHS

CUES = Path(__file__).with_name("route.yaml")
LABELS = ("lookup", "temporal", "summarize", "aggregate")
"""From the least to the most specific: of several that fire, the last one holds."""
TIERS = {
    "lookup": ("chunk",),
    "temporal": ("chunk",),
    "summarize": ("digest", "chunk"),
    "aggregate": ("aggregate", "chunk"),
}
LITERAL = 3
"""Fewest characters of a quoted span that is a literal phrase."""
# An apostrophe within a word opens nothing and closes nothing: "the board's view of the team's plan" quotes no one.
QUOTED = re.compile(r"[\"“”«»]([^\"“”«»]+)[\"“”«»]|(?<!\w)['‘]([^'‘’]+(?:['’]\w[^'‘’]*)*)['’](?!\w)")
RELATION = re.compile(r"\b(since|after|before|until|till)\s+(?:(?:the|early|late|mid|end of|start of)\s+)*$", re.I)
# Where a request begins: the text, a sentence, a clause, or after words of courtesy.
START = r"(?:^|[.?!,;:]\s*|\b(?:please|can you|could you|would you)\s+)"


@dataclass(frozen=True)
class Temporal:
    """The time that a question names.

    ``kind``: day, month, year or relative. ``value``: YYYY-MM-DD, YYYY-MM, YYYY, or the words in lower case.
    ``start`` and ``end``: the half-open range of dates, None where it depends on the day of asking.
    ``relation``: in, since, after, before or until, by the word before it; several where the question names more than
    one time of that kind, of which this is the first. Only "in" can be answered by filtering to the range.
    """

    kind: str
    value: str
    start: datetime.date | None
    end: datetime.date | None
    relation: str
    text: str


@dataclass(frozen=True)
class Route:
    """``signals``: names of the cues that fired, the strongest intent's first, and of their markers.

    ``literal``: the quoted phrases.
    ``source``: query or rewritten, whichever text the intent was read from; default where no cue fired in either.
    """

    intent: str
    tiers: tuple[str, ...]
    signals: tuple[str, ...]
    temporal: Temporal | None
    source: str
    literal: tuple[str, ...]


@dataclass(frozen=True)
class Cue:
    """A pattern that speaks for ``intent``, where ``needs`` is empty or one of these markers is there as well."""

    name: str
    intent: str
    pattern: re.Pattern[str]
    needs: tuple[str, ...]


@dataclass(frozen=True)
class Rules:
    cues: tuple[Cue, ...]
    markers: Mapping[str, re.Pattern[str]]
    times: tuple[tuple[str, re.Pattern[str]], ...]
    joined: tuple[re.Pattern[str], re.Pattern[str]]


def route(text: str, rewritten: str | None = None, speaker: str | None = None) -> Route:
    """The route of ``text``; a ``rewritten`` text is read too and decides where its label is more specific.

    ``speaker``: a filter that was set beside the question; with it, or with a quoted phrase, no digest is asked for.
    """
    texts = {"query": text} | ({"rewritten": rewritten} if rewritten else {})
    found = {source: signals(words) for source, words in texts.items()}
    source = max(texts, key=lambda name: LABELS.index(label(found[name])))
    intent = label(found[source])
    quoted = tuple(dict.fromkeys(phrase for words in texts.values() for phrase in literals(words)))
    times = (temporal(words) for words in texts.values())
    barred = {"digest"} if quoted or speaker else set()
    return Route(
        intent,
        tuple(tier for tier in TIERS[intent] if tier not in barred),
        found[source],
        next((time for time in times if time), None),
        source if found[source] else "default",
        quoted,
    )


def label(names: tuple[str, ...]) -> str:
    """The most specific intent among fired cues; lookup where none fired. Markers speak for none."""
    return max((cue.intent for cue in rules().cues if cue.name in names), key=LABELS.index, default=LABELS[0])


def signals(text: str) -> tuple[str, ...]:
    """Names of the cues that fire outside quotation marks, then of the markers that they needed; as in route.yaml."""
    words, table = _unquoted(text), rules()
    there = {name for name, pattern in table.markers.items() if pattern.search(words)}
    heads = [
        cue for cue in table.cues if cue.pattern.search(words) and (not cue.needs or there.intersection(cue.needs))
    ]
    needed = there.intersection(name for cue in heads for name in cue.needs)
    return (*(cue.name for cue in heads), *(name for name in table.markers if name in needed))


def literals(text: str) -> tuple[str, ...]:
    """Quoted phrases of at least LITERAL characters, as they stand."""
    spans = ((match[1] or match[2]).strip() for match in QUOTED.finditer(text))
    return tuple(span for span in spans if len(span) >= LITERAL)


def temporal(text: str) -> Temporal | None:
    """The time that ``text`` names outside quotation marks; the most exact kind wins, then the first in the text."""
    words = _unquoted(text)
    for kind, pattern in rules().times:
        read = [(match, part) for match in pattern.finditer(words) if (part := _read(kind, match))]
        if read:
            (match, (value, start, end)), *_ = read
            several = len({part[0] for _, part in read}) > 1
            relation = "several" if several else _relation(words[: match.start()], words[match.end() :])
            return Temporal(kind, value, start, end, relation, match[0])
    return None


def _relation(before: str, after: str) -> str:
    """How a time stands between the words ``before`` and ``after`` it (Temporal.relation)."""
    left, right = rules().joined
    if left.search(before) or right.search(after):
        return "several"
    found = RELATION.search(before)
    return found[1].lower().replace("till", "until") if found else "in"


def _read(kind: str, match: re.Match[str]) -> tuple[str, datetime.date | None, datetime.date | None] | None:
    """Value and half-open range of one match; None for a date that no calendar has."""
    if kind == "relative":
        return " ".join(match[0].lower().split()), None, None
    parts = match.groupdict()
    month = _month_number(parts["name"]) if "name" in parts else int(parts.get("month") or 1)
    try:
        start = datetime.date(int(parts["year"]), month, int(parts.get("day") or 1))
    except ValueError:
        return None
    ends = {
        "day": start + datetime.timedelta(days=1),
        "month": (start.replace(day=1) + datetime.timedelta(days=31)).replace(day=1),
        "year": datetime.date(start.year + 1, 1, 1),
    }
    return start.isoformat()[: {"day": 10, "month": 7, "year": 4}[kind]], start, ends[kind]


def _month_number(name: str) -> int:
    return next(number for number, month in enumerate(MONTHS, 1) if month.lower().startswith(name.lower()[:3]))


def _unquoted(text: str) -> str:
    """``text`` with literal phrases blanked at their length: a quoted cue is said by somebody else."""
    return QUOTED.sub(
        lambda match: " " * len(match[0]) if len((match[1] or match[2]).strip()) >= LITERAL else match[0], text
    )


@lru_cache(maxsize=1)
def rules() -> Rules:
    """route.yaml, compiled."""
    table = _table()
    words = {name: "(?:" + "|".join(some) + ")" for name, some in table["words"].items()}
    words |= {
        "start": START,
        "month": "(?:" + "|".join(f"{m[:3]}{f'(?:{m[3:]})?' if m[3:] else ''}" for m in MONTHS) + ")",
    }

    def compiled(pattern: str) -> re.Pattern[str]:
        # A name of a group stands in the same signs, after a "P".
        filled = re.sub(r"(?<!P)<(\w+)>", lambda match: words[match[1]], pattern)
        return re.compile(filled.replace(" ", r"\s+"), re.IGNORECASE)

    return Rules(
        tuple(Cue(c["name"], c["intent"], compiled(c["pattern"]), tuple(c.get("needs", ()))) for c in table["cues"]),
        {name: compiled(pattern) for name, pattern in table["markers"].items()},
        tuple((time["kind"], compiled(time["pattern"])) for time in table["times"]),
        (compiled(table["joined"][0]), compiled(table["joined"][1])),
    )


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    with open(CUES, encoding="utf-8") as handle:
        return yaml.safe_load(handle)


def card() -> dict[str, Any]:
    """What a document says of the classifier; the hash is over the cues."""
    return {
        "mechanism": "rules over the words of the question",
        "llm_required": False,
        "labels": list(LABELS),
        "precedence": list(reversed(LABELS)),
        "tiers": {intent: list(tiers) for intent, tiers in TIERS.items()},
        "cues": [cue.name for cue in rules().cues],
        "cues_sha256": canon.digest(_table()),
        "literal_characters": LITERAL,
    }
