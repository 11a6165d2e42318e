"""The re-sort as a measurement: counts against a plain recount, and each check shown to fail where it should."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import staged_bench
from staged_bench import CHAPTER, of

from lossmap import layout
from lossmap.errors import LossmapError
from lossmap.index import table
from lossmap.layout import Layout
from lossmap.search import diversity, legs, pipeline
from lossmap.search.legs import Leg
from lossmap.studies import resort, stages


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    return staged_bench.make(tmp_path, monkeypatch)


@pytest.fixture
def found(at: Layout) -> dict[str, Any]:
    return resort.study(at, CHAPTER)


def recount(at: Layout, arm: dict[str, Any]) -> tuple[int, int, int]:
    """Orders of twelve that a sort changes, first fives that depend on the length, prompts with a floated tail."""
    bench = layout.load(at.scale, staged_bench.BENCH)
    rows = table.load(bench.index_folder)
    loaded = {name: legs.load(bench.leg(name)) for name in ("bm25", "exact", "cross")}
    fused = pipeline.rank(arm, loaded)
    whole = dict(staged_bench.lists(bench, {**arm, "final": 20}, rows))["diversity"]
    changed = depend = floated = 0
    for i, query_id in enumerate(loaded["cross"].query_ids):
        score = dict(fused[query_id])
        read = [row for row, _ in fused[query_id]][:30]
        score |= {row: float(loaded["cross"].scores[i, row]) for row in read}
        by_score = {
            n: sorted(whole[query_id][:n], key=lambda row: (-score[row], rows[row].doc_id)) for n in (8, 12, 20)
        }
        changed += by_score[12] != whole[query_id][:12]
        depend += len({tuple(order[:5]) for order in by_score.values()}) > 1
        tail = [row not in read for row in by_score[12]]
        floated += any(tail) and any(not late for late in tail[tail.index(True) :])
    return changed, depend, floated


def test_the_counts_are_those_of_a_plain_recount(at: Layout, found: dict[str, Any]) -> None:
    for row, arm in zip(found["rows"], (staged_bench.ARM, resort.wide(staged_bench.ARM)), strict=True):
        changed, depend, floated = recount(at, arm)
        assert (row["queries"], row["size"], row["pairs"]) == (40, arm["size"], 30)
        assert row["resorted"]["orders_changed"]["12"] == changed > 0
        assert row["resorted"]["top_fives_that_depend"] == depend > 0
        assert row["tail"]["resorted"]["floated"] == floated > 0


def test_the_order_preserving_path_changes_nothing(found: dict[str, Any]) -> None:
    for row in found["rows"]:
        assert row["kept"] == {
            "orders_changed": {"8": 0, "12": 0, "20": 0}, "top_fives_that_depend": 0, "ndcg5_that_depend": 0
        }  # fmt: skip
        assert row["prefix"] == {"checked": 80, "broken": 0}


def test_the_tail_floats_above_negative_scores(found: dict[str, Any]) -> None:
    for row in found["rows"]:
        tail, scale = row["tail"], row["scale"]
        assert tail["lists_with_a_tail"] == 40
        assert tail["resorted"]["rows"] == tail["kept"]["rows"] > 0
        assert tail["resorted"]["first_five"] > tail["kept"]["first_five"]
        assert scale["reranker_negative_share"] > 0.9 and 0 < scale["tail_greatest"] <= 2 / 31
        assert tail["kept"]["first"] == 0 < tail["resorted"]["first"]


def test_a_scale_that_asks_no_wide_arm_has_no_row_of_it(at: Layout) -> None:
    families = at.config["scales"][at.scale]["chapters"][CHAPTER]["families"]
    families["budget"] = {"arms": [staged_bench.SHIPPED]}
    assert [row["size"] for row in resort.study(at, CHAPTER)["rows"]] == [40]
    families["budget"]["arms"].append("rrf-30-default-size96.cross30.files4.final12")
    assert [row["size"] for row in resort.study(at, CHAPTER)["rows"]] == [40, 96]


def test_without_a_tail_nothing_floats(at: Layout) -> None:
    (bench,) = stages.benches(at, CHAPTER)
    row, _ = resort._examine(replace(bench, arm={**staged_bench.ARM, "rerank": {"by": "cross", "pairs": 40}}))
    assert row["tail"]["lists_with_a_tail"] == row["tail"]["resorted"]["rows"] == 0
    assert row["scale"]["tail_greatest"] is None and row["resorted"]["orders_changed"]["12"] > 0


def test_what_the_defect_does_to_the_measure(found: dict[str, Any]) -> None:
    for row in found["scores"]:
        assert row["resorted"] - row["kept"] == pytest.approx(row["delta"], abs=1e-12)
    kept = {row["final"]: row["kept"] for row in of(found["scores"], measure="nDCG@5", size=40)}
    assert len(set(kept.values())) == 1
    sorted_by_score = {row["final"]: row["resorted"] for row in of(found["scores"], measure="nDCG@5", size=40)}
    assert len(set(sorted_by_score.values())) > 1


def test_a_sample_that_depends_on_its_cap_is_seen(at: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    def rotated(items: Sequence[int], file_of: Any, per_file: int, cap: int | None = None) -> list[int]:
        taken = diversity.diversity_sample(items, file_of, per_file, cap)
        return taken[1:] + taken[:1]

    monkeypatch.setattr(resort, "diversity_sample", rotated)
    (bench,) = stages.benches(at, CHAPTER)
    assert resort.prefixes(bench, {"q": list(range(60))}, 4) == {"checked": 2, "broken": 2}


def test_three_fresh_rankings_agree_and_a_moved_score_is_seen(
    at: Layout, found: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    (row,) = found["repeat"]
    assert (row["times"], row["lists"], row["rows_that_differ"]) == (3, 160, 0)
    assert 40 * (40 + 40 + 20 + 12) < row["rows"] <= 40 * (40 + 40 + 24 + 12)
    genuine, asked = legs.of_index, iter(range(100))

    def shaken(place: Layout, name: str, index: str | None = None) -> Leg:
        leg = genuine(place, name, index)
        moved = leg.scores * np.float32(-1 if name == "cross" and next(asked) else 1)
        return Leg(leg.query_ids, leg.rows, moved, leg.meta)

    (bench,) = stages.benches(at, CHAPTER)
    monkeypatch.setattr(legs, "of_index", shaken)
    assert resort.repeat(bench)["rows_that_differ"] > 0


def test_a_bench_that_could_not_be_had_gives_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = staged_bench.make(tmp_path, monkeypatch, ("other/demo",))
    staged_bench.not_obtained(at, "other/demo")
    found = resort.study(at, CHAPTER)
    assert [found[part] for part in ("rows", "scores", "repeat")] == [[], [], []]


def test_the_wide_arm_has_its_own_id_and_is_as_it_was_scored(at: Layout, found: dict[str, Any]) -> None:
    assert [row["arm"] for row in found["rows"]] == [staged_bench.SHIPPED, staged_bench.WIDE]
    assert {row["arm"] for row in of(found["scores"], size=96)} == {staged_bench.WIDE}
    bench = layout.load(at.scale, staged_bench.BENCH)
    staged_bench.write_arm(bench, staged_bench.WIDE, staged_bench.ARM, table.load(bench.index_folder))
    with pytest.raises(LossmapError, match="scored with other lists") as refusal:
        resort.study(at, CHAPTER)
    assert refusal.value.exit_code == 3 and "score_stage5_" in str(refusal.value)
