"""The product's answerer: a generic frame over the question, then aggregations and SQL; never a model.

Unlike the reference it knows no wording, and unlike it every failure is a decline: a user is told that a question was
not counted rather than given a count of something else. A date narrows the scope in PostgreSQL by ``recorded_date``,
a column that the injection writes; files without one are left out and reported, so that a count is a floor.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException
from psycopg import sql

from lossmap.errors import LossmapError
from lossmap.search import shapes
from lossmap.search.aggregate import Answer, Counting, alone_at_the_top, exact_phrase, expression, like
from lossmap.search.shapes import EVENTS, FACET, FILES, LIST, Asked, Declined

SCOPE_LIMIT = 500
RECORDED, UPLOADED = "recorded_date", "upload_date"
MECHANISM = {
    FILES: "count of files: match_phrase(content.exact) or match(content.exact, and), terms(file_uuid)",
    LIST: "the files of count_files as meeting ids",
    EVENTS: "PostgreSQL: sum of regexp_count of the phrase over segments, or segments that hold all the words",
    FACET: "match_phrase(title) or match(title, and), terms(speakers) x terms(file_uuid); a tie is declined",
}
# Before dates were recorded every file had one date, that of its injection: given, it stands for all of them.
PERIOD = """
SELECT file_uuid::text FROM {}.file
WHERE corpus = %(corpus)s
AND coalesce(%(injected_on)s::date, recorded_date) >= %(low)s
AND coalesce(%(injected_on)s::date, recorded_date) < %(high)s
ORDER BY file_uuid
"""
UNDATED = """
SELECT count(*) FROM {}.file WHERE corpus = %(corpus)s AND coalesce(%(injected_on)s::date, recorded_date) IS NULL
"""
PHRASE_EVENTS = """
SELECT coalesce(sum(regexp_count(segment.content, %(phrase)s, 1, 'i')), 0)
FROM {0}.segment AS segment JOIN {0}.file AS file USING (file_uuid)
WHERE file.corpus = %(corpus)s AND segment.content ILIKE %(like)s
AND (%(files)s::uuid[] IS NULL OR file_uuid = ANY(%(files)s::uuid[]))
"""
WORD_EVENTS = """
SELECT count(*)
FROM {0}.segment AS segment JOIN {0}.file AS file USING (file_uuid)
WHERE file.corpus = %(corpus)s AND segment.content ~* ALL(%(words)s::text[])
AND (%(files)s::uuid[] IS NULL OR file_uuid = ANY(%(files)s::uuid[]))
"""


@dataclass(frozen=True)
class Response:
    """``answer``, or the reason of a decline (one of shapes.REASONS); ``coverage``: what the answer is over."""

    answer: Answer | None
    shape: str | None
    declined: str | None
    coverage: Mapping[str, Any]


class Product(Counting):
    """Answers whatever its generic frame reads; the reason of every decline is kept.

    ``routed``: whether the router sends a question to the counting tier; None asks no router, and the signals of a
    shape alone decide. ``injected_on``: the arm before dates were recorded, in which every file has this one date.
    """

    def __init__(
        self,
        client: OpenSearch,
        index: str,
        conn: psycopg.Connection,
        schema: str,
        corpus: str,
        routed: Callable[[str], bool] | None = None,
        injected_on: datetime.date | None = None,
        scope_limit: int = SCOPE_LIMIT,
        **options: Any,
    ) -> None:
        super().__init__(client, index, conn, schema, corpus, **options)
        self.routed, self.injected_on, self.scope_limit = routed, injected_on, scope_limit
        self.responses: dict[str, Response] = {}
        self.used: Counter[str] = Counter()
        self.declined: Counter[str] = Counter()
        self._shapes: dict[str, Callable[[Asked, list[str] | None], tuple[str, Any]]] = {
            FILES: lambda asked, scope: ("integer", len(self._mentions(asked, scope))),
            LIST: lambda asked, scope: ("file_set", self.meetings(self._mentions(asked, scope))),
            EVENTS: lambda asked, scope: ("integer", self._events(asked, scope)),
            FACET: self._top_speaker,
        }

    def answer(self, text: str) -> Answer | None:
        """The answer, None where it is declined: also where an engine or a database refuses."""
        found = self.respond(text)
        self.responses[text] = found
        if found.declined:
            self.declined[found.declined] += 1
        elif found.shape:
            self.used[found.shape] += 1
        return found.answer

    def respond(self, text: str) -> Response:
        """The answer with its coverage; counts nothing in the card."""
        shape: str | None = None
        coverage: dict[str, Any] = {}
        try:
            if self.routed and not self.routed(text):
                raise Declined("not_aggregate")
            asked = shapes.parse(text)
            shape = asked.shape
            # A statement that fails must not leave the connection of the other answerers in a failed transaction.
            with self.conn.transaction():
                scope = self._scope(asked, coverage)
                kind, value = self._shapes[shape](asked, scope)
        except Declined as reason:
            return Response(None, shape, str(reason), coverage)
        except (LossmapError, OpenSearchException, psycopg.Error):
            return Response(None, shape, "exception", coverage)
        return Response(Answer(kind, value, shape), shape, None, coverage)

    def note(self, text: str) -> dict[str, Any]:
        found = self.responses[text]
        return {"shape": found.shape, "reason": found.declined, "coverage": dict(found.coverage)}

    def describe(self) -> dict[str, Any]:
        """The answerer's card; ``shapes_used`` and ``declined`` are over all that was asked until now."""
        before = self.injected_on is not None
        return {
            "answerer": "product-before-dates" if before else "product",
            "summary": "a generic interrogative frame, then aggregations and SQL",
            "is_production_path": not before,
            "mechanism": MECHANISM,
            "parser": shapes.card(),
            "router": self.routed is not None,
            "dates": {
                "filter": f"PostgreSQL, half-open, by {self._dated_by}",
                "injected_on": self.injected_on and self.injected_on.isoformat(),
                "scope_limit": self.scope_limit,
            },
            "shapes_used": {shape: self.used[shape] for shape in shapes.SHAPES},
            "declined": {reason: self.declined[reason] for reason in shapes.REASONS if self.declined[reason]},
            **self.card(),
        }

    @property
    def _dated_by(self) -> str:
        return RECORDED if self.injected_on is None else UPLOADED

    def _scope(self, asked: Asked, coverage: dict[str, Any]) -> list[str] | None:
        """Uuids of the files of the period, None for the whole corpus; ``coverage`` is filled."""
        coverage["relative_dates_skipped"] = list(asked.relative)
        if asked.period is None:
            return None
        low, high = asked.period.low, asked.period.high
        given = {"corpus": self.corpus, "injected_on": self.injected_on, "low": low, "high": high}
        files = [row[0] for row in self.conn.execute(sql.SQL(PERIOD).format(self.schema), given).fetchall()]
        undated = self.conn.execute(sql.SQL(UNDATED).format(self.schema), given).fetchone()
        coverage |= {
            "period": [low.isoformat(), high.isoformat()],
            "files_in_period": len(files),
            "undated_files_excluded": undated[0],  # type: ignore[index]
            "date_sources": {self._dated_by: len(files)},
        }
        if len(files) > self.scope_limit:
            raise Declined("scope_too_large")
        return files

    def _mentions(self, asked: Asked, scope: list[str] | None) -> list[str]:
        words = {"match": {"content.exact": {"query": asked.subject, "operator": "and"}}}
        clause = exact_phrase(asked.subject) if asked.phrase else words
        return self.files([clause, *_among(scope)], asked.subject)

    def _events(self, asked: Asked, scope: list[str] | None) -> int:
        """Repeats of a phrase, within a segment too; chunks overlap and would count twice."""
        given: dict[str, Any] = {"corpus": self.corpus, "files": scope}
        if asked.phrase:
            statement = PHRASE_EVENTS
            given |= {"phrase": expression(asked.subject), "like": like(asked.subject)}
        else:
            statement = WORD_EVENTS
            given["words"] = [expression(word) for word in asked.subject.split()]
        row = self.conn.execute(sql.SQL(statement).format(self.schema), given).fetchone()
        return int(row[0])  # type: ignore[index]

    def _top_speaker(self, asked: Asked, scope: list[str] | None) -> tuple[str, Any]:
        words = {"match": {"title": {"query": asked.subject, "operator": "and"}}}
        clause = {"match_phrase": {"title": asked.subject}} if asked.phrase else words
        ranked = self.sessions([clause, *_among(scope)], asked.subject)
        if not ranked:
            raise Declined("no_speaker")
        top = alone_at_the_top(ranked)
        if top is None:
            raise Declined("tie_at_the_top")
        return "speaker_count", top


def _among(scope: Sequence[str] | None) -> list[dict[str, Any]]:
    """No clause for the whole corpus; an empty scope keeps its clause and finds nothing."""
    return [] if scope is None else [{"terms": {"file_uuid": list(scope)}}]
