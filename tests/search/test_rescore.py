"""Which arms a scale asks where, and the re-ranker's scores that are frozen for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import bakeoff
import numpy as np
import planted
import pytest

from lossmap import canon, layout
from lossmap.encode import pairs, rerankers
from lossmap.errors import LossmapError
from lossmap.judge import qrels
from lossmap.layout import Layout
from lossmap.search import legs, plan, rescore
from lossmap.studies import groups, judging, measure, reranker_quality, reruns

BENCH = "main/real"
TEXTS = {"real:m1:000": ("what of alpha", "lookup"), "real:m1:001": ("what of beta", "lookup")}
SHOWN = {"bm25": [0, 1, 2, 3], "exact": [3, 4, 5, 0]}


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    bakeoff.root(tmp_path, monkeypatch, [BENCH], [BENCH, "main/other"], parts=True)
    said = [planted.meeting("m1", *((f"S{i}", f"said {i}") for i in range(8)))]
    found = layout.load("smoke", BENCH)
    planted.corpus(found, "real", said, TEXTS, {"real:m1:000": "m1"})
    planted.table(found, [planted.chunk("real", "m1", i, f"S{i}", f"said {i}", float(i)) for i in range(8)])
    for name, rows in SHOWN.items():
        planted.leg(found, name, dict.fromkeys(TEXTS, rows))
    return found


def scored(asked: list[pairs.Pair]) -> np.ndarray:
    return np.array([float(text[-1]) + ("beta" in query) / 8 for query, text in asked], np.float32)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> list[list[pairs.Pair]]:
    """A re-ranker that likes high numbers; the pairs that it was asked of, call by call."""
    calls: list[list[pairs.Pair]] = []

    class Tiny:
        name = "tiny"

        def provenance(self) -> dict[str, Any]:
            return {"name": "tiny", "weights_sha256": "w"}

    def pair_scores(_: object, asked: list[pairs.Pair]) -> tuple[np.ndarray, int]:
        calls.append(asked)
        return scored(asked), len(asked)

    monkeypatch.setattr(rerankers, "get", lambda name: Tiny())
    monkeypatch.setattr(pairs, "pair_scores", pair_scores)
    return calls


def test_every_arm_of_a_family_is_asked_on_the_benches_of_both_chapters(at: Layout) -> None:
    asked = plan.asked(at)
    assert asked["rrf-60"] == sorted([BENCH, "main/other"])
    assert set(asked) == set(plan.stanzas(at))
    assert [arm["rerank"]["by"] for arm in plan.shown_to(at, BENCH, "cross")] == ["cross"]
    assert not list(plan.shown_to(at, BENCH, "bi")) and not list(plan.shown_to(at, "main/none", "cross"))


def test_a_scale_may_ask_fewer_arms_and_no_unknown_one(at: Layout) -> None:
    spec = at.config["scales"]["smoke"]["chapters"]["stage5"]["families"]["fusion"]
    spec["arms"] = ["rrf-30-default", "rrf-60"]
    assert list(plan.chosen(at, "fusion")) == ["rrf-30-default", "rrf-60"]
    assert plan.family(at, "fusion")["arms"] == {"rrf-30-default": "control", "rrf-60": "rank_constant"}
    spec["arms"] = ["rrf-61"]
    with pytest.raises(LossmapError, match="rrf-61"):
        plan.chosen(at, "fusion")


def test_each_candidate_is_scored_once_and_frozen_under_the_index(at: Layout, model: list[list[pairs.Pair]]) -> None:
    report = rescore.run(at, "cross")
    leg = legs.load(at.leg("cross"))
    assert report["queries"] == 2 and report["pairs"] == len(model[0]) == 12
    assert leg.query_ids == sorted(TEXTS) and leg.rows.tolist() == [[0, 1, 2, 3, 4, 5]] * 2
    assert leg.scores[1].tolist() == [row + 0.125 for row in range(6)]
    assert leg.meta["index_sha256"] == planted.INDEX and leg.meta["reranker"]["weights_sha256"] == "w"


def test_only_what_an_arm_shows_the_re_ranker_is_scored(at: Layout, model: list[list[pairs.Pair]]) -> None:
    arm = {**plan.stanzas(at)["rrf-30-default.cross50.final12"]}

    def load(name: str) -> legs.Leg:
        return legs.load(at.leg(name))

    whole = rescore.candidates([arm], load)
    cut = rescore.candidates([{**arm, "pool": 2}], load)
    few = rescore.candidates([{**arm, "rerank": {"by": "cross", "pairs": 3}}], load)
    assert [len(found["real:m1:000"]) for found in (whole, cut, few)] == [6, 2, 3]
    assert cut["real:m1:000"] < few["real:m1:000"] < whole["real:m1:000"]
    both = rescore.candidates([{**arm, "pool": 2}, arm], load)
    assert both == whole, "the deeper list holds the shallower one"


def test_a_re_ranked_arm_is_ranked_by_place(at: Layout, model: list[list[pairs.Pair]]) -> None:
    rescore.run(at, "cross")
    arm = plan.stanzas(at)["rrf-30-default.cross50.final12"]
    ranking = measure.ranking(at, arm)["real:m1:000"]
    assert [doc.rpartition("_")[2] for doc, _ in ranking] == ["5", "4", "3", "2", "1", "0"]
    assert [score for _, score in ranking] == [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]


def test_scores_of_another_index_are_refused(at: Layout, model: list[list[pairs.Pair]]) -> None:
    rescore.run(at, "cross")
    canon.write_json(at.index_folder / "manifest.json", {"index_sha256": "rebuilt"})
    with pytest.raises(LossmapError, match="another index"):
        measure.ranking(at, plan.stanzas(at)["rrf-30-default.cross50.final12"])


@pytest.mark.parametrize(("name", "rule"), [("bm25", "freeze"), ("cross", "rescore")])
def test_a_leg_of_another_index_is_refused_with_what_mends_it(at: Layout, name: str, rule: str) -> None:
    planted.leg(at, name, dict.fromkeys(TEXTS, [0]), index="other")
    with pytest.raises(LossmapError, match="another index") as refusal:
        legs.of_index(at, name)
    assert refusal.value.exit_code == 3
    assert f"./run build/smoke/legs/{BENCH}/{name}.npz --forcerun {rule} --config scale=smoke" in str(refusal.value)
    assert legs.of_index(at, name, "other").query_ids == list(TEXTS)


def test_no_pair_is_scored_over_legs_of_another_index(at: Layout, model: list[list[pairs.Pair]]) -> None:
    planted.leg(at, "exact", dict.fromkeys(TEXTS, SHOWN["exact"]), index="other")
    with pytest.raises(LossmapError, match="another index"):
        rescore.run(at, "cross")
    assert not at.leg("cross").exists() and not model


@pytest.mark.parametrize("reader", [
    lambda at: reranker_quality.lists(at, 2),
    lambda at: groups.pool(at, "real", 2),
    lambda at: list(reruns._sample(at)),
])  # fmt: skip
def test_every_reader_of_legs_refuses_those_of_another_index(at: Layout, reader: Callable[[Layout], object]) -> None:
    for name in ("bm25", "exact", "cross"):
        planted.leg(at, name, dict.fromkeys(TEXTS, [0, 1]), index="other")
    judging._save(
        at, "real", qrels.Coverage((), np.array([], object), np.zeros(1, int), *[np.zeros(0, int)] * 3, {}, 0)
    )
    canon.write_json(at.injection("real") / "manifest.json", {"corpus": {"key": "real", "tier": "A"}})
    with pytest.raises(LossmapError, match="another index"):
        reader(at)
