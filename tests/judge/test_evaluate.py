"""Rows of the metrics document: order, denominators, counts apart, and values per query."""

from __future__ import annotations

import pytest

from lossmap import canon
from lossmap.judge import evaluate
from lossmap.judge.measures import NAMES
from lossmap.transcript import Query

CARD = {"key": "qmsum", "tier": "A", "judged_by": "human", "version": "x"}
QUERIES = [
    Query("qmsum:m1:000", "a", "summarize", "Product"),
    Query("qmsum:m1:001", "b", "lookup", "Product"),
    Query("qmsum:m2:000", "c", "lookup", "Product"),
    Query("qmsum:m2:001", "never judged", "multi_file", "Product"),
]
GROUPS = {query.query_id: query.query_id.split(":")[1] for query in QUERIES}
QRELS = {query.query_id: {"f_0": 2, "f_1": 1} for query in QUERIES[:3]}
RUN = {"qmsum:m1:000": [("f_1", 0.5), ("f_0", 0.5)], "qmsum:m1:001": []}


def test_rows_by_class_in_order_and_all_last() -> None:
    rows = evaluate.evaluate(CARD, QUERIES, QRELS, RUN, GROUPS).rows
    assert [(row["query_class"], row["queries"], row["meetings"]) for row in rows] == [
        ("lookup", 2, 2),
        ("summarize", 1, 1),
        ("all", 3, 2),
    ]
    assert [(row["unanswered"], row["empty"]) for row in rows] == [(1, 1), (0, 0), (1, 1)]
    assert {(row["corpus"], row["tier"], row["judged_by"], row["scored_on"]) for row in rows} == {
        ("qmsum", "A", "human", "ranking")
    }
    assert rows[1]["metrics"] == dict.fromkeys(NAMES, 1.0), "the tie goes to chunk 0, the grade 2"
    assert rows[2]["metrics"]["nDCG@10"] == pytest.approx(1 / 3)
    assert rows[2]["ceilings"] == {"R@5": 1.0, "R@10": 1.0, "R@20": 1.0}
    assert set(rows[0]["intervals"]["RR"]) == {"meetings", "queries"}
    canon.dumps(rows)


def test_a_given_order_is_kept_on_request() -> None:
    rows = evaluate.evaluate(CARD, QUERIES, QRELS, RUN, GROUPS, preserve_order=True).rows
    assert rows[1]["metrics"]["nDCG@5"] < 1


def test_a_corpus_without_meetings_resamples_queries() -> None:
    row = evaluate.evaluate(CARD, QUERIES, QRELS, RUN, None).rows[-1]
    assert row["meetings"] == row["queries"] == 3
    assert row["intervals"]["RR"]["meetings"] == row["intervals"]["RR"]["queries"]


def test_values_per_query_keep_full_precision_and_are_sorted() -> None:
    scored = evaluate.evaluate(CARD, QUERIES, QRELS, {"qmsum:m1:000": [("f_2", 1.0), ("f_1", 0.5)]}, GROUPS).per_query
    rows = list(evaluate.per_query_rows("bm25", scored))
    assert rows == sorted(rows) and len(rows) == 3 * len(NAMES)
    assert ("bm25", "qmsum:m1:000", "nDCG@10", repr(scored.column("nDCG@10")[0].item())) in rows


def test_hashes_follow_the_judgements_alone() -> None:
    same = dict(reversed(QRELS.items()))
    assert evaluate.hashes(QRELS) == evaluate.hashes(same)
    other = {**QRELS, "qmsum:m1:000": {"f_0": 1}}
    assert evaluate.hashes(other)["query_ids"] == evaluate.hashes(QRELS)["query_ids"]
    assert evaluate.hashes(other)["qrels"] != evaluate.hashes(QRELS)["qrels"]
