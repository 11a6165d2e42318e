"""Whom a question names: speakers of the index that stand in its words, so that a filter can keep what they said."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from lossmap.index.chunk import UNKNOWN_SPEAKER
from lossmap.index.table import Row


def of(rows: Iterable[Row]) -> tuple[str, ...]:
    """The speakers of an index, sorted: whoever has a chunk, but for the name that stands for nobody."""
    return tuple(sorted({row.speaker for row in rows} - {UNKNOWN_SPEAKER}))


def named(text: str, names: Iterable[str]) -> tuple[str, ...]:
    """The ``names`` that stand in ``text``, each once, in the order of the text.

    A name is met as it is written, case included, and whole: "Marketing" is a speaker where "marketing" is a subject,
    and "Grad A" is nobody in "Grad AB". Of names that begin at one place the longest is meant.
    """
    pattern = _pattern(tuple(sorted(set(names), key=lambda name: (-len(name), name))))
    return tuple(dict.fromkeys(pattern.findall(text)))


@lru_cache(maxsize=8)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """An expression that prefers earlier ``names``; without any it matches nowhere."""
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)" if names else r"(?!)")
