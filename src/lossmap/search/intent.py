"""What a question asks for, by rules over the exact question frames; anything else is declined.

Each frame of synthetic/frames.yaml becomes one anchored expression. The rewordings (paraphrases.yaml) are not read and
were not read for this: how far rules for exact wordings carry over other wordings is what their surfaces measure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

import lossmap
from lossmap import canon
from lossmap.transcript import MONTHS

FRAMES = Path(lossmap.__file__).parent / "synthetic" / "frames.yaml"
RULES = ("R3", "R4", "R5", "R6", "R7")
TOLERANCES = (
    "case",
    "runs of white space",
    "please before or after",
    "signs at the end of a sentence",
    "commas",
    "quotation marks around a phrase",
    "a second sentence that only says to list",
)
SLOTS = {"month": "|".join(MONTHS), "year": r"[12]\d{3}"}
# A slot never runs over the end of a question into another one.
SLOT = r"[^?!]+?"
SUBJECTS = ("marker", "deferral")
QUOTES = "\"'“”‘’«» "


@dataclass(frozen=True)
class Intent:
    """``rule`` R3 to R7 and what it needs: a phrase as ``subject``, (year, month), or ``team`` and ``kind``."""

    rule: str
    subject: str = ""
    month: tuple[int, int] = (0, 0)
    team: str = ""
    kind: str = ""


def parse(text: str) -> Intent | None:
    """The intent of the first frame that fits the whole of ``text``, those with a month first; None where none does."""
    collapsed = " ".join(text.split())
    for rule, _, pattern in compiled():
        if match := pattern.fullmatch(collapsed):
            return _intent(rule, {name: value.strip(QUOTES) for name, value in match.groupdict().items()})
    return None


def _intent(rule: str, slots: dict[str, str]) -> Intent | None:
    if not all(re.search(r"\w", value) for value in slots.values()):
        return None
    subject = next((slots[name] for name in SUBJECTS if name in slots), "")
    month = (int(slots["year"]), MONTHS.index(slots["month"].title()) + 1) if "month" in slots else (0, 0)
    return Intent(rule, subject, month, slots.get("team", ""), slots.get("kind", ""))


@lru_cache(maxsize=1)
def compiled() -> tuple[tuple[str, str, re.Pattern[str]], ...]:
    """(rule, frame id, expression) of every frame that asks for an answer, temporal ones first."""
    with open(FRAMES, encoding="utf-8") as handle:
        exact = yaml.safe_load(handle)["exact"]
    frames = [(rule, frame["id"], frame["text"]) for rule in RULES for frame in exact[rule]]
    frames.sort(key=lambda frame: "{month}" not in frame[2])
    return tuple((rule, name, expression(text)) for rule, name, text in frames)


def expression(frame: str) -> re.Pattern[str]:
    """The expression of one frame: each placeholder a named group, sentences after the first optional."""
    first, *others = re.split(r"(?<=[?.!]) ", frame)
    tail = "".join(f"(?: {_sentence(sentence)})?" for sentence in others)
    return re.compile(rf"(?:please,? )?{_sentence(first)}{tail}(?:,? please[?.!]*)?", re.IGNORECASE)


def _sentence(text: str) -> str:
    parts = re.split(r"\{(\w+)\}", text.rstrip("?.!"))
    literals = [re.escape(part).replace(",", ",?") for part in parts[::2]]
    groups = [f"(?P<{name}>{SLOTS.get(name, SLOT)})" for name in parts[1::2]]
    return "".join(literal + group for literal, group in zip(literals, [*groups, ""], strict=True)) + "[?.!]*"


def card() -> dict[str, Any]:
    """What a document says of its parser; the hash is over the rules and expressions that were tried, in order."""
    frames = [[rule, name, pattern.pattern] for rule, name, pattern in compiled()]
    return {
        "frames": [name for _, name, _ in frames],
        "expressions_sha256": canon.digest(frames),
        "tolerances": list(TOLERANCES),
        "written_against": "the exact wordings alone",
        "no_frame": "declined",
    }
