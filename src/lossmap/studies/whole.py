"""Whole meetings as documents: a corpus with one gold meeting a query, BM25 over any of its meetings, and measures.

Markers such as ``{vocalsound}`` are no words and speaker names are no text, so neither is indexed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lossmap import transcript
from lossmap.corpora import selection
from lossmap.errors import LossmapError
from lossmap.judge import intervals
from lossmap.studies import lexical
from lossmap.studies.lexical import Collection, Floats, Places

SCENARIO = "Product"
MARKER = re.compile(r"\{[^{}]*\}")
NAMES = ("R@1", "R@5", "R@10", "nDCG@10", "RR")

Row = dict[str, Any]
Labels = NDArray[np.object_]


@dataclass(frozen=True)
class Material:
    """A corpus of D meetings and Q queries: ``domain`` (D,), ``gold`` (Q,) as places of meetings, query ``texts``."""

    head: dict[str, str]
    collection: Collection
    domain: Labels
    gold: Places
    texts: tuple[str, ...]

    @property
    def every(self) -> Places:
        return np.arange(len(self.domain))

    def about(self, members: Places) -> Places:
        """Queries whose gold meeting is one of ``members``."""
        return np.flatnonzero(np.isin(self.gold, members))

    def meetings(self, asked: Places) -> list[str]:
        return [self.collection.doc_ids[place] for place in self.gold[asked]]

    def found(self, members: Places, asked: Places) -> tuple[Floats, Places]:
        """Scores over an index of ``members`` (ascending), and the column of each query's gold."""
        return lexical.scores(self.collection, members, asked), np.searchsorted(members, self.gold[asked])

    def values(self, members: Places, asked: Places) -> Floats:
        """Measures (len(asked), len(NAMES)) over an index of ``members``, which hold every gold meeting."""
        return measures(lexical.rank(*self.found(members, asked)), len(members))


def load(folder: Path) -> Material:
    """Read a normalised corpus; raises where a query has gold in several meetings."""
    card, meetings = transcript.read_card(folder), transcript.read_meetings(folder)
    golds: dict[str, set[str]] = defaultdict(set)
    for span in transcript.read_gold(folder):
        golds[span.query_id].add(span.meeting_id)
    several = sorted(query_id for query_id, found in golds.items() if len(found) > 1)
    if several:
        raise LossmapError("a query has several gold meetings", where=folder, observed=several[:5], expected="one each")
    texts = {q.query_id: q.text for q in transcript.read_queries(folder) if q.query_id in golds}
    spoken = {m.meeting_id: MARKER.sub(" ", " ".join(turn.text for turn in m.turns)) for m in meetings}
    collection = lexical.read(spoken, texts)
    place = {doc_id: at for at, doc_id in enumerate(collection.doc_ids)}
    domains = {m.meeting_id: m.domain for m in meetings}
    return Material(
        {"corpus": card["key"], "tier": card["tier"], "judged_by": card["judged_by"]},
        collection,
        np.array([domains[doc_id] for doc_id in collection.doc_ids], object),
        np.array([place[min(golds[query_id])] for query_id in collection.query_ids], int),
        tuple(texts[query_id] for query_id in collection.query_ids),
    )


def measures(ranks: Places, documents: int) -> Floats:
    """(Q, len(NAMES)) for the ranks (Q,) of the one relevant document; beyond ``documents`` it was not retrieved."""
    held = np.where(ranks <= documents, ranks, np.inf)
    gain = np.where(held <= 10, 1 / np.log2(1 + held), 0.0)
    return np.column_stack([held <= 1, held <= 5, held <= 10, gain, 1 / held]).astype(float)


def scored(values: Floats, meetings: Sequence[str], names: Sequence[str] = NAMES) -> Row:
    """Mean and both intervals of every column, by name; None for an empty group."""
    if not len(values):
        keys = (f"{name}{tail}" for name in names for tail in ("", "_meetings", "_queries"))
        return {**dict.fromkeys(keys), "queries": 0, "asked_meetings": 0}
    estimate = intervals.means_with_intervals(values, meetings)
    row: Row = {"queries": estimate.query_count, "asked_meetings": estimate.meeting_count}
    for column, name in enumerate(names):
        row[name] = float(estimate.mean[column])
        row.update({f"{name}_{by}": ends for by, ends in estimate.interval(column).items()})
    return row


def mean(values: NDArray[Any]) -> float | None:
    return float(np.mean(values)) if len(values) else None


def groups(material: Material) -> Iterator[tuple[str, Places]]:
    """Every domain with its meetings, then ``all``."""
    for name in sorted(set(material.domain)):
        yield name, np.flatnonzero(material.domain == name)
    yield "all", material.every


def series(material: Material) -> dict[str, list[int]]:
    """Series of the scenario: name without its last letter, the session -> places of its meetings, in that order."""
    found: dict[str, list[int]] = defaultdict(list)
    for place in np.flatnonzero(material.domain == SCENARIO):
        found[selection.series_of(material.collection.doc_ids[place])].append(int(place))
    return dict(found)
