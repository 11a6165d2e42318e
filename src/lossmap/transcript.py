"""The one shape that every corpus takes: meetings of turns, queries, and gold as inclusive turn ranges."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lossmap import canon
from lossmap.errors import LossmapError

TIERS = ("A", "B", "C")
"""Best first: publishable, internal only, unobtainable."""
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December")  # fmt: skip


@dataclass(frozen=True)
class Turn:
    """One speaker's utterance; ``start`` and ``end`` in seconds, None where the corpus has no timing."""

    index: int
    speaker: str
    text: str
    start: float | None = None
    end: float | None = None


@dataclass(frozen=True)
class Meeting:
    meeting_id: str
    title: str
    domain: str
    language: str
    recorded_date: str | None
    turns: tuple[Turn, ...]


@dataclass(frozen=True)
class Query:
    """``query_class`` is lookup, verbatim, multi_file, summarize or aggregation."""

    query_id: str
    text: str
    query_class: str
    domain: str


@dataclass(frozen=True)
class GoldSpan:
    """Turns ``first`` to ``last`` of one meeting, both included.

    ``grade`` is the corpus's own judgement of them; None where coverage decides the grade.
    """

    query_id: str
    meeting_id: str
    first: int
    last: int
    grade: int | None = None


def write_corpus(
    folder: Path, meetings: Iterable[Meeting], queries: Iterable[Query], gold: Iterable[GoldSpan], card: dict[str, Any]
) -> None:
    """The corpus contract: three JSONL files, then ``corpus.json`` with their hashes and counts."""
    meetings = sorted(meetings, key=lambda m: m.meeting_id)
    parts = {
        "meetings.jsonl": map(asdict, meetings),
        "queries.jsonl": map(asdict, sorted(queries, key=lambda q: q.query_id)),
        "gold.jsonl": map(asdict, sorted(gold, key=lambda g: (g.query_id, g.meeting_id, g.first, g.last))),
    }
    counts = {name.removesuffix(".jsonl"): canon.write_jsonl(folder / name, rows) for name, rows in parts.items()}
    files = {name: canon.file_sha256(folder / name) for name in parts}
    canon.write_json(folder / "corpus.json", {**card, "counts": counts, "files": files})


def read_card(folder: Path) -> dict[str, Any]:
    """corpus.json; its ``documents`` is the corpus whose meetings the gold points into, where that is another."""
    return canon.read_json(folder / "corpus.json")


def owner(folder: Path) -> str:
    """Key of the corpus whose meetings the gold of the corpus in ``folder`` points into: most often itself."""
    card = read_card(folder)
    return card.get("documents") or card["key"]


def read_meetings(folder: Path) -> list[Meeting]:
    return [
        Meeting(**{**row, "turns": tuple(Turn(**turn) for turn in row["turns"])})
        for row in canon.read_jsonl(folder / "meetings.jsonl")
    ]


def read_queries(folder: Path) -> list[Query]:
    return [Query(**row) for row in canon.read_jsonl(folder / "queries.jsonl")]


def read_gold(folder: Path) -> list[GoldSpan]:
    return [GoldSpan(**row) for row in canon.read_jsonl(folder / "gold.jsonl")]


def worst(tiers: Iterable[str]) -> str:
    """The tier of what rests on all of these: C if any is C, else B if any is B. ValueError on another letter."""
    return max(tiers, key=TIERS.index)


def check_span(span: GoldSpan, turns: int) -> None:
    """Raise where a span is reversed or leaves its meeting."""
    if not 0 <= span.first <= span.last < turns:
        raise LossmapError(
            "a gold span is reversed or out of range",
            where=f"{span.query_id} in meeting {span.meeting_id}",
            observed=f"turns {span.first}..{span.last}",
            expected=f"0 <= first <= last < {turns}",
            next_command="./run lossmap corpora verify",
        )
