"""The frozen orders against the live pipeline, over random small corpora: the first hundred rows of every query."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from side_by_side import both

from lossmap.memory import freeze, frozen
from lossmap.memory.frozen import Frozen
from lossmap.memory.recall import Recall, Regime
from lossmap.memory.tasks import Task


def mismatches(found: Frozen, live: Recall, task: Task, queries: np.ndarray, weight: float = 1.0) -> tuple[int, int]:
    """Queries on which S2 and S3 differ from the live orders among the first hundred rows."""
    limit = len(task.groups[0].keys)
    regime = Recall(live.store, live.threshold, Regime(weight=weight))
    s2, s3 = (frozen.ranking(found, frozen.order(found, stage, weight, 100)) for stage in ("s2", "s3"))
    fused = gated = 0
    for question, vector in zip(task.questions, queries, strict=True):
        rows = [hit.rowid - 1 for hit in regime.rrf(question.text, vector, limit)][:100]
        last = [hit.rowid - 1 for hit in reversed(regime.do_recall(question.text, vector, limit))][:100]
        fused += rows != s2[question.query_id]
        gated += last != s3[question.query_id]
    return fused, gated


@pytest.mark.parametrize("keyed", ["rows", "content"])
@pytest.mark.parametrize(
    ("lines", "threshold"),
    [(12, 0.3), (20, 0.9), (31, 0.5), (55, 0.6), (110, 0.2), (300, 0.7), (700, 0.3), (700, 1.4), (700, 3.0)],
)
def test_live_orders_are_s2_and_s3(tmp_path: Path, lines: int, threshold: float, keyed: str) -> None:
    assert mismatches(*both(tmp_path, lines, lines, keyed, threshold)) == (0, 0)


@pytest.mark.parametrize("weight", [0.0, 0.05, 0.1, 0.25, 0.5, 0.75])
def test_live_orders_are_those_of_every_weight(tmp_path: Path, weight: float) -> None:
    assert mismatches(*both(tmp_path, 7, 400, "rows", 0.6), weight=weight) == (0, 0)


def test_another_rank_constant_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = both(tmp_path, 3, 300, "rows", 0.6)
    monkeypatch.setattr(frozen, "K", 10)
    assert mismatches(*given)[0] > 0


def test_another_floor_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freeze, "FLOOR_FACTOR", 0.6)
    fused, gated = mismatches(*both(tmp_path, 3, 300, "rows", 0.9))
    assert fused > 0 and gated > 0


def test_another_order_of_ties_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = both(tmp_path, 3, 300, "rows", 0.6)
    inner = frozen._first

    def by_row(of: Frozen, at: np.ndarray, query: np.ndarray, score: np.ndarray, inserted: np.ndarray, depth: int):  # type: ignore[no-untyped-def]
        return inner(of, at, query, score, of.row[at].astype(np.int64), depth)

    monkeypatch.setattr(frozen, "_first", by_row)
    assert mismatches(*given)[0] > 0
