"""Selection, order and coverage add up on every query; the four arms are those of the shipped one's name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import planted
import pytest
import staged_bench
from staged_bench import BI, CHAPTER, PARTS, SHIPPED, of

from lossmap import layout
from lossmap.errors import LossmapError
from lossmap.index import table
from lossmap.judge import measures, qrels, runs
from lossmap.layout import Layout
from lossmap.studies import judging, parts


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    return staged_bench.make(tmp_path, monkeypatch)


@pytest.fixture
def found(at: Layout) -> dict[str, Any]:
    return parts.study(at, CHAPTER)


def effects(
    found: dict[str, Any], measure: str = "nDCG@10", query_class: str = "all", reranker: str = "cross"
) -> dict[str, float]:
    mine = of(found["effects"], measure=measure, query_class=query_class, reranker=reranker)
    return {row["effect"]: row["delta"] for row in mine}


def test_the_parts_of_the_loss_add_up(found: dict[str, Any]) -> None:
    for query_class in ("lookup", "multi_file", "all"):
        delta = effects(found, query_class=query_class)
        assert delta["selection"] + delta["order"] == pytest.approx(delta["rerank"], abs=1e-12)
        assert delta["selection"] + delta["order"] + delta["coverage"] == pytest.approx(delta["total"], abs=1e-12)
        for first, second in (("selection_first", "order_second"), ("order_first", "selection_second")):
            assert delta[first] + delta[second] == pytest.approx(delta["rerank"], abs=1e-12)
        assert abs(delta["selection_first"] - delta["selection_second"]) > 1e-6
    for measure in parts.MEASURES:
        delta = effects(found, measure)
        assert delta["rerank"] + delta["diversity"] + delta["interaction"] == pytest.approx(delta["total"], abs=1e-12)
        assert ("selection" in delta) == (measure == "nDCG@10")


def test_each_reranker_has_parts_of_its_own(found: dict[str, Any]) -> None:
    cross, bi = effects(found), effects(found, reranker="bi")
    assert bi.keys() == cross.keys() and bi["rerank"] != cross["rerank"]
    assert bi["diversity"] == cross["diversity"]
    assert bi["selection"] + bi["order"] + bi["coverage"] == pytest.approx(bi["total"], abs=1e-12)


def test_a_scale_that_asks_fewer_arms_has_fewer_rerankers(at: Layout) -> None:
    at.config["scales"][at.scale]["chapters"][CHAPTER]["families"]["parts"]["arms"] = list(PARTS)
    assert {row["reranker"] for row in parts.study(at, CHAPTER)["effects"]} == {"cross"}


def test_the_arms_are_the_scored_ones(at: Layout, found: dict[str, Any]) -> None:
    bench = layout.load(at.scale, staged_bench.BENCH)
    judged = qrels.grade(judging.load(bench, "demo").coverage).qrels
    rows = list(of(found["rows"], query_class="all"))
    assert [(row["reranker"], row["part"]) for row in rows] == [
        ("cross", "both"), ("cross", "rerank"), (None, "diversity"), (None, "neither"), ("bi", "both"), ("bi", "rerank")
    ]  # fmt: skip
    assert [row["arm"] for row in rows] == [*PARTS, *BI]
    for row in rows:
        run = runs.read_run(staged_bench.folder(at, row["arm"]) / "run.txt.gz")
        assert row["nDCG@10"] == pytest.approx(measures.score(judged, run).column("nDCG@10").mean(), abs=1e-9)
        assert set(row["intervals"]) == set(parts.MEASURES)
    listed = {row["part"]: row["groups_listed"] for row in rows[:4]}
    assert listed["both"] == listed["diversity"] == 6 > max(listed["rerank"], listed["neither"])


def test_selection_is_the_rerankers_rows_in_the_order_of_retrieval(at: Layout, found: dict[str, Any]) -> None:
    bench = layout.load(at.scale, staged_bench.BENCH)
    rows = table.load(bench.index_folder)
    judged = qrels.grade(judging.load(bench, "demo").coverage).qrels
    lists = dict(staged_bench.lists(bench, PARTS["rrf-30-default.cross30.final12"], rows))
    chosen = {
        query_id: [(rows[row].doc_id, 0.0) for row in lists["retrieve"][query_id] if row in lists["final"][query_id]]
        for query_id in judged
    }
    assert all(len(docs) == 12 for docs in chosen.values())
    mean = measures.score(judged, chosen).column("nDCG@10").mean()
    (neither,) = of(found["rows"], query_class="all", part="neither")
    assert effects(found)["selection_first"] == pytest.approx(mean - neither["nDCG@10"], abs=1e-9)


def test_arms_are_named_after_the_one_that_does_both() -> None:
    assert list(parts.arm_ids(SHIPPED, staged_bench.ARM).values()) == list(PARTS)
    with pytest.raises(LossmapError, match="lacks a stage"):
        parts.arm_ids("rrf-30-default.final12", staged_bench.ARM)


def test_arms_over_other_judgements_are_refused(at: Layout) -> None:
    bench = layout.load(at.scale, staged_bench.BENCH)
    arm_id = "rrf-30-default.files4.final12"
    rows = table.load(bench.index_folder)
    staged_bench.write_arm(bench, arm_id, PARTS[arm_id], rows, hashes={**planted.HASHES, "qrels": "other"})
    with pytest.raises(LossmapError, match="differ in qrels"):
        parts.study(at, CHAPTER)


def test_an_arm_of_other_legs_is_refused(at: Layout) -> None:
    folder = staged_bench.folder(at, "rrf-30-default.final12")
    run = {query_id: docs[::-1] for query_id, docs in runs.read_run(folder / "run.txt.gz").items()}
    runs.write_run(folder / "run.txt.gz", run, "reversed")
    with pytest.raises(LossmapError, match=r"default\.final12\n.*40 of 40 queries"):
        parts.study(at, CHAPTER)
