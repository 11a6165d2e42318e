"""Treatment minus control over one chunk plane: each delta beside its band, what of a header is the graph, the gate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import rebuilt

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.judge.measures import NAMES
from lossmap.layout import Layout
from lossmap.studies import stage3

CLASSES = {
    "real": {f"real:m{i}:000": "lookup" for i in range(4)},
    "made": {f"made:m{i}:000": "multi_file" if i % 2 else "lookup" for i in range(4)},
    "made.again": {f"made.again:m{i}:000": "lookup" for i in range(4)},
}
CHAPTER = {
    "corpora": list(CLASSES),
    "graphs": ["mixed", "headed"],
    "contrasts": [["header", "headed", "mixed"], ["digests", "v6", "headed"], ["v6", "v6", "mixed"]],
}
EXACT_VALUES = {"mixed": 0.2, "headed": 0.3, "v6": 0.3}
GRAPH_VALUES = {"mixed": 0.1, "headed": 0.4}
GATE = {"treatment": "v6", "control": "mixed", "arm": "rrf30-exact", "protected": ["lookup", "verbatim"]}
GATE |= {"up": {"class": "multi_file", "measure": "nDCG@10"}}


def write(at: Layout, index: str, key: str, arm: str, value: Any, **more: Any) -> None:
    values = value if isinstance(value, dict) else dict.fromkeys(CLASSES[key], value)
    folder = at.stage("stage3") / "scored" / index / key / arm
    rebuilt.arm(folder, values, CLASSES[key], more.pop("hash", index), **more)


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    indexes = {name: {"documents": ["real", "made"], "scored": list(CLASSES)} for name in EXACT_VALUES}
    made = rebuilt.root(tmp_path, monkeypatch, indexes, "stage3", CHAPTER)
    canon.write_json(tmp_path / "workflow/config/gates.yaml", {stage3.GATE: GATE})
    for key, classes in CLASSES.items():
        rebuilt.corpus(made, key, classes, of="made" if key == "made.again" else None)
        for index, value in EXACT_VALUES.items():
            for arm in rebuilt.EXACT:
                write(made, index, key, arm, value)
            for arm in rebuilt.GRAPH if index in GRAPH_VALUES else ():
                write(made, index, key, arm, GRAPH_VALUES[index])
    of_row = {"corpus": "real", "query_class": "all", "bands": dict.fromkeys(NAMES, 0.0)}
    order = [{**of_row, "order": o, "arm": "rrf30-exact", "band": b} for o, b in (("start", 0.9), ("total", 0.0))]
    canon.write_json(made.stage("stability") / "order.json", {"bands": order})
    canon.write_json(made.stage("stability") / "graph.json", {"band": [{**of_row, "arm": "dense-hnsw", "band": 0.02}]})
    return made


def drawn(at: Layout) -> dict[tuple[str, str], dict[str, Any]]:
    return {(c["name"], c["arm"]): c for c in stage3.contrasts(at, "stage3")["contrasts"]}


def test_a_contrast_is_drawn_for_the_arms_that_both_indexes_have(at: Layout) -> None:
    found = drawn(at)
    assert {arm for name, arm in found if name == "header"} == {*rebuilt.EXACT, *rebuilt.GRAPH}
    assert {arm for name, arm in found if name == "digests"} == set(rebuilt.EXACT)
    head = found["v6", "bm25"]
    assert (head["treatment"], head["control"]) == ("v6", "mixed")
    assert [(r["corpus"], r["query_class"]) for r in head["rows"]] == [
        ("real", "lookup"), ("real", "all"), ("made", "lookup"), ("made", "multi_file"), ("made", "all"),
        ("made.again", "lookup"), ("made.again", "all"),
    ]  # fmt: skip
    assert all(r["deltas"]["RR"] == pytest.approx(0.1) for r in head["rows"])


def test_identical_is_every_value_of_every_query_and_not_an_equal_mean(at: Layout) -> None:
    assert all(r["identical"] for r in drawn(at)["digests", "bm25"]["rows"])
    assert not any(r["identical"] for r in drawn(at)["v6", "bm25"]["rows"])
    swapped = dict.fromkeys(CLASSES["made"], 0.3) | {"made:m1:000": 0.2, "made:m3:000": 0.4}
    write(at, "v6", "made", "bm25", swapped)
    rows = {(r["corpus"], r["query_class"]): r for r in drawn(at)["digests", "bm25"]["rows"]}
    assert rows["made", "multi_file"]["deltas"]["RR"] == pytest.approx(0.0)
    said = {where: row["identical"] for where, row in rows.items() if where[0] == "made"}
    assert said == {("made", "lookup"): True, ("made", "multi_file"): False, ("made", "all"): False}
    assert rows["real", "all"]["identical"]


def test_each_delta_stands_beside_the_band_of_its_arm(at: Layout) -> None:
    found = drawn(at)
    exact, graph = found["header", "rrf30-exact"]["rows"][0], found["header", "dense-hnsw"]["rows"][0]
    assert (exact["band"], exact["band_from"]["source"]) == (0.0, "order")
    assert (graph["band"], graph["band_from"]) == (
        0.02, {"source": "graph", "corpus": "real", "query_class": "all"},
    )  # fmt: skip


def test_other_judgements_are_no_contrast_of_one_chunk_plane(at: Layout) -> None:
    write(at, "v6", "made", "bm25", 0.3, qrels="other")
    with pytest.raises(LossmapError, match="qrels"):
        stage3.contrasts(at, "stage3")


def test_what_of_the_header_is_the_graph(at: Layout) -> None:
    """Over the exact leg the header adds 0.1, over the graph 0.3."""
    rows = stage3.contrasts(at, "stage3")["ann_share"]
    assert {(r["name"], r["arm"], r["exact_arm"]) for r in rows} == {
        ("header", "dense-hnsw", "dense-exact"), ("header", "rrf30-hnsw", "rrf30-exact"),
    }  # fmt: skip
    assert {r["corpus"] for r in rows} == set(CLASSES) and len(rows) == 2 * 7
    for row in rows:
        assert [row[name] for name in ("exact", "hnsw", "difference")] == pytest.approx([0.1, 0.3, 0.2])


def test_the_gate_is_decided_by_the_own_words_of_each_corpus(at: Layout) -> None:
    write(at, "v6", "made.again", "rrf30-exact", 0.0)
    found = stage3.contrasts(at, "stage3")["gate"]
    assert found["corpora"] == ["made", "real"] and found["name"] == stage3.GATE
    assert found["strict"]["accepted"] and found["with_intervals"]["accepted"]
    beside = [r for r in found["rows"] if not r["counted"]]
    assert {r["corpus"] for r in beside} == {"made.again"} and not any(r["strict"] for r in beside)
    write(at, "v6", "real", "rrf30-exact", 0.1)
    found = stage3.contrasts(at, "stage3")["gate"]
    assert found["strict"] == {"up": True, "protected": False, "accepted": False} == found["with_intervals"]


def test_a_gate_over_a_contrast_that_is_not_drawn_is_refused(at: Layout) -> None:
    canon.write_json(at.root / "workflow/config/gates.yaml", {stage3.GATE: {**GATE, "arm": "rrf30-hnsw"}})
    with pytest.raises(LossmapError, match="does not draw") as refused:
        stage3.contrasts(at, "stage3")
    assert refused.value.exit_code == 2


def test_scores_are_of_every_index_corpus_and_arm(at: Layout) -> None:
    rows = stage3.scored_rows(at, "stage3")["rows"]
    assert {(r["bench"], r["arm"]) for r in rows if r["arm"] in rebuilt.GRAPH} == {
        (f"{index}/{key}", arm) for index in GRAPH_VALUES for key in CLASSES for arm in rebuilt.GRAPH
    }  # fmt: skip
    assert {r["bench"] for r in rows if r["arm"] == "bm25"} == {f"{i}/{key}" for i in EXACT_VALUES for key in CLASSES}
