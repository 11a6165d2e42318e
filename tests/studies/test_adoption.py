"""The gate over every arm: adopted, rejected, and by what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import bakeoff
import pytest

from lossmap import layout
from lossmap.judge.measures import NAMES
from lossmap.layout import Layout
from lossmap.studies import adoption

BENCHES = ["v6/real", "v6/made"]
INERT, SIXTY, GEOMETRIC, WEIGHTED = bakeoff.ARMS
RISE = {INERT: 0.0, SIXTY: 0.1, GEOMETRIC: -0.2, WEIGHTED: {"lookup": -0.01, "summarize": 0.2}}


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    made = bakeoff.root(tmp_path, monkeypatch, BENCHES, [*BENCHES, "third"])
    for bench in (*BENCHES, "third"):
        bakeoff.score(made, bench, RISE)
    return made


def candidate(found: dict[str, Any], arm: str) -> dict[str, Any]:
    return next(row for row in found["candidates"] if row["arm"] == arm)


def strictly(found: dict[str, Any], arm: str) -> list[dict[str, Any]]:
    return [row for row in candidate(found, arm)["rejected_by"] if row["verdict"] == "strict"]


def passed(found: dict[str, Any], scope: str, verdict: str) -> list[str]:
    return [row["arm"] for row in found["adopted"][scope][verdict]]


def test_what_rises_everywhere_and_falls_nowhere_is_adopted(at: Layout) -> None:
    found = adoption.study(at, "agreement")
    assert [row["arm"] for row in found["candidates"]] == list(bakeoff.ARMS)
    for scope in (adoption.PAIR, adoption.EVERY):
        assert passed(found, scope, "strict") == passed(found, scope, "with_intervals") == [SIXTY]
    assert candidate(found, SIXTY)["rejected_by"] == []
    assert [row["corpus"] for row in candidate(found, SIXTY)["up"]] == ["real", "made", "third"]


def test_a_tally_counts_what_each_side_of_the_gate_stops(at: Layout) -> None:
    bakeoff.score(at, "third", {**RISE, SIXTY: -0.001})
    rows = {(r["scope"], r["verdict"]): r for r in adoption.study(at, "agreement")["tally"] if r["family"] == "fusion"}
    # The geometric arm falls everywhere, the weighted one rises and loses lookups, the inert one does neither.
    expected = {"arms": 4, "up": 2, "protected": 2, "accepted": 1}
    assert {name: rows["pair", "strict"][name] for name in expected} == expected
    assert rows["every", "strict"]["accepted"] == 0


def test_an_inert_arm_is_rejected_because_nothing_rises(at: Layout) -> None:
    rows = strictly(adoption.study(at, "agreement"), INERT)
    assert [(row["corpus"], row["role"], row["delta"]) for row in rows] == [
        (c, "up", 0.0) for c in ("real", "made", "third")
    ]
    assert rows[0]["rule"] == "nDCG@10 of all must rise on every corpus"


def test_a_fall_of_the_protected_class_rejects_what_rises_over_all(at: Layout) -> None:
    found = candidate(adoption.study(at, "agreement"), WEIGHTED)
    first = found["rejected_by"][0]
    assert (first["role"], first["query_class"], first["rule"]) == (
        "protected", "lookup", "no measure of lookup may fall on any corpus",
    )  # fmt: skip
    assert first["measures"] == list(NAMES) and first["delta"] == pytest.approx(-0.01)
    assert first["interval"] == pytest.approx([-0.01, -0.01]) and first["tier"] == "A"
    assert found["verdicts"]["every"]["strict"] == {"up": True, "protected": False, "accepted": False}


def test_a_third_corpus_can_veto_what_two_let_through(at: Layout) -> None:
    bakeoff.score(at, "third", {**RISE, SIXTY: -0.001})
    found = adoption.study(at, "agreement")
    assert passed(found, "pair", "strict") == [SIXTY] and passed(found, "every", "strict") == []
    assert {(row["corpus"], row["in_pair"]) for row in strictly(found, SIXTY)} == {("third", False)}


def test_a_corpus_that_was_not_obtained_is_named_and_decides_nothing(at: Layout) -> None:
    bakeoff.lack(at, "third")
    found = adoption.study(at, "agreement")
    assert found["not_obtained"] == {"fusion": ["third"]} and passed(found, "every", "strict") == [SIXTY]
    for bench in BENCHES:
        bakeoff.lack(at, bench)
    found = adoption.study(at, "agreement")
    assert found["candidates"] == [] and passed(found, "every", "strict") == []


@pytest.mark.parametrize("lost", BENCHES)
def test_half_a_pair_adopts_nothing_and_says_why(at: Layout, lost: str) -> None:
    whole = adoption.study(at, "agreement")
    assert {row["note"] for row in whole["candidates"]} == {None}
    bakeoff.lack(at, lost)
    found = adoption.study(at, "agreement")
    assert passed(found, "pair", "strict") == passed(found, "pair", "with_intervals") == []
    assert passed(found, "every", "strict") == [SIXTY]
    assert {row["note"] for row in found["candidates"]} == {adoption.NO_PAIR}


def test_no_evidence_is_no_adoption() -> None:
    assert adoption.verdict([{"role": "up", "strict": True}], "strict") == {
        "up": True,
        "protected": False,
        "accepted": False,
    }


@pytest.fixture(scope="module")
def seed() -> dict[str, Any]:
    return adoption.seed(layout.load())


def test_the_strict_rule_adopts_none_of_the_printed_arms(seed: dict[str, Any]) -> None:
    assert len(seed["candidates"]) == 21 and seed["adopted"] == []


def test_the_pool_of_twelve_falls_at_the_top_of_the_ranking(seed: dict[str, Any]) -> None:
    (why,) = candidate(seed, "pool-12")["rejected_by"]
    assert (why["corpus"], why["query_class"], why["measures"]) == ("synthetic", "lookup", ["nDCG@5", "RR"])
    assert (why["measure"], why["delta"]) == ("RR", -0.0178)


@pytest.mark.parametrize(
    ("arm", "corpus", "query_class", "delta"),
    [
        ("rrf-60", "qmsum", "all", -0.0003),
        ("norm-zscore-arith", "synthetic", "all", -0.0687),
        ("norm-minmax-arith-w70-30", "synthetic", "lookup", -0.1671),
        ("norm-minmax-arith-w30-70", "qmsum", "lookup", -0.0112),
        ("pool-96", "qmsum", "all", -0.0009),
        ("pool-24", "synthetic", "lookup", -0.0044),
    ],
)
def test_the_reasons_that_the_seed_prints_are_among_ours(
    seed: dict[str, Any], arm: str, corpus: str, query_class: str, delta: float
) -> None:
    reasons = {(r["corpus"], r["query_class"]): r["delta"] for r in candidate(seed, arm)["rejected_by"]}
    assert reasons[corpus, query_class] == delta


def test_arms_that_no_printed_number_rejects_are_undecided(seed: dict[str, Any]) -> None:
    assert [row["arm"] for row in seed["undecided"]] == [
        "budget-24-12-4", "budget-96-12-4", "budget-96-12-4-pairs96", "pool-32",
    ]  # fmt: skip
    assert candidate(seed, "pool-32")["unprinted"]["qmsum"] == [name for name in NAMES if name != "nDCG@10"]
