"""Paired deltas from two arm folders, and every reason to refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.judge import evaluate
from lossmap.judge.measures import NAMES
from lossmap.studies import compare
from lossmap.transcript import Query

CARD = {"key": "qmsum", "tier": "A", "judged_by": "human"}
QUERIES = [
    Query(f"qmsum:m{place % 3}:{place:03d}", "x", "summarize" if place % 4 == 0 else "lookup", "Product")
    for place in range(12)
]
CLASSES = {query.query_id: query.query_class for query in QUERIES}
QRELS = {query.query_id: {"f_0": 1} for query in QUERIES}
HASHES = {"query_ids": "a", "qrels": "b", "index": "c", "engine": "d"}


def write_arm(folder: Path, gold_rank: int, hashes: dict[str, str] = HASHES) -> Path:
    ranking = [(f"f_{place}", -float(place)) for place in range(1, 5)]
    ranking.insert(gold_rank - 1, ("f_0", 0.0))
    run = {query.query_id: ranking for query in QUERIES}
    found = evaluate.evaluate(CARD, QUERIES, QRELS, run, CLASSES, preserve_order=True)
    document: dict[str, Any] = {"arm": {"id": folder.name}, "hashes": hashes, "rows": found.rows}
    canon.write_json(folder / "metrics.json", document)
    rows = evaluate.per_query_rows(folder.name, found.per_query)
    canon.write_csv_gz(folder / "per_query.csv.gz", evaluate.PER_QUERY_HEADER, rows)
    return folder


def rewrite(folder: Path, change: Any) -> None:
    rows = change(list(canon.read_csv_gz(folder / "per_query.csv.gz")))
    canon.write_csv_gz(folder / "per_query.csv.gz", evaluate.PER_QUERY_HEADER, rows)


def test_deltas_are_arm_minus_control_by_class(tmp_path: Path) -> None:
    table = compare.compare(write_arm(tmp_path / "arm", 1), write_arm(tmp_path / "control", 3), CLASSES)
    assert [(row["query_class"], row["queries"], row["meetings"]) for row in table["rows"]] == [
        ("lookup", 9, 3),
        ("summarize", 3, 3),
        ("all", 12, 3),
    ]
    for row in table["rows"]:
        assert row["deltas"]["RR"] == pytest.approx(2 / 3) and row["deltas"]["nDCG@10"] == 0.5
        assert row["intervals"]["nDCG@10"] == {"meetings": [0.5, 0.5], "queries": [0.5, 0.5]}
        assert (row["corpus"], row["tier"], row["judged_by"]) == ("qmsum", "A", "human")
    text = compare.markdown(table, ("nDCG@10", "RR"))
    assert "| qmsum | all | 12 | +0.5000 [+0.5000, +0.5000] | +0.6667 [+0.6667, +0.6667] |" in text


@pytest.mark.parametrize("marked", ["arm", "control"])
def test_a_delta_has_the_worse_tier_of_its_two_arms(tmp_path: Path, marked: str) -> None:
    folders = [write_arm(tmp_path / "arm", 1), write_arm(tmp_path / "control", 3)]
    document = canon.read_json(tmp_path / marked / "metrics.json")
    canon.write_json(
        tmp_path / marked / "metrics.json", {**document, "rows": [{**r, "tier": "B"} for r in document["rows"]]}
    )
    assert {row["tier"] for row in compare.compare(*folders, CLASSES)["rows"]} == {"B"}


def test_without_classes_there_is_the_row_all(tmp_path: Path) -> None:
    table = compare.compare(write_arm(tmp_path / "arm", 1), write_arm(tmp_path / "control", 2))
    assert [row["query_class"] for row in table["rows"]] == ["all"]


@pytest.mark.parametrize("name", list(HASHES))
def test_a_differing_hash_is_refused_unless_it_is_the_factor(tmp_path: Path, name: str) -> None:
    arm = write_arm(tmp_path / "arm", 1, {**HASHES, name: "other"})
    control = write_arm(tmp_path / "control", 2)
    with pytest.raises(LossmapError, match=f"differ in {name}") as refused:
        compare.compare(arm, control, factor=[other for other in HASHES if other != name])
    assert refused.value.exit_code == 2
    assert compare.compare(arm, control, factor=[name])["factor"] == [name]


def test_a_missing_hash_is_refused(tmp_path: Path) -> None:
    arm = write_arm(tmp_path / "arm", 1, {name: value for name, value in HASHES.items() if name != "index"})
    with pytest.raises(LossmapError, match="does not carry a hash"):
        compare.compare(arm, write_arm(tmp_path / "control", 2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: [*rows, rows[0]], "two values"),
        (lambda rows: rows[1:], "lack a measure"),
        (lambda rows: rows[len(NAMES) :], "do not cover"),
        (lambda rows: [[n, q.replace("m0:000", "m9:000"), m, v] for n, q, m, v in rows], "same queries"),
    ],
)
def test_partial_and_doubled_values_are_refused(tmp_path: Path, change: Any, message: str) -> None:
    arm, control = write_arm(tmp_path / "arm", 1), write_arm(tmp_path / "control", 2)
    rewrite(arm, change)
    with pytest.raises(LossmapError, match=message):
        compare.compare(arm, control)


def test_a_query_without_a_class_is_refused(tmp_path: Path) -> None:
    arm, control = write_arm(tmp_path / "arm", 1), write_arm(tmp_path / "control", 2)
    with pytest.raises(LossmapError, match="no class"):
        compare.compare(arm, control, {QUERIES[0].query_id: "lookup"})


def test_meetings_come_from_the_middle_of_the_query_id() -> None:
    assert compare.meeting_of("qmsum:Bed002:001") == "qmsum:Bed002"
    assert compare.meeting_of("synthetic:q17") == "synthetic:q17"
