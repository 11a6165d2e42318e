"""Readers: upstream's files of one corpus to meetings, queries and gold. A reader is a module with ``read``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lossmap.errors import LossmapError
from lossmap.transcript import GoldSpan, Meeting, Query


@dataclass
class Reading:
    """What a reader hands over; ``report`` holds what it validated, skipped and met, without corpus text."""

    meetings: list[Meeting] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)
    gold: list[GoldSpan] = field(default_factory=list)
    report: dict[str, Any] = field(default_factory=dict)


def select(meetings: Iterable[tuple[str, str]], selection: Mapping[str, int] | None) -> set[str]:
    """Ids kept out of (id, domain) pairs: all, or the first ``per_domain`` of each domain by id."""
    kept: dict[str, list[str]] = {}
    for meeting_id, domain in sorted(meetings):
        kept.setdefault(domain, []).append(meeting_id)
    limit = selection["per_domain"] if selection else None
    return {meeting_id for ids in kept.values() for meeting_id in ids[:limit]}


def load_json(path: Path) -> Any:
    """The document at ``path``. Raises LossmapError naming the file where it is not JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise malformed(path, error, "a JSON document") from error


def malformed(path: Path, observed: object, expected: str) -> LossmapError:
    return LossmapError(
        "a corpus file does not have its upstream form",
        where=path,
        observed=observed,
        expected=expected,
        next_command="./run lossmap corpora verify",
    )
