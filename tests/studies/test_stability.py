"""Builds of one corpus: what moves under the broken order, what stands still under the total one, and the graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import rebuilt

from lossmap import canon
from lossmap.judge.measures import NAMES
from lossmap.layout import Layout
from lossmap.studies import stability

CLASSES = {f"real:m{i % 3}:{i:03d}": "lookup" if i % 2 else "summarize" for i in range(12)}
STARTS, TOTALS = ["start-1", "start-2", "start-3"], ["total-1", "total-2", "total-3"]
GRAPHS = ["main", "bulk", "cured"]
CHAPTER = {"control": "main", "broken": STARTS, "total": TOTALS, "splitter": "marks", "graphs": GRAPHS}
TEXTS = {"f": ["a b", "c"], "g": ["x"]}
MOVED = {"f": ["a", "b c"], "g": ["x"]}


def write(at: Layout, index: str, arm: str, value: float, **more: Any) -> None:
    folder = at.stage("stability") / "scored" / index / arm
    rebuilt.arm(folder, dict.fromkeys(CLASSES, value), CLASSES, more.pop("hash", index), **more)


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    plain = {"documents": ["real"], "scored": ["real"]}
    indexes = {name: plain for name in ("marks", *GRAPHS)}
    indexes |= {name: {**plain, "shuffle": i, "order": "start"} for i, name in enumerate(STARTS, 1)}
    indexes |= {name: {**plain, "shuffle": i} for i, name in enumerate(TOTALS, 1)}
    made = rebuilt.root(tmp_path, monkeypatch, indexes, "stability", CHAPTER)
    rebuilt.corpus(made, "real", CLASSES)
    for i, index in enumerate([*STARTS, *TOTALS, "marks", "main"]):
        rebuilt.manifest(made, index, MOVED if index in ("start-2", "marks") else TEXTS)
        for arm in rebuilt.EXACT:
            value = {"start-1": 0.2, "start-2": 0.5, "start-3": 0.4, "marks": 0.3}.get(index, 0.25)
            write(made, index, arm, value, qrels=f"q{i}" if index in (*STARTS, "marks") else "q")
    card = {"corpus": {"key": "real", "tier": "A", "judged_by": "human"}, "timing_sources": {"real": 2}}
    counts = {"start_tie_groups": 2, "segments_in_start_ties": 5, "segments": 40}
    for index in ("main", "start-1"):
        canon.write_json(made.build / "inject" / index / "real/manifest.json", {**card, "counts": counts})
    return made


def test_the_broken_order_has_a_band_and_the_total_one_has_none(at: Layout) -> None:
    found = stability.order(at, "stability")
    bands = {(b["order"], b["arm"], b["query_class"]): b for b in found["bands"]}
    assert len(bands) == 2 * 3 * 3
    broken, total = bands["start", "bm25", "all"], bands["total", "bm25", "all"]
    assert broken["band"] == pytest.approx(0.3) and (broken["lowest"], broken["highest"]) == (0.2, 0.5)
    assert (total["band"], total["largest_delta"]["delta"], total["largest_delta"]["interval"]) == (0, 0, [0, 0])
    assert (broken["corpus"], broken["tier"], broken["judged_by"]) == ("real", "A", "human")


def test_the_largest_delta_runs_from_the_best_build_to_the_worst_with_its_interval_turned(at: Layout) -> None:
    """start-1 minus start-2 is negative in the order of the indexes."""
    uneven = {q: 0.5 + i / 100 for i, q in enumerate(CLASSES)}
    rebuilt.arm(at.stage("stability") / "scored/start-2/bm25", uneven, CLASSES, "start-2", "q1")
    band = next(b for b in stability.order(at, "stability")["bands"] if b["query_class"] == "all")
    largest = band["largest_delta"]
    assert (largest["a"], largest["b"]) == ("start-2", "start-1")
    assert largest["delta"] == pytest.approx(0.355)
    assert largest["interval"][0] < 0.355 < largest["interval"][1]


def test_identical_means_the_same_chunks_and_the_same_values(at: Layout) -> None:
    def orders() -> dict[str, dict[str, Any]]:
        return {o["order"]: o for o in stability.order(at, "stability")["orders"]}

    found = orders()
    assert (found["total"]["identical"], found["start"]["identical"]) == (True, False)
    assert [(p["a"], p["b"], p["chunks_differ"]) for p in found["start"]["pairs"]] == [
        ("start-1", "start-2", 4), ("start-1", "start-3", 0), ("start-2", "start-3", 4),
    ]  # fmt: skip
    assert (found["start"]["chunk_tables"], found["total"]["chunk_tables"]) == (2, 1)
    nearly = dict.fromkeys(CLASSES, 0.25) | {"real:m0:000": dict.fromkeys(NAMES, 0.25) | {"RR": 0.2500000001}}
    rebuilt.arm(at.stage("stability") / "scored/total-3/rrf30-exact", nearly, CLASSES, "total-3")
    assert (orders()["total"]["identical"], orders()["total"]["values_identical"]) == (False, False)
    rebuilt.manifest(at, "total-2", MOVED)
    assert orders()["total"]["chunk_tables"] == 2


def test_equal_values_over_other_chunks_are_not_identical(at: Layout) -> None:
    rebuilt.manifest(at, "total-2", {"g": TEXTS["g"], "f": TEXTS["f"]})
    found = next(o for o in stability.order(at, "stability")["orders"] if o["order"] == "total")
    assert (found["identical"], found["values_identical"], found["pairs"][0]["chunks_differ"]) == (False, True, 0)


def test_the_splitter_is_counted_against_the_control_and_scored(at: Layout) -> None:
    found = stability.order(at, "stability")["splitter"]
    counted = ("control", "index", "files", "files_differ", "chunks_differ", "only_in_control", "only_in_index")
    assert [found[name] for name in counted] == ["main", "marks", 2, 1, 4, 2, 2]
    assert {r["arm"] for r in found["rows"]} == set(rebuilt.EXACT)
    assert found["rows"][-1]["deltas"]["RR"] == pytest.approx(0.05)


def test_indexes_name_their_order_and_ties_come_from_the_injection(at: Layout) -> None:
    found = stability.order(at, "stability")
    named = [(i["index"], i["order"], i["shuffle"], len(i["rows"])) for i in found["indexes"]]
    assert named[0] == ("start-1", "start", 1, 9) and named[-1] == ("total-3", "total", 3, 9)
    assert [(t["index"], t["corpus"], t["tie_groups"], t["segments"], t["of_segments"]) for t in found["ties"]] == [
        ("main", "real", 2, 5, 40), ("start-1", "real", 2, 5, 40),
    ]  # fmt: skip


@pytest.fixture
def graphed(at: Layout) -> Layout:
    identities: dict[str, dict[str, Any]] = {"main": {}, "bulk": {"writing": {"bulk": 9_000, "merge": False}}}
    identities["cured"] = {"vectors": "distinct"}
    values = {"main": (0.10, 0.20), "bulk": (0.12, 0.20), "cured": (0.24, 0.30)}
    ann = {"depth": 48, "recall_mean": 0.25, "recall_by_score_mean": 0.5, "short_share": 0.6, "hits_mean": 90.0}
    for index in GRAPHS:
        rebuilt.manifest(at, index, TEXTS, **identities[index])
        for arm, value in zip(rebuilt.GRAPH, values[index], strict=True):
            write(at, index, arm, value, ann=ann)
    write(at, "main", "rrf30-exact", 0.31)
    return at


def test_the_band_of_the_graph_is_over_build_paths_and_leaves_cures_out(graphed: Layout) -> None:
    found = stability.graph(graphed, "stability")
    bands = {(b["arm"], b["query_class"]): b for b in found["band"]}
    assert bands["dense-hnsw", "all"]["band"] == pytest.approx(0.02) and bands["rrf30-hnsw", "all"]["band"] == 0
    assert bands["dense-hnsw", "all"]["indexes"] == ["main", "bulk"]


def test_each_build_says_its_path_and_what_its_graph_finds(graphed: Layout) -> None:
    main, bulk, cured = stability.graph(graphed, "stability")["builds"]
    assert main["path"] == "as every index: in order, merged to one segment"
    assert bulk["path"] == "requests of 9000 documents, not merged"
    assert cured["path"] == "distinct vectors alone, a hit standing for its copies" and cured["vectors"] == "distinct"
    assert (main["recall48_mean"], main["recall48_by_score_mean"], main["hits_mean"]) == (0.25, 0.5, 90.0)
    assert main["segments"] == 1 and {r["arm"] for r in main["arms"]} == set(rebuilt.GRAPH)


def test_builds_are_held_against_the_controls_graph_and_against_the_exact_leg(graphed: Layout) -> None:
    found = {
        (d["index"], d["arm"], d["control_arm"]): d["rows"][-1]["deltas"]["RR"]
        for d in stability.graph(graphed, "stability")["deltas"]
    }
    assert ("main", "dense-hnsw", "dense-hnsw") not in found and len(found) == 2 + 4 + 4
    assert found["bulk", "dense-hnsw", "dense-hnsw"] == pytest.approx(0.02)
    assert found["cured", "rrf30-hnsw", "rrf30-exact"] == pytest.approx(-0.01)


def test_what_of_fusion_is_the_graph(graphed: Layout) -> None:
    """Over the exact leg fusion adds 0.06; over the control's graph 0.10, over the cured one 0.06."""
    rows = {r["index"]: r for r in stability.graph(graphed, "stability")["ann_share"] if r["query_class"] == "all"}
    assert [rows["main"][name] for name in ("exact", "hnsw", "difference")] == pytest.approx([0.06, 0.10, 0.04])
    assert rows["cured"]["difference"] == pytest.approx(0.0)
    assert (rows["main"]["what"], rows["main"]["arm"], rows["main"]["control_arm"]) == (
        "fusion", "rrf30-hnsw", "dense-hnsw",
    )  # fmt: skip
