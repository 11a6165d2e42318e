"""What is put before a passage's text for its vector (spec/harness 1.5).

The original dates its header by the day of injection, so that one corpus has other vectors every day. Here the date is
that of the recording, or there is none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from lossmap.errors import LossmapError

NAMED = 6
"""Names that a header spells out; the rest are counted."""


class Passage(Protocol):
    """What a header is made of; ``roster`` holds the names of the whole file, sorted, without "Unknown"."""

    @property
    def title(self) -> str: ...
    @property
    def recorded_date(self) -> str | None: ...
    @property
    def roster(self) -> tuple[str, ...]: ...
    @property
    def text(self) -> str: ...


def _title(passage: Passage) -> str:
    return passage.title


def _date(passage: Passage) -> str:
    """The day alone: a recorded time would make two texts of one day differ."""
    return (passage.recorded_date or "")[:10]


def _people(passage: Passage) -> str:
    names = ", ".join(passage.roster[:NAMED])
    more = len(passage.roster) - NAMED
    return f"participants: {names}{f', +{more} more' if more > 0 else ''}" if names else ""


HEADERS: dict[str, tuple[Callable[[Passage], str], ...]] = {
    "none": (),
    "title-date-people": (_title, _date, _people),
    "title-people": (_title, _people),
}
"""Policy to parts; a part that a file does not have is left out, and so is a header without parts."""


def header(policy: str, passage: Passage) -> str:
    if policy not in HEADERS:
        raise LossmapError(
            "unknown header policy", observed=policy, expected=sorted(HEADERS), exit_code=2,
            next_command="name one of these in the index stanza or in header: of workflow/config/config.yaml",
        )  # fmt: skip
    return " | ".join(part for part in (part_of(passage) for part_of in HEADERS[policy]) if part)


def embedding_text(policy: str, passage: Passage) -> str:
    """Header, blank line, body; the body alone where no part of the header is present."""
    found = header(policy, passage)
    return f"{found}\n\n{passage.text}" if found else passage.text
