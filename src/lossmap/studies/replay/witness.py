"""Three witnesses that the replay is the pipeline: the dense stage, the live orders, and what a live recall scores.

Each of them computes what it is held against by other code: the dense ranking from the vectors and trec_eval, the live
orders by memory/recall over SQLite.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lossmap.judge import decompose, measures
from lossmap.memory import frozen
from lossmap.memory.frozen import Frozen
from lossmap.memory.recall import Recall, Regime
from lossmap.memory.store import Store
from lossmap.memory.tasks import Group, Question, Task

COMPARED = 100
"""Rows of a live order that must equal the replayed one (spec/replay 5.7)."""
SHOWN = 3
DEEP = 1_000
"""Rows of the dense ranking that trec_eval is handed."""

Rows = Mapping[str, Sequence[int]]
Vectors = Mapping[str, NDArray[np.float32]]


def dense(qrels: Mapping[str, Mapping[str, int]], ranking: Rows, values: NDArray[np.float64]) -> dict[str, Any]:
    """S0 ``values`` (Q,) against trec_eval's nDCG@10 of an independent dense ``ranking`` under the task's ``qrels``."""
    run = {query: [(str(row), 0.0) for row in rows] for query, rows in ranking.items()}
    scored = measures.score(qrels, run).column("nDCG@10")
    apart = np.abs(scored - values)
    return {
        "queries": len(values),
        "mismatches": int((apart > decompose.BAND).sum()),
        "largest_difference": float(apart.max(initial=0.0)),
        "mean": float(scored.mean()),
    }


def by_cosine(
    questions: Sequence[Question], matrix: NDArray[np.float32], asked: NDArray[np.float32], eligible: Mapping[str, Any]
) -> Iterator[tuple[str, list[int]]]:
    """The dense order of the eligible rows of one group, best first, equal cosines in storing order."""
    table = matrix.astype(np.float64)
    for question, vector in zip(questions, asked, strict=True):
        cosine = (table @ vector.astype(np.float64)).astype(np.float32)
        rows = eligible.get(question.scene) if question.scene else None
        rows = np.arange(len(cosine)) if rows is None else rows
        yield question.query_id, rows[np.lexsort((rows, -cosine[rows]))][:DEEP].tolist()


def live(
    task: Task, found: Frozen, stores: Iterator[tuple[Group, Store]], asked: Vectors, thresholds: Mapping[str, float]
) -> dict[str, Any]:
    """Every ``live``-th query of a task run through SQLite: its fused order, its recall, and what that scores."""
    every = int(task.stanza.get("live", 1))
    tops = {stage: frozen.ranking(found, frozen.order(found, stage, depth=COMPARED)) for stage in ("s2", "s3")}
    rows = [
        row
        for group, store in stores
        for row in _of_group(task, group, store, asked, thresholds[group.name], tops, every)
    ]
    apart = [row for row in rows if row["s2"] or row["s3"]]
    recalled = {row["query_id"]: row["recalled"] for row in rows}
    qrels = {query: gold for query, gold in found.qrels().items() if query in recalled}
    kept = np.isin(np.array(found.query_ids), sorted(recalled))
    theirs = decompose.ndcg(qrels, recalled)
    ours = decompose.ndcg(qrels, {query: tops["s3"][query] for query in qrels})
    return {
        "every": every,
        "rows": COMPARED,
        "queries": len(found.query_ids),
        "checked": len(rows),
        "share": decompose.share(len(rows), len(found.query_ids)),
        "s2_mismatches": sum(row["s2"] for row in rows),
        "s3_mismatches": sum(row["s3"] for row in rows),
        "first": [row["query_id"] for row in apart[:SHOWN]],
        "recalls": int(kept.sum()),
        "recall_mean": float(theirs.mean()) if len(theirs) else None,
        "replay_mean": float(ours.mean()) if len(ours) else None,
        "largest_difference": float(np.abs(theirs - ours).max(initial=0.0)),
    }


def _of_group(
    task: Task, group: Group, store: Store, asked: Vectors, threshold: float, tops: Mapping[str, Rows], every: int
) -> Iterator[dict[str, Any]]:
    regime = Regime(strip_punct=bool(task.stanza.get("strip_punct")))
    recall, limit = Recall(store, threshold, regime), len(group.keys)
    mine = [question for question in task.questions[::every] if question.group == group.name]
    for question in mine:
        allowed = task.candidates[question.scene] if question.scene else None
        fused = recall.rrf(question.text, asked[question.query_id], limit)
        answer = recall.deliver(fused, limit)[::-1]  # what do_recall hands out, best last
        orders = [
            list(itertools.islice((hit.rowid - 1 for hit in hits if allowed is None or hit.key in allowed), COMPARED))
            for hits in (fused, answer)
        ]
        yield {
            "query_id": question.query_id,
            "recalled": orders[1],
            "s2": orders[0] != list(tops["s2"][question.query_id]),
            "s3": orders[1] != list(tops["s3"][question.query_id]),
        }
