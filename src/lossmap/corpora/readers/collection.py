"""Plain document collections: one meeting of one turn a document, judgements per document, groups for a selection."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lossmap.corpora.readers import Reading, malformed
from lossmap.errors import LossmapError
from lossmap.transcript import GoldSpan, Meeting, Query, Turn

ALL = "all"  # the domain of documents that upstream does not group
IDENTIFIER = re.compile(r"[A-Za-z0-9._-]+")


@dataclass
class Collection:
    """A reading under construction; ``groups`` maps a document to what a selection keeps or drops as a whole."""

    language: str
    reading: Reading = field(default_factory=Reading)
    groups: dict[str, str] = field(default_factory=dict)

    def add(self, document_id: str, title: str, text: str, domain: str = ALL, group: str | None = None) -> None:
        """Raises ValueError on an id that is taken or holds anything but letters, digits, dot, dash, underscore."""
        if document_id in self.groups or not IDENTIFIER.fullmatch(document_id):
            raise ValueError(f"document id {document_id!r} is taken or malformed")
        self.groups[document_id] = group or document_id
        meeting = Meeting(document_id, title, domain, self.language, None, (Turn(0, "", text),))
        self.reading.meetings.append(meeting)

    def ask(self, query_id: str, text: str, gold: Mapping[str, int], domain: str = ALL) -> None:
        """A query with the grade of each relevant document. Raises KeyError where one is not in the collection."""
        for document_id, grade in gold.items():
            self.groups[document_id]
            self.reading.gold.append(GoldSpan(query_id, document_id, 0, 0, grade))
        self.reading.queries.append(Query(query_id, text, "lookup", domain))

    def finish(self, selection: Mapping[str, int] | None, **report: Any) -> Reading:
        """What the selection keeps, under a report of the counts; ``report`` adds what the reader met."""
        if selection:
            self._narrow(selection["per_domain"])
        reading = self.reading
        reading.report = {
            "domains": dict(Counter(m.domain for m in reading.meetings)),
            "query_domains": dict(Counter(q.domain for q in reading.queries)),
            "grades": dict(Counter(str(g.grade) for g in reading.gold)),
            "documents_with_gold": len({g.meeting_id for g in reading.gold}),
            "distinct_texts": len({m.turns[0].text for m in reading.meetings}),
            **report,
        }
        return reading

    def _narrow(self, limit: int) -> None:
        """Keep ``limit`` groups a domain, judged ones first, and the queries all of whose gold is kept."""
        judged = {self.groups[span.meeting_id] for span in self.reading.gold}
        kept: dict[str, list[str]] = {}
        for meeting in sorted(self.reading.meetings, key=lambda m: self._order(m, judged)):
            groups = kept.setdefault(meeting.domain, [])
            if (group := self.groups[meeting.meeting_id]) not in groups and len(groups) < limit:
                groups.append(group)
        reading = self.reading
        reading.meetings = [m for m in reading.meetings if self.groups[m.meeting_id] in kept[m.domain]]
        here = {m.meeting_id for m in reading.meetings}
        lost = {span.query_id for span in reading.gold if span.meeting_id not in here}
        reading.queries = [q for q in reading.queries if q.query_id not in lost]
        reading.gold = [span for span in reading.gold if span.query_id not in lost]

    def _order(self, meeting: Meeting, judged: set[str]) -> tuple[bool, str, str]:
        group = self.groups[meeting.meeting_id]
        return group not in judged, group, meeting.meeting_id


@contextmanager
def fields_of(path: Path, what: str) -> Iterator[None]:
    """Turn a missing field or a wrong type met while reading ``path`` into an error that names the file."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        raise malformed(path, f"{type(error).__name__}: {error}", what) from error
    except LossmapError as error:
        raise malformed(path, str(error).replace("\n", ";"), what) from error


def load_jsonl(path: Path) -> list[dict[str, Any]]:
    """The objects of ``path``, one a line. Raises LossmapError naming the file and the line."""
    rows = []
    try:
        for line in path.read_text(encoding="utf-8").split("\n"):
            if line.strip():
                rows.append(json.loads(line))
    except ValueError as error:
        raise malformed(path, f"object {len(rows)}: {error}", "one JSON object a line") from error
    return rows
