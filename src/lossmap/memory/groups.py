"""Groups and questions of normalised corpora: which rows are stored as one corpus, and which of them answer a query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lossmap import transcript
from lossmap.corpora.readers.collection import ALL
from lossmap.errors import LossmapError
from lossmap.layout import Layout
from lossmap.transcript import GoldSpan, Query


@dataclass(frozen=True)
class Group:
    """One stored corpus: its lines in storing order.

    ``keys`` are unique but for a corpus of LMEB that repeats ids; there the store keeps the first line of an id.
    ``texts``: (title + " " + text).strip() of a document, the words alone of a turn.
    """

    name: str
    keys: tuple[str, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Question:
    """``gold``: the keys of a grade above 0, in ``group``. ``scene``: a key of Task.candidates; None: the whole group.
    ``cluster``: the meeting of a meeting corpus, else the query as its corpus names it."""

    query_id: str
    text: str
    subtask: str
    group: str
    gold: frozenset[str]
    scene: str | None
    cluster: str


@dataclass
class Content:
    """A task under construction."""

    groups: list[Group] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    candidates: dict[str, frozenset[str]] = field(default_factory=dict)
    reason: str | None = None


@dataclass(frozen=True)
class _Line:
    """One row to store, and where it belongs."""

    key: str
    text: str
    domain: str
    meeting: str


@dataclass(frozen=True)
class _Asked:
    """A query of a corpus with the keys of its gold and the meetings that they are of."""

    query: Query
    gold: frozenset[str]
    meetings: tuple[str, ...]


def _lines(at: Layout, corpus: str, unit: str) -> list[_Line]:
    """Rows in storing order: by meeting, then by turn; blank ones are not stored."""
    lines = []
    for meeting in transcript.read_meetings(at.corpus(corpus)):
        name = meeting.meeting_id
        if unit == "turn":
            rows = [(f"{name}/{turn.index}", turn.text.strip()) for turn in meeting.turns]
        else:
            rows = [(name, f"{meeting.title} {' '.join(turn.text for turn in meeting.turns)}".strip())]
        lines += [_Line(key, text, meeting.domain, name) for key, text in rows if text]
    return lines


def _asked(at: Layout, corpus: str, lines: Sequence[_Line], given: Mapping[str, Any]) -> list[_Asked]:
    """The queries of one corpus by id; without those that no stored row answers, as in spec/replay 5.1."""
    stored = {line.key for line in lines}
    gold: dict[str, list[GoldSpan]] = {}
    for span in transcript.read_gold(at.corpus(corpus)):
        if span.grade is None or span.grade > 0:
            gold.setdefault(span.query_id, []).append(span)
    found = []
    for query in transcript.read_queries(at.corpus(corpus)):
        spans = gold.get(query.query_id, [])
        answers = frozenset(key for span in spans for key in _keys_of(span, given) if key in stored)
        if answers and query.query_class in given.get("classes", [query.query_class]):
            found.append(_Asked(query, answers, tuple(sorted({span.meeting_id for span in spans}))))
    return found


def _keys_of(span: GoldSpan, given: Mapping[str, Any]) -> list[str]:
    if given.get("unit") == "turn":
        return [f"{span.meeting_id}/{turn}" for turn in range(span.first, span.last + 1)]
    return [span.meeting_id]


def of_corpora(at: Layout, given: Mapping[str, Any]) -> Content:
    """The groups and questions of normalised corpora, each set of queries over the documents that it points into."""
    content, documents = Content(), given["documents"]
    for corpus in documents:
        part = [corpus.partition(".")[2] or corpus] if len(documents) > 1 else []
        lines = _lines(at, corpus, given.get("unit", "document"))
        asking = [key for key in given["queries"] if corpus == _documents_of(at, key, documents)]
        asked = {key: _asked(at, key, lines, given) for key in asking}
        if "rows" in given:
            _cut(content, lines, [one for some in asked.values() for one in some], given)
            continue
        by_group = given.get("group") == "domain"
        group_of = {line.key: _label(*part, line.domain if by_group else ALL) for line in lines}
        content.groups += _groups(lines, group_of)
        for key, some in asked.items():
            sets = [key.partition(".")[2]] if len(asking) > 1 else []
            for one in some:
                subtask = _label(*part, one.query.domain, *sets)
                content.questions.append(_question(one, subtask, group_of, given))
        if given.get("candidates") == "meeting":
            content.candidates |= _meetings(lines)
    content.questions = clustered(content.questions, given.get("clusters", "query"))
    return content


def clustered(questions: Sequence[Question], rule: str) -> list[Question]:
    """Questions under their clusters: ``query`` as they are; ``gold``: those that share a relevant document, however
    indirectly, are one; ``prefix``: likewise, of documents whose ids begin alike (a page, an article) before a dash.

    What shares an answer is no independent evidence, and resamples and folds take it whole.
    """
    if rule == "query":
        return list(questions)
    homes = [[key.partition("-")[0] if rule == "prefix" else key for key in sorted(q.gold)] for q in questions]
    root: dict[str, str] = {}

    def find(name: str) -> str:
        while root.setdefault(name, name) != name:
            name = root[name]
        return name

    for first, *others in homes:
        for other in others:
            low, high = sorted((find(first), find(other)))
            root[high] = low
    return [replace(q, cluster=find(some[0])) for q, some in zip(questions, homes, strict=True)]


def _documents_of(at: Layout, key: str, documents: Sequence[str]) -> str:
    """The corpus among ``documents`` that the gold of ``key`` points into.

    The sets of some corpora (ReMe) hold their documents once more each: with one corpus to choose from, it is that.
    """
    named = next((name for name in (key, transcript.owner(at.corpus(key))) if name in documents), None)
    return named or documents[0]


def _label(*parts: str) -> str:
    return "/".join(part for part in parts if part != ALL) or ALL


def _groups(lines: Iterable[_Line], group_of: Mapping[str, str]) -> list[Group]:
    rows: dict[str, list[_Line]] = {}
    for line in lines:
        rows.setdefault(group_of[line.key], []).append(line)
    return [Group(name, tuple(r.key for r in some), tuple(r.text for r in some)) for name, some in rows.items()]


def _question(one: _Asked, subtask: str, group_of: Mapping[str, str], given: Mapping[str, Any]) -> Question:
    """Raises LossmapError where the gold lies in several groups, or in several meetings of which one is to be asked."""
    groups = sorted({group_of[key] for key in one.gold})
    alone = given.get("candidates") == "meeting"
    if len(groups) > 1 or (alone and len(one.meetings) > 1):
        raise LossmapError(
            "the gold of a query lies in several corpora or meetings",
            where=one.query.query_id,
            observed=", ".join(groups if len(groups) > 1 else one.meetings),
            expected="one",
            next_command="group: all, or candidates: null, in the stanza of tasks.yaml",
        )
    cluster = one.meetings[0] if given.get("unit") == "turn" else one.query.query_id
    scene = one.meetings[0] if alone else None
    return Question(one.query.query_id, one.query.text, subtask, groups[0], one.gold, scene, cluster)


def _meetings(lines: Iterable[_Line]) -> dict[str, frozenset[str]]:
    found: dict[str, list[str]] = {}
    for line in lines:
        found.setdefault(line.meeting, []).append(line.key)
    return {meeting: frozenset(some) for meeting, some in found.items()}


def pool(order: Sequence[str], gold: Iterable[frozenset[str]], size: int) -> frozenset[str]:
    """``size`` keys of ``order``: the gold of the first queries that fit whole, then what follows those rows.

    The neighbours come one place after each gold row, then two places after each, until the pool is full; so it holds
    what a query is easily confused with. Raises ValueError where ``order`` is shorter than ``size``.
    """
    if len(order) < size:
        raise ValueError(f"{len(order)} rows do not fill a pool of {size}")
    chosen: dict[str, None] = {}
    for answers in gold:
        if len(chosen.keys() | answers) > size:
            break
        chosen |= dict.fromkeys(sorted(answers))
    place = {key: number for number, key in enumerate(order)}
    seeds = [place[key] for key in chosen] or [0]
    for ahead in range(len(order)):
        for seed in seeds:
            if len(chosen) < size:
                chosen[order[(seed + ahead) % len(order)]] = None
    return frozenset(chosen)


def _cut(content: Content, lines: Sequence[_Line], asked: Sequence[_Asked], given: Mapping[str, Any]) -> None:
    """A group per size of ``rows``, with the queries whose gold it holds whole; a size that is too large is named."""
    order = [line.key for line in lines]
    large = [size for size in given["rows"] if size > len(order)]
    if large:
        content.reason = f"its corpus has {len(order)} rows here: no pool of {', '.join(map(str, large))}"
    for size in given["rows"]:
        if size in large:
            continue
        held, name = pool(order, (one.gold for one in asked), size), f"r{size}"
        group_of = {line.key: name for line in lines if line.key in held}
        content.groups += _groups([line for line in lines if line.key in held], group_of)
        for one in asked:
            if one.gold <= held:
                question = _question(one, name, group_of, given)
                content.questions.append(replace(question, query_id=f"{name}:{question.query_id}"))
