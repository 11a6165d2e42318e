"""One arm against one corpus: the rows of the metrics document and the values per query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.judge import intervals, measures, runs
from lossmap.judge.measures import NAMES, PerQuery
from lossmap.judge.qrels import Qrels
from lossmap.transcript import Query

CLASSES = ("lookup", "verbatim", "multi_file", "summarize", "aggregation", "all")
PER_QUERY_HEADER = ("name", "qid", "measure", "value")


@dataclass(frozen=True)
class Evaluation:
    """``rows`` of the metrics document, the ``run`` that was scored, and unrounded scores ``per_query``."""

    rows: list[dict[str, Any]]
    run: runs.Run
    per_query: PerQuery


def evaluate(
    card: Mapping[str, Any],
    queries: Sequence[Query],
    qrels: Qrels,
    run: Mapping[str, Sequence[tuple[str, float]]],
    groups: Mapping[str, str] | None,
    preserve_order: bool = False,
) -> Evaluation:
    """Normalise and score ``run``; one row per query class that has judged queries, then ``all``.

    ``card`` is corpus.json (key, tier, judged_by); ``groups`` maps a query to its meeting, None without meetings.
    Raises on a query class that CLASSES does not know: its queries would have no row of their own.
    """
    normal = runs.normalise_run(run, preserve_order)
    scored = measures.score(qrels, normal)
    class_of = {query.query_id: query.query_class for query in queries}
    classes = np.array([class_of[query_id] for query_id in scored.query_ids], object)
    if strangers := sorted(set(classes) - set(CLASSES)):
        raise LossmapError("queries of a class without a row", where=card["key"], observed=strangers, expected=CLASSES)
    rows = []
    for name in CLASSES:
        keep = np.ones(len(classes), bool) if name == "all" else classes == name
        if keep.any():
            rows.append(_row(card, name, scored.subset(keep), groups))
    return Evaluation(rows, normal, scored)


def _row(
    card: Mapping[str, Any], query_class: str, scored: PerQuery, groups: Mapping[str, str] | None
) -> dict[str, Any]:
    meetings = None if groups is None else [groups[query_id] for query_id in scored.query_ids]
    estimate = intervals.means_with_intervals(scored.values, meetings)
    return {
        "corpus": card["key"],
        "tier": card["tier"],
        "judged_by": card["judged_by"],
        "query_class": query_class,
        "queries": estimate.query_count,
        "meetings": estimate.meeting_count,
        "unanswered": len(scored.unanswered),
        "empty": len(scored.empty),
        "scored_on": "ranking",
        "metrics": dict(zip(NAMES, estimate.mean.tolist())),
        "intervals": {name: estimate.interval(column) for column, name in enumerate(NAMES)},
        "ceilings": measures.ceilings(scored.judged),
    }


def hashes(qrels: Qrels) -> dict[str, str]:
    """The part of a metrics document's ``hashes`` that the judgements decide."""
    return {"query_ids": canon.digest(sorted(qrels)), "qrels": canon.digest(qrels)}


def per_query_rows(arm: str, scored: PerQuery) -> Iterator[tuple[str, str, str, str]]:
    """Rows of per_query.csv.gz under PER_QUERY_HEADER, sorted, in full precision."""
    for query_id, values in zip(scored.query_ids, scored.values.tolist()):
        for name, value in sorted(zip(NAMES, values)):
            yield arm, query_id, name, repr(value)
