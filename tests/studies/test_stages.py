"""The pipeline stage by stage over a bench on disk: identities, refusals, and a bench that could not be had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import planted
import pytest
import staged_bench
from staged_bench import CHAPTER, SHIPPED, of

from lossmap import canon, layout
from lossmap.errors import LossmapError
from lossmap.judge import measures, qrels, runs
from lossmap.layout import Layout
from lossmap.search import legs
from lossmap.studies import judging, stages

NAMES = ["dense", "fusion", "retrieve", "pool", "rerank", "diversity", "final"]


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    return staged_bench.make(tmp_path, monkeypatch)


@pytest.fixture
def found(at: Layout) -> dict[str, Any]:
    return stages.study(at, CHAPTER)


def test_the_stages_stand_in_order_and_their_deltas_add_up(found: dict[str, Any]) -> None:
    assert found["arm"] == SHIPPED
    for name in ("lookup", "multi_file", "all"):
        mine = list(of(found["rows"], query_class=name))
        assert [row["stage"] for row in mine] == NAMES
        assert {(row["corpus"], row["tier"], row["judged_by"], row["bench"]) for row in mine} == {
            ("demo", "B", "human", "v6/demo")
        }
        total = sum(row["delta"] for row in mine[1:])
        assert total == pytest.approx(mine[-1]["ndcg"] - mine[0]["ndcg"], abs=1e-12)
        assert mine[0]["queries"] == (40 if name == "all" else 20)


def test_the_last_stage_scores_what_trec_eval_scores_of_the_arms_run(at: Layout, found: dict[str, Any]) -> None:
    judged = qrels.grade(judging.load(layout.load(at.scale, staged_bench.BENCH), "demo").coverage).qrels
    scored = measures.score(judged, runs.read_run(staged_bench.folder(at) / "run.txt.gz"))
    (last,) = of(found["rows"], query_class="all", stage="final")
    assert last["ndcg"] == pytest.approx(scored.column("nDCG@10").mean(), abs=1e-9)
    assert last["rows_per_query"] == 12


def test_each_cut_loses_what_it_cuts(found: dict[str, Any]) -> None:
    dense, fusion, retrieve, pool, rerank, diversity, final = of(found["rows"], query_class="all")
    assert fusion["rows_per_query"] > 40 == retrieve["rows_per_query"] == pool["rows_per_query"]
    assert (fusion["relevant"]["lost"], rerank["relevant"]["lost"], pool["relevant"]["lost"]) == (0, 0, 0)
    assert fusion["relevant"]["entered"] > 0 < retrieve["relevant"]["lost"]
    assert 23 < diversity["rows_per_query"] <= 24 and diversity["relevant"]["lost"] > 0 < final["relevant"]["lost"]
    for before, row in zip((dense, fusion, retrieve, pool, rerank, diversity), (fusion, retrieve, pool, rerank)):
        change = row["relevant"]["entered"] - row["relevant"]["lost"]
        assert row["relevant"]["held"] == before["relevant"]["held"] + change


def test_the_fusion_is_read_with_the_legs_at_both_depths(found: dict[str, Any]) -> None:
    mine = list(of(found["taxonomy"], query_class="all"))
    assert [(row["before"], row["stage"], row["membership_depth"]) for row in mine] == [
        ("dense", "fusion", 40), ("dense", "fusion", staged_bench.DEPTH), ("fusion", "retrieve", 40),
        ("retrieve", "pool", 40), ("pool", "rerank", 40), ("rerank", "diversity", 40), ("diversity", "final", 40),
    ]  # fmt: skip
    shallow, deep = mine[:2]
    assert shallow["legs"] == ["exact", "bm25"] and shallow["relevant_out"]["first_only"] > 0
    # Frozen legs hold every row here, so at their depth nothing is on one leg alone.
    assert deep["relevant_out"]["both"] == deep["relevant_out"]["total"] == shallow["relevant_out"]["total"]
    assert deep["intruders"]["total"] == shallow["intruders"]["total"] > 0
    assert mine[3]["loss"]["queries"] == mine[3]["intruders"]["total"] == 0
    assert mine[4]["relevant_out"]["total"] > 0


def test_the_oracle_of_the_legs_is_above_each(found: dict[str, Any]) -> None:
    for row in found["oracles"]:
        assert list(row["means"]) == ["bm25", "exact", "fusion"]
        assert row["oracle"] == pytest.approx(max(row["means"].values()) + row["gap"]) and row["gap"] > 0
    (dense,) = of(found["rows"], query_class="all", stage="dense")
    (all_queries,) = of(found["oracles"], query_class="all")
    assert all_queries["means"]["exact"] == pytest.approx(dense["ndcg"], abs=1e-12)


def test_gold_files_are_followed_to_the_prompt(found: dict[str, Any]) -> None:
    prompt = {row["stage"]: row for row in of(found["files"], query_class="all", depth=12)}
    assert list(prompt) == NAMES
    assert prompt["diversity"]["groups_listed"] == prompt["final"]["groups_listed"] == 6
    assert prompt["final"]["all_present"] == 1.0 > prompt["rerank"]["all_present"]
    assert prompt["rerank"]["gold_files_reached"] < prompt["rerank"]["gold_files"]
    (whole,) = of(found["files"], query_class="all", depth=None, stage="rerank")
    assert whole["all_present"] == 1.0


def test_lists_that_the_arm_was_not_scored_with_are_refused(at: Layout) -> None:
    run = runs.read_run(staged_bench.folder(at) / "run.txt.gz")
    query_id = next(iter(run))
    run[query_id] = [*run[query_id][1:], run[query_id][0]]
    runs.write_run(staged_bench.folder(at) / "run.txt.gz", run, "tampered")
    with pytest.raises(LossmapError, match=f"1 of 40 queries differ, the first {query_id}") as caught:
        stages.study(at, CHAPTER)
    assert caught.value.exit_code == 3


def test_a_leg_of_another_index_is_refused(at: Layout) -> None:
    bench = layout.load(at.scale, staged_bench.BENCH)
    leg = legs.load(bench.leg("cross"))
    legs.save(bench.leg("cross"), legs.Leg(leg.query_ids, leg.rows, leg.scores, {**leg.meta, "index_sha256": "x"}))
    with pytest.raises(LossmapError, match="another index"):
        stages.study(at, CHAPTER)


def test_a_pair_that_was_never_scored_is_refused(at: Layout) -> None:
    bench = layout.load(at.scale, staged_bench.BENCH)
    leg = legs.load(bench.leg("cross"))
    some = np.where(leg.rows == 7, -1, leg.rows)
    legs.save(bench.leg("cross"), legs.Leg(leg.query_ids, some, leg.scores, leg.meta))
    with pytest.raises(LossmapError, match="no score"):
        stages.study(at, CHAPTER)


def test_a_bench_that_could_not_be_had_gives_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = staged_bench.make(tmp_path, monkeypatch, ("other/demo",))
    staged_bench.not_obtained(at, "other/demo")
    found = stages.study(at, CHAPTER)
    assert [found[part] for part in ("rows", "taxonomy", "oracles", "files")] == [[], [], [], []]
    assert canon.dumps(found)


def test_the_hash_of_the_index_is_the_arms(at: Layout) -> None:
    assert {leg.meta["index_sha256"] for bench in stages.benches(at, CHAPTER) for leg in bench.legs.values()} == {
        planted.HASHES["index"]
    }


def test_what_scores_an_arm_again_is_its_own_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = staged_bench.make(tmp_path, monkeypatch)
    folder = staged_bench.folder(at)
    with pytest.raises(LossmapError, match="with other lists") as refusal:
        stages.require_run(at, folder, {"demo:m0:00": ["nothing"]})
    target = f"build/tiny/stages/stage5/scored/{staged_bench.BENCH}/{staged_bench.SHIPPED}/metrics.json"
    wanted = f"./run {target} --forcerun score_stage5_{staged_bench.SHIPPED} --config scale=tiny"
    assert wanted in str(refusal.value)
