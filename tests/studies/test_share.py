"""What of an effect is the graph: the difference of two differences, query by query."""

from __future__ import annotations

from pathlib import Path

import pytest
import rebuilt

from lossmap.errors import LossmapError
from lossmap.studies import share

CLASSES = {f"real:m{i % 4}:{i:03d}": "lookup" if i % 2 else "summarize" for i in range(16)}


def write(folder: Path, name: str, value: float, index: str = "i", qrels: str = "q") -> Path:
    return rebuilt.arm(folder / index / name, dict.fromkeys(CLASSES, value), CLASSES, index, qrels)


def test_the_difference_is_the_effect_over_the_graph_less_the_one_over_the_exact_leg(tmp_path: Path) -> None:
    exact = write(tmp_path, "rrf", 0.5), write(tmp_path, "dense", 0.4)
    graph = write(tmp_path, "rrf-hnsw", 0.3), write(tmp_path, "dense-hnsw", 0.05)
    rows = share.rows(exact, graph, CLASSES)
    assert [(r["query_class"], r["queries"]) for r in rows] == [("lookup", 8), ("summarize", 8), ("all", 16)]
    for r in rows:
        assert (r["exact"], r["hnsw"], r["difference"]) == pytest.approx((0.1, 0.25, 0.15))
        assert r["intervals"]["difference"]["meetings"] == pytest.approx([0.15, 0.15])
        assert (r["corpus"], r["tier"], r["judged_by"], r["measure"]) == ("real", "A", "human", "nDCG@10")


def test_the_interval_is_of_paired_queries(tmp_path: Path) -> None:
    """Queries that move both effects alike leave no doubt of their difference."""
    values = {q: i / 16 for i, q in enumerate(CLASSES)}
    zero = dict.fromkeys(CLASSES, 0.0)
    exact = rebuilt.arm(tmp_path / "a", values, CLASSES), rebuilt.arm(tmp_path / "b", zero, CLASSES)
    graph = rebuilt.arm(tmp_path / "c", values, CLASSES), rebuilt.arm(tmp_path / "d", zero, CLASSES)
    row = share.rows(exact, graph, CLASSES)[-1]
    low, high = row["intervals"]["hnsw"]["meetings"]
    assert low < high and row["intervals"]["difference"] == {"meetings": [0.0, 0.0], "queries": [0.0, 0.0]}


def test_pairs_over_other_indexes_are_compared_and_over_other_judgements_refused(tmp_path: Path) -> None:
    exact = write(tmp_path, "rrf", 0.5), write(tmp_path, "dense", 0.4)
    rebuilt = write(tmp_path, "rrf-hnsw", 0.3, "j"), write(tmp_path, "dense-hnsw", 0.1, "j")
    assert share.rows(exact, rebuilt, CLASSES)[-1]["difference"] == pytest.approx(0.1)
    judged = write(tmp_path, "rrf-hnsw", 0.3, "k", "z"), write(tmp_path, "dense-hnsw", 0.1, "k", "z")
    with pytest.raises(LossmapError, match="differ in qrels") as refused:
        share.rows(exact, judged, CLASSES)
    assert refused.value.exit_code == 2
