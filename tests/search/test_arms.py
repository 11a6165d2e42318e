"""Arms from families of stanzas: the ids that their parameters give, and the stanzas that are refused."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import crafted
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lossmap import layout
from lossmap.errors import LossmapError
from lossmap.search import arms, choose, plan

LEGS: dict[str, dict[str, Any]] = {
    "bm25": {"kind": "text", "depth": 500},
    "bm25-again": {"kind": "text", "depth": 500},
    "exact": {"kind": "exact", "depth": 500},
    "hnsw": {"kind": "hnsw", "depth": 192, "k": 192},
}
DEFAULTS = {"mode": "hybrid", "legs": ["bm25", "exact"], "size": 48}
MIN_MAX = {"normalization": "min_max", "combination": "arithmetic_mean"}
Z_SCORE = ("--normalization-technique", "z_score")
IDS: list[tuple[dict[str, Any], str]] = [
    ({}, "rrf-30-default"),
    ({"rank_constant": 30}, "rrf-30"),
    ({"rank_constant": 60}, "rrf-60"),
    ({"weights": [0.7, 0.3]}, "rrf-30-w70_30"),
    ({"rank_constant": 60, "weights": [0.29, 0.71]}, "rrf-60-w29_71"),
    (MIN_MAX, "norm-min_max-arithmetic_mean"),
    ({**MIN_MAX, "weights": [0.58, 0.42]}, "norm-min_max-arithmetic_mean-w58_42"),
    ({"normalization": "z_score", "combination": "arithmetic_mean"}, "norm-z_score-arithmetic_mean"),
    ({"legs": ["bm25", "hnsw"], "rank_constant": 30}, "rrf-30-hnsw"),
    ({"legs": ["bm25-again", "exact"]}, "rrf-30-default-bm25-again"),
    ({"leg_depth": 192}, "rrf-30-default-depth192"),
    ({"leg_depth": 48}, "rrf-30-default"),
    ({"size": 12}, "rrf-30-default-size12"),
    (
        {"legs": ["bm25", "hnsw"], "size": 96, "leg_depth": 192, **MIN_MAX},
        "norm-min_max-arithmetic_mean-hnsw-depth192-size96",
    ),
    ({"mode": "keyword", "legs": ["bm25"]}, "bm25"),
    ({"mode": "semantic", "legs": ["hnsw"], "size": 12}, "hnsw-size12"),
    ({"pool": 24, "final": 12}, "rrf-30-default.pool24.final12"),
    ({"rerank": {"by": "cross"}, "per_file": 4, "final": 12}, "rrf-30-default.cross50.files4.final12"),
    ({"rerank": {"by": "bi", "pairs": 96}, "pool": 48}, "rrf-30-default.pool48.bi96"),
]
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"weights": [0.705, 0.295]}, "whole percents"),
    ({"weights": [0.7, 0.3 + 1e-10]}, "whole percents"),
    ({"weights": [1.0, 0.0]}, "whole percents"),
    ({"weights": [0.7, 0.4]}, "sum to 1"),
    ({"weights": [1.0]}, "weight for each leg"),
    ({"weights": "0.7"}, "no numbers"),
    ({"weights": [True, False]}, "no numbers"),
    ({"normalization": "z_score", "combination": "geometric_mean"}, "z_score has no such mean"),
    ({"normalization": "z_score", "combination": "harmonic_mean"}, "z_score has no such mean"),
    ({"normalization": "max", "combination": "arithmetic_mean"}, "unknown normalization"),
    ({"normalization": "min_max"}, "unknown normalization or combination"),
    ({"combination": "arithmetic_mean"}, "unknown normalization or combination"),
    ({**MIN_MAX, "rank_constant": 30}, "two fusions"),
    ({"rank_constant": 0}, "no count"),
    ({"rank_constant": 10_001}, "engine refuses"),
    ({"rank_constant": 30.0}, "no count"),
    ({"size": 0}, "no count"),
    ({"final": True}, "no count"),
    ({"window": 48}, "unknown keys"),
    ({"legs": ["bm25", "dense"]}, "unknown legs"),
    ({"legs": ["exact", "bm25"]}, "do not fit"),
    ({"legs": ["bm25"]}, "do not fit"),
    ({"mode": "keyword", "legs": ["exact"]}, "do not fit"),
    ({"mode": "vector"}, "unknown mode"),
    ({"mode": "keyword", "legs": ["bm25"], "rank_constant": 30}, "without two legs"),
    ({"mode": "semantic", "legs": ["exact"], "leg_depth": 30}, "without two legs"),
    ({"legs": ["bm25", "hnsw"], "leg_depth": 500}, "deeper"),
    ({"leg_depth": 501}, "deeper"),
    ({"rerank": {"by": "hand"}}, "unknown re-ranker"),
    ({"pool": 49}, "pool exceeds size"),
    ({"final": 49}, "final exceeds size"),
    ({"size": 96, "pool": 24, "final": 25}, "final exceeds pool"),
    ({"rerank": "cross"}, "unknown re-ranker"),
    ({"rerank": {"by": "cross", "pairs": 0}}, "pairs is no count"),
    ({"rerank": {"by": "cross", "depth": 9}}, "unknown re-ranker"),
]


def stage(*stanzas: dict[str, Any], control: str = "rrf-30-default", **more: Any) -> dict[str, Any]:
    return {"defaults": DEFAULTS, "families": {"fusion": {"control": control, "arms": list(stanzas), **more}}}


def expanded(*stanzas: dict[str, Any], **more: Any) -> dict[str, Any]:
    return arms.expand(stage(*stanzas, **more), LEGS)["fusion"]


@pytest.mark.parametrize(("stanza", "arm_id"), IDS, ids=[arm_id for _, arm_id in IDS])
def test_an_id_says_the_parameters(stanza: dict[str, Any], arm_id: str) -> None:
    assert list(expanded(stanza, control=arm_id)["arms"]) == [arm_id]


def test_ids_tell_arms_apart() -> None:
    stanzas = {arm_id: arms.resolved({**DEFAULTS, **stanza}, LEGS, "test") for stanza, arm_id in IDS}
    assert len({repr(sorted(stanza.items())) for stanza in stanzas.values()}) == len(stanzas)


@pytest.mark.parametrize(("stanza", "what"), REFUSED, ids=[repr(stanza) for stanza, _ in REFUSED])
def test_a_stanza_that_cannot_be_ranked_as_it_says_is_refused(stanza: dict[str, Any], what: str) -> None:
    with pytest.raises(LossmapError, match=what) as refusal:
        expanded({}, stanza)
    assert refusal.value.exit_code == 2


@given(st.integers(1, 99))
def test_every_whole_percent_is_taken_and_read_back_from_the_id(percent: int) -> None:
    """0.29 times 100 is 28.999999999999996: a cut instead of a round would name another arm."""
    (arm_id,) = expanded(
        {"weights": [percent / 100, (100 - percent) / 100]}, control=f"rrf-30-w{percent}_{100 - percent}"
    )["arms"]
    assert arm_id.endswith(f"w{percent}_{100 - percent}")


def test_an_axis_is_kept_beside_the_arm() -> None:
    found = expanded({"axis": "control"}, {"axis": "inert", "rank_constant": 30}, {"rank_constant": 60})
    assert found["axes"] == {"rrf-30-default": "control", "rrf-30": "inert", "rrf-60": None}
    assert found["arms"]["rrf-30"] == {**DEFAULTS, "leg_depth": 48, "rank_constant": 30}
    assert found["arms"]["rrf-30-default"] == {**DEFAULTS, "leg_depth": 48}


def test_a_family_has_defaults_of_its_own_and_null_takes_one_away() -> None:
    found = expanded(
        {}, {"per_file": None}, {"rerank": None}, control="rrf-30-default.cross50.files4",
        defaults={"rerank": {"by": "cross"}, "per_file": 4},
    )  # fmt: skip
    assert list(found["arms"]) == [
        "rrf-30-default.cross50.files4", "rrf-30-default.cross50", "rrf-30-default.files4"
    ]  # fmt: skip
    assert found["arms"]["rrf-30-default.cross50"]["rerank"] == {"by": "cross", "pairs": 50}


@pytest.mark.parametrize(
    ("stanzas", "more", "what"),
    [
        (({}, {"size": 48}), {}, "stands twice"),
        (({"rank_constant": 60},), {}, "no arm of its family"),
        (({},), {"benches": ["v6"]}, "unknown keys of a family"),
    ],
)
def test_a_family_that_contradicts_itself_is_refused(stanzas, more, what: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(LossmapError, match=what) as refusal:
        expanded(*stanzas, **more)
    assert refusal.value.exit_code == 2


def called(at: layout.Layout, *words: str) -> tuple[str, dict[str, Any]]:
    verb = argparse.ArgumentParser()
    choose.add_options(verb)
    return choose.arm(at, verb.parse_args(words))


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> layout.Layout:
    legs = {"graph": {"control": "rrf-30-hnsw", "arms": [{"legs": ["bm25", "hnsw"], "rank_constant": 30}, {}]}}
    found = stage({}, {"rank_constant": 60})
    named = {"control": "a", "arms": {"a": {**DEFAULTS, "leg_depth": 48, "rank_constant": 30}}}
    stages = {"stage5": {**found, "families": {**found["families"], **legs}}, "stage1": named}
    return crafted.scale(monkeypatch, tmp_path, stages)


def test_the_arms_of_a_stage_are_those_of_its_families_and_a_named_stage_stays_as_it_is(at) -> None:  # type: ignore[no-untyped-def]
    assert sorted(arms.of(at, "stage5")) == ["rrf-30-default", "rrf-30-hnsw", "rrf-60"]
    assert arms.of(at, "stage1") == layout.arms(at)["stages"]["stage1"]["arms"]
    assert arms.families(at, "stage1")["stage1"]["control"] == "a" == next(iter(arms.of(at, "stage1")))
    with pytest.raises(LossmapError, match="unknown stage"):
        arms.of(at, "stage9")


@pytest.mark.parametrize(
    ("words", "arm_id", "fusion"),
    [
        (("--arm", "rrf-60"), "rrf-60", {"rank_constant": 60}),
        (("--arm", "rrf-60", "--rank-constant", "10"), "rrf-10", {"rank_constant": 10}),
        (
            ("--arm", "rrf-60", "--combination-weights", "0.7,0.3"),
            "rrf-60-w70_30",
            {"rank_constant": 60, "weights": [0.7, 0.3]},
        ),
        (("--arm", "rrf-60", "--fusion", "normalization"), "norm-min_max-arithmetic_mean", MIN_MAX),
        (
            ("--arm", "rrf-60", "--fusion", "normalization", "--normalization-technique", "l2", "--size", "12"),
            "norm-l2-arithmetic_mean-size12",
            {"normalization": "l2", "combination": "arithmetic_mean"},
        ),
        (("--arm", "rrf-30-default", "--fusion", "rrf"), "rrf-30", {"rank_constant": 30}),
    ],
)  # fmt: skip
def test_a_call_moves_the_fusion_and_its_id_follows(at, words, arm_id: str, fusion: dict[str, Any]) -> None:  # type: ignore[no-untyped-def]
    name, stanza = called(at, "--chapter", "stage5", *words)
    assert name == arm_id and {key: stanza[key] for key in arms.FUSION if key in stanza} == fusion
    assert stanza["leg_depth"] == stanza["size"] == (12 if "--size" in words else 48)


def test_a_named_arm_keeps_its_name_and_adds_the_fusion(at) -> None:  # type: ignore[no-untyped-def]
    words = ("--arm", "a", "--fusion", "normalization", "--combination-technique", "harmonic_mean")
    name, stanza = called(at, *words, "--combination-weights", "0.4,0.6")
    assert name == "a-norm-min_max-harmonic_mean-w40_60" and "rank_constant" not in stanza
    assert called(at, "--arm", "a", "--rank-constant", "60")[0] == "a-rank_constant60"
    described, stanza = called(at, "--search-mode", "hybrid", "--fusion", "normalization")
    assert described == "hybrid-bm25-exact-norm-min_max-arithmetic_mean" and stanza["legs"] == ["bm25", "exact"]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("--arm", "a", "--normalization-technique", "l2"), "unusable --fusion"),
        (("--arm", "a", "--fusion", "rrf", "--combination-technique", "harmonic_mean"), "unusable --fusion"),
        (("--arm", "a", "--fusion", "normalization", "--rank-constant", "60"), "unusable --fusion"),
        (("--arm", "a", "--combination-weights", "0.705,0.295"), "whole percents"),
        (("--arm", "a", "--combination-weights", "0.7"), "weight for each leg"),
        (("--arm", "a", "--combination-weights", "0.7,0.7"), "sum to 1"),
        (
            ("--fusion", "normalization", *Z_SCORE, "--combination-technique", "harmonic_mean"),
            "z_score has no such mean",
        ),
        (("--search-mode", "keyword", "--fusion", "rrf"), "cannot take"),
        (("--search-mode", "semantic", "--combination-weights", "0.7,0.3"), "cannot take"),
        (("--arm", "no-such-arm"), "unknown arm"),
    ],
)  # fmt: skip
def test_an_impossible_fusion_is_refused(at, words: tuple[str, ...], what: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(LossmapError, match=what) as refusal:
        called(at, *words)
    assert refusal.value.exit_code == 2


def test_a_family_names_the_hashes_that_are_under_test() -> None:
    assert expanded({}, factor=["index"])["factor"] == ["index"] and expanded({})["factor"] == []
    for wrong in (["vectors"], "index", ["index", 1]):
        with pytest.raises(LossmapError, match="no list of hashes") as refusal:
            expanded({}, factor=wrong)
        assert refusal.value.exit_code == 2


def test_encoders_are_held_against_each_other_over_the_index_alone() -> None:
    at = layout.load("smoke")
    factors = {name: plan.family(at, name)["factor"] for name in arms.families(at, "stage5")}
    assert {name: factor for name, factor in factors.items() if factor} == {"encoders": ["index"]}
