"""Wordings of the questions: exact and reworded frames, how they are filled, and what a rewording may not repeat."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from lossmap.errors import LossmapError

FOLDER = Path(__file__).parent
WORD = re.compile(r"[^\W\d_]+")
CONTENT_LETTERS = 4
DERIVATIONS = ("ations", "ation", "ments", "ment", "ness", "ions", "ion", "ers", "er", "ly", "al", "ances", "ance")
INFLECTIONS = ("ings", "ing", "ies", "ied", "ed", "es", "s", "e")
DOUBLING = {"ings", "ing", "ed", "er", "ers"}  # endings before which a consonant doubles

Frame = dict[str, str]


@cache
def _document(name: str) -> dict[str, Any]:
    return yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))


def wordings() -> dict[str, Any]:
    """frames.yaml: exact frames by rule, aspects, phrases of markers and deferrals."""
    return _document("frames.yaml")


def rewordings() -> dict[str, Any]:
    """paraphrases.yaml: reworded frames by rule, and other names for aspects, markers, deferrals and kinds."""
    return _document("paraphrases.yaml")


def templates() -> dict[str, Any]:
    """plants.yaml: the planted text by register."""
    return _document("plants.yaml")


def fill(text: str, **values: str) -> str:
    """``text`` with its placeholders filled, beginning with a capital letter."""
    try:
        filled = text.format(**values)
    except KeyError as error:
        raise LossmapError("a frame has a placeholder that nothing fills", where=text, observed=error) from error
    return filled[:1].upper() + filled[1:]


def listed(items: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def kind_words(kind: str) -> dict[str, str]:
    """Other words for a kind of series: ``one`` (with its article) and ``many``."""
    found: dict[str, str] | None = rewordings()["kinds"].get(kind)
    if found is None:
        raise LossmapError(
            "a kind of series has no other words",
            where="src/lossmap/synthetic/paraphrases.yaml, kinds",
            observed=kind,
            expected=sorted(rewordings()["kinds"]),
        )
    return found


def pattern(frame: Frame) -> re.Pattern[str]:
    """A filled exact frame read back: every placeholder is a group of its name."""
    parts = re.split(r"\{(\w+)\}", frame["text"])
    made = [re.escape(part) if at % 2 == 0 else f"(?P<{part}>.+?)" for at, part in enumerate(parts)]
    return re.compile("".join(made))


def values_of(rule: str, frame_id: str, text: str) -> dict[str, str]:
    """What fills the exact frame ``frame_id`` of ``rule`` in ``text``; empty where the text is none of its making."""
    for frame in wordings()["exact"][rule]:
        if frame["id"] == frame_id and (found := pattern(frame).fullmatch(text)):
            return found.groupdict()
    return {}


@cache
def function_words() -> frozenset[str]:
    return frozenset(wordings()["function_words"].split())


@cache
def stem(word: str) -> str:
    """``word`` without endings of inflection and common derivation, so that "planned" and "planning" are one word.

    Endings go as long as three letters stay (four for derivations); it takes too much rather than too little.
    """
    while True:
        for ending in (*DERIVATIONS, *INFLECTIONS):
            if word.endswith(ending) and len(word) - len(ending) >= (4 if ending in DERIVATIONS else 3):
                word = word[: -len(ending)] + ("y" if ending in ("ies", "ied") else "")
                if ending in DOUBLING and word[-1] == word[-2]:
                    word = word[:-1]
                break
        else:
            return word


def content_words(text: str) -> dict[str, str]:
    """Stem to word for the lower-cased words of four letters and more that are no function words."""
    words = (word.lower() for word in WORD.findall(text))
    return {stem(w): w for w in words if len(w) >= CONTENT_LETTERS and w not in function_words()}


def without(text: str, names: Iterable[str]) -> str:
    """``text`` without ``names``, as whole words in any case, the longest first."""
    for name in sorted(filter(None, names), key=lambda name: (-len(name), name)):
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", " ", text, flags=re.IGNORECASE)
    return text


def shared_words(query: str, gold_text: str, names: Iterable[str] = ()) -> list[str]:
    """Content words of ``query`` that also stand in ``gold_text`` in some form; ``names`` in the query do not count."""
    asked, held = content_words(without(query, names)), content_words(gold_text)
    return sorted(asked[key] for key in asked.keys() & held.keys())
