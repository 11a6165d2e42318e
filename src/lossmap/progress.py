"""Progress of anything longer than two seconds: a bar on a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, TextIO

from tqdm import tqdm

TERMINAL_SECONDS = 0.5
LINE_SECONDS = 10.0
PLAIN = "{desc}: {n_fmt}/{total_fmt} {unit}, {elapsed}"


class _Lines:
    """Turns the carriage returns of a bar into lines of their own."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        if bare := text.strip("\r\n "):
            self._stream.write(bare + "\n")

    def flush(self) -> None:
        self._stream.flush()


def bar(items: Iterable[Any] | None, what: str, total: int, unit: str) -> tqdm:
    """A tqdm over ``items``, or one to be updated by hand where that is None; silent below two seconds."""
    if sys.stderr.isatty():
        return tqdm(items, what, total, unit=f" {unit}", mininterval=TERMINAL_SECONDS, delay=2)
    return tqdm(
        items,
        what,
        total,
        unit=unit,
        mininterval=LINE_SECONDS,
        maxinterval=LINE_SECONDS,
        delay=2,
        bar_format=PLAIN,
        file=_Lines(sys.stderr),
    )
