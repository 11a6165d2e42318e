"""Answers to questions that count and list: by aggregation and SQL over a settled index, never by a model.

The reference answerer is the instrument's control and no part of a product: it shows that the gold can be reached
without a model, and what a route would have to beat. What it reads must be whole: it counts a part as surely as the
whole (studies.answering refuses an index that is not settled).

No aggregation rides on a hybrid body: the engine's score processor breaks on one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import psycopg
from opensearchpy import OpenSearch
from psycopg import sql

from lossmap.engine import opensearch, postgres
from lossmap.errors import LossmapError
from lossmap.search import intent
from lossmap.search.bodies import CHUNK_PLANE
from lossmap.search.intent import Intent
from lossmap.search.shapes import month_range

BUCKETS = 10_000
MECHANISM = {
    "R3": "count of files: match_phrase(content.exact), terms(file_uuid)",
    "R4": "the files of R3 as meeting ids",
    "R5": "sum of regexp_count over segment.content in PostgreSQL; chunks overlap and would count twice",
    "R6": "titles of match_phrase(team) and match_phrase(kind) that are exactly the two; terms(speakers) x "
    "terms(file_uuid); a tie at the top is declined",
    "R7": "count of the files of R3 whose file.recorded_date lies in the half-open month; undated files are out",
}
MONTH = """
SELECT file_uuid::text FROM {}.file WHERE corpus = %s AND recorded_date >= %s AND recorded_date < %s
"""
# The prefilter is cheap and lets more through than the expression, never less.
EVENTS = """
SELECT coalesce(sum(regexp_count(segment.content, %s, 1, 'i')), 0)
FROM {0}.segment AS segment JOIN {0}.file AS file USING (file_uuid)
WHERE file.corpus = %s AND segment.content ILIKE %s
"""
MEETINGS = "SELECT file_uuid::text, meeting_id FROM {}.file WHERE corpus = %s AND file_uuid = ANY(%s::uuid[])"


@dataclass(frozen=True)
class Answer:
    """``kind``: integer, file_set (sorted meeting ids) or speaker_count ({speaker, sessions}); ``rule`` as parsed."""

    kind: str
    value: Any
    rule: str


class Answerer(Protocol):
    """Somebody who answers a question or declines it (None), and can say how.

    ``note``: what a row of details says, beside the answer, of how a question that was asked was read; often nothing.
    ``describe``: the card, taken once everything was asked.
    """

    def answer(self, text: str) -> Answer | None: ...

    def note(self, text: str) -> dict[str, Any]: ...

    def describe(self) -> dict[str, Any]: ...


class Nobody:
    """Declines every question: the floor without which a score of one would be a tautology."""

    def answer(self, text: str) -> Answer | None:
        return None

    def note(self, text: str) -> dict[str, Any]:
        return {}

    def describe(self) -> dict[str, Any]:
        return {
            "answerer": "none",
            "summary": "declines every question",
            "is_production_path": False,
            "llm_required": False,
        }


class Counting:
    """What answerers count with; restricted to the chunks and rows of one ``corpus``, and to files where given.

    ``buckets``: the most files or speakers of one answer; more raise rather than return a count that looks right.
    """

    def __init__(
        self, client: OpenSearch, index: str, conn: psycopg.Connection, schema: str, corpus: str, buckets: int = BUCKETS
    ) -> None:
        self.client, self.index, self.conn = client, index, conn
        self.schema, self.corpus, self.buckets = sql.Identifier(schema), corpus, buckets

    def files(self, clauses: Sequence[dict[str, Any]], asked: str) -> list[str]:
        """Uuids, sorted, of the files with a chunk that meets every clause; ``asked`` names them in an error."""
        found = self._aggregate(clauses, {"files": self._terms("file_uuid")})
        return [bucket["key"] for bucket in self._whole(found["files"], asked)]

    def phrase_files(self, phrase: str) -> list[str]:
        """Uuids, sorted, of the files with a chunk that holds ``phrase``, word for word and in any case.

        A phrase that a chunk boundary cuts is found in the overlap where one was carried, and not otherwise.
        """
        return self.files([exact_phrase(phrase)], phrase)

    def sessions(self, clauses: Sequence[dict[str, Any]], asked: str) -> list[tuple[str, int]]:
        """Speakers and their numbers of files over the chunks that meet ``clauses``, most first, then by name."""
        per_speaker = {"speakers": {**self._terms("speakers"), "aggs": {"files": self._terms("file_uuid")}}}
        found = self._aggregate(clauses, per_speaker)["speakers"]
        counts = {b["key"]: len(self._whole(b["files"], b["key"])) for b in self._whole(found, asked)}
        return sorted(counts.items(), key=lambda item: (-item[1], item[0]))

    def meetings(self, files: Sequence[str]) -> list[str]:
        """Meeting ids, sorted, of file uuids; raises with exit 3 where the database lacks one."""
        statement = sql.SQL(MEETINGS).format(self.schema)
        rows = self.conn.execute(statement, (self.corpus, list(files))).fetchall()
        if len(rows) != len(files):
            raise LossmapError(
                "the index holds files that the database does not",
                where=self.index,
                observed=f"{len(rows)} of {len(files)} files of one answer are rows of {self.schema.as_string()}.file",
                expected="every file",
                next_command="./run lossmap inject, then ./run lossmap index --force",
                exit_code=3,
            )
        return sorted(row[1] for row in rows)

    def card(self) -> dict[str, Any]:
        """What every answerer that counts says of its counting."""
        return {
            "llm_required": False,
            "filters": {"chunk_plane": CHUNK_PLANE, "corpus": {"term": {"corpus": self.corpus}}},
            "hybrid_aggregations": False,
            "buckets": self.buckets,
            "opensearch": opensearch.version(self.client),
            "postgres": postgres.version(self.conn),
        }

    def _terms(self, field: str) -> dict[str, Any]:
        return {"terms": {"field": field, "size": self.buckets, "order": {"_key": "asc"}}}

    def _aggregate(self, clauses: Sequence[dict[str, Any]], aggregations: dict[str, Any]) -> Mapping[str, Any]:
        """Aggregations over chunks of the corpus that meet ``clauses``; digests repeat what chunks say."""
        scope = [CHUNK_PLANE, {"term": {"corpus": self.corpus}}, *clauses]
        body = {"size": 0, "track_total_hits": False, "query": {"bool": {"filter": scope}}, "aggs": aggregations}
        return self.client.search(index=self.index, body=body)["aggregations"]

    def _whole(self, terms: Mapping[str, Any], asked: str) -> list[Mapping[str, Any]]:
        """All buckets; raises where the engine kept some back."""
        if terms["sum_other_doc_count"]:
            raise LossmapError(
                "an aggregation was cut off: its count would look right and be too low",
                where=f"{self.index}: {asked}",
                observed=f"{len(terms['buckets'])} buckets, {terms['sum_other_doc_count']} documents in others",
                expected=f"at most {self.buckets} buckets",
                next_command="raise buckets of search.aggregate.Counting",
            )
        return terms["buckets"]


class Reference(Counting):
    """Rules over the question, then the engine or the database."""

    def answer(self, text: str) -> Answer | None:
        """The answer to a question that a frame fits, None otherwise; raises where a result is cut off."""
        asked = intent.parse(text)
        found = asked and self._rules[asked.rule](asked)
        return Answer(*found, asked.rule) if asked and found else None

    def note(self, text: str) -> dict[str, Any]:
        return {}

    def describe(self) -> dict[str, Any]:
        """The answerer's card for a results document."""
        return {
            "answerer": "reference",
            "summary": "a rules parser over the exact question frames, then aggregations and SQL",
            "is_production_path": False,
            "mechanism": MECHANISM,
            "parser": intent.card(),
            **self.card(),
        }

    @property
    def _rules(self) -> dict[str, Callable[[Intent], tuple[str, Any] | None]]:
        return {
            "R3": lambda asked: ("integer", len(self.phrase_files(asked.subject))),
            "R4": lambda asked: ("file_set", self.meetings(self.phrase_files(asked.subject))),
            "R5": lambda asked: ("integer", self.events(asked.subject)),
            "R6": self._most_sessions,
            "R7": self._in_month,
        }

    def events(self, phrase: str) -> int:
        """How often ``phrase`` is said, repeats within a segment included."""
        statement = sql.SQL(EVENTS).format(self.schema)
        row = self.conn.execute(statement, (expression(phrase), self.corpus, like(phrase))).fetchone()
        return int(row[0])  # type: ignore[index]

    def attendance(self, team: str, kind: str) -> list[tuple[str, int]]:
        """Speakers and their numbers of sessions of one team's series, most first, then by name."""
        titles = self._titles(team, kind)
        return self.sessions([{"terms": {"title.keyword": titles}}], f"{team}, {kind}") if titles else []

    def _most_sessions(self, asked: Intent) -> tuple[str, Any] | None:
        top = alone_at_the_top(self.attendance(asked.team, asked.kind))
        return top and ("speaker_count", top)

    def _in_month(self, asked: Intent) -> tuple[str, Any]:
        month = (self.corpus, *month_range(*asked.month))
        rows = self.conn.execute(sql.SQL(MONTH).format(self.schema), month).fetchall()
        return "integer", len({row[0] for row in rows}.intersection(self.phrase_files(asked.subject)))

    def _titles(self, team: str, kind: str) -> list[str]:
        """Titles of exactly this team and kind, with or without a number after them.

        Phrases alone would take "the Harbour team" for a part of "the Harbour team two", and one kind for a part of a
        longer one.
        """
        both = [{"match_phrase": {"title": team}}, {"match_phrase": {"title": kind}}]
        found = self._aggregate(both, {"titles": self._terms("title.keyword")})["titles"]
        wanted = title_words(f"{team} {kind}")
        return [b["key"] for b in self._whole(found, f"{team}, {kind}") if wanted in _with_and_without_number(b["key"])]


def alone_at_the_top(ranked: Sequence[tuple[str, int]]) -> dict[str, Any] | None:
    """The first of ``ranked`` as {speaker, sessions}; None where nobody stands there, or more than one."""
    if not ranked or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
        return None
    return {"speaker": ranked[0][0], "sessions": ranked[0][1]}


def exact_phrase(phrase: str) -> dict[str, Any]:
    return {"match_phrase": {"content.exact": phrase}}


def expression(phrase: str) -> str:
    """``phrase`` as a PostgreSQL regular expression: literal words, any white space between them, whole at its ends."""
    body = r"\s+".join(re.sub(r"([^\w])", r"\\\1", word) for word in phrase.split())
    head, tail = (r"\m" if re.match(r"\w", phrase) else ""), (r"\M" if re.search(r"\w$", phrase) else "")
    return f"{head}{body}{tail}"


def like(phrase: str) -> str:
    """An ILIKE pattern that every match of ``expression`` meets; % _ and the escape itself are literal."""
    return "%" + "%".join(re.sub(r"([\\%_])", r"\\\1", word) for word in phrase.split()) + "%"


def title_words(title: str) -> list[str]:
    words = re.findall(r"\w+", title.casefold())
    return words[1:] if words[:1] == ["the"] else words


def _with_and_without_number(title: str) -> tuple[list[str], ...]:
    words = title_words(title)
    return (words, words[:-1]) if words and words[-1].isdecimal() else (words,)
