"""Agreement on the seed's printed arms, on arms of our own, and over several corpora."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import bakeoff
import pytest

from lossmap import canon, layout
from lossmap.errors import LossmapError
from lossmap.layout import Layout
from lossmap.search import plan
from lossmap.studies import agreement, paired, printed

# Four arms: inert, rrf-60, geometric, weighted.
REAL = dict(zip(bakeoff.ARMS, (0.0, 0.01, -0.2, 0.02)))
MADE = dict(zip(bakeoff.ARMS, (0.0, 0.03, -0.3, -0.1)))
THIRD = dict(zip(bakeoff.ARMS, (0.0, 0.02, -0.1, -0.05)))
BENCHES = ["v6/real", "v6/made"]


@pytest.fixture(scope="module")
def seed() -> dict[str, Any]:
    return agreement.seed(layout.load(), "agreement")


def row(found: dict[str, Any], name: str, query_class: str = "all") -> dict[str, Any]:
    return next(row for row in found["rows"] if (row["set"], row["query_class"]) == (name, query_class))


@pytest.mark.parametrize(
    ("name", "query_class", "expected"),
    [
        ("fusion", "all", {"n": 9, "tau_b": 0.0, "rho": 0.133}),
        ("budget", "all", {"n": 8, "tau_b": 0.909, "rho": 0.973, "tau_p": 0.004}),
        ("pool", "all", {"n": 4, "tau_b": 0.667, "rho": 0.8}),
        ("pooled", "all", {"n": 21, "tau_b": 0.302, "tau_p": 0.066, "rho": 0.378, "r": 0.696}),
        ("fusion-without-collapse", "all", {"n": 7, "tau_b": -0.714, "tau_p": 0.030, "rho": -0.857, "rho_p": 0.014}),
        ("pooled-without-collapse", "all", {"n": 19, "tau_b": 0.131, "r": 0.113}),
        ("budget-moved", "all", {"n": 4, "tau_b": 0.667, "tau_p": 0.333}),
        ("pooled-without-budget-duplicates", "all", {"n": 19, "tau_b": 0.242}),
        ("pooled-without-pool-duplicates", "all", {"n": 19, "tau_b": 0.292}),
        ("fusion", "lookup", {"n": 9, "tau_b": -0.111}),
        (
            "fusion-without-collapse",
            "lookup",
            {"n": 7, "tau_b": -0.905, "tau_p": 0.003, "rho": -0.964, "rho_p": 0.0005},
        ),
        ("pool", "lookup", {"n": 4, "tau_b": 0.0, "rho": 0.2}),
    ],
)
def test_the_figures_of_the_printed_arms(
    seed: dict[str, Any], name: str, query_class: str, expected: dict[str, float]
) -> None:
    found = row(seed, name, query_class)
    assert {key: found[key] for key in expected} == pytest.approx(expected, abs=6e-4)


def test_printed_coefficients_stand_beside_within_their_rounding(seed: dict[str, Any]) -> None:
    beside = [r for r in seed["rows"] if r["printed"] and r["n"]]
    ranks = [abs(r["difference"][name]) for r in beside for name in ("tau_b", "rho") if name in r["printed"]]
    assert len(ranks) == 19 and max(ranks) < 1e-3
    assert (
        row(seed, "pooled")["printed"]["r"] == 0.697 and row(seed, "pooled-without-collapse")["printed"]["r"] == 0.115
    )
    assert row(seed, "pooled-without-collapse")["difference"]["r"] == pytest.approx(-0.0023, abs=1e-4)


def test_what_is_not_printed_arm_by_arm_is_null(seed: dict[str, Any]) -> None:
    for name in ("budget", "pooled"):
        found = row(seed, name, "lookup")
        assert found["n"] == 0 and found["tau_b"] is None and found["note"] == agreement.NOT_PRINTED
        assert found["printed"]["tau_b"] in (0.201, -0.005) and set(found["difference"].values()) == {None}


def test_signs_winners_axes_and_ranges_are_the_printed_ones(seed: dict[str, Any]) -> None:
    book, found = printed.of(layout.load()), seed["classes"]["all"]
    tally, cited = found["sign_agreement"]["pooled"], seed["printed_signs"]["all"]
    assert {name: tally[name] for name in ("agree", "disagree", "inert", "rate")} == {
        name: cited[name] for name in ("agree", "disagree", "inert", "rate")
    }
    for family in printed.CONTROLS:
        spread = found["ranges"][family]
        for corpus in printed.PAIR:
            assert spread[corpus] == printed.number(book[f"000.agreement.ranges.{family}.{corpus}"])
            best = found["winner"][family][corpus]
            assert best["arm"] == book[f"000.agreement.winners.{family}.all.{corpus}_picks"]
            assert best["delta"] == printed.number(book[f"000.agreement.winners.{family}.all.{corpus}"])
        assert f"{spread['ratio']:.1f}×" == book[f"000.agreement.ranges.{family}.ratio"]
    for axis in ("normalization", "weighting", "rank_constant", "candidate_pool", "combination"):
        assert found["by_axis"][axis]["agree"] == printed.number(book[f"000.agreement.axes.{axis}.agree_all"])
    verdicts = {(r["family"], r["arm"]): r["verdict"] for r in found["arms"]}
    assert verdicts == {(f, a): book[f"000.agreement.arms.{f}.{a}.verdict"] for f, a, _ in printed.names(book)}


def test_percents_move_the_pooled_ranks_and_no_family(seed: dict[str, Any]) -> None:
    found = seed["classes"]["all"]["invariance"]
    assert all(found[family]["same"] for family in printed.CONTROLS) and not found["pooled"]["same"]
    assert found["pooled"]["percent"]["tau_b"] == 0.402


def test_the_seed_document_is_canonical(seed: dict[str, Any]) -> None:
    assert canon.dumps(seed) == canon.dumps(agreement.seed(layout.load(), "agreement"))


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    made = bakeoff.root(tmp_path, monkeypatch, BENCHES, [*BENCHES, "third"])
    for bench, arms in zip([*BENCHES, "third"], (REAL, MADE, THIRD)):
        bakeoff.score(made, bench, arms)
    return made


def test_ours_is_the_same_on_our_arms(at: Layout) -> None:
    found = agreement.ours(at, "agreement")
    assert found["corpora"] == ["real", "made"] and set(found["classes"]) == {"all", "lookup"}
    assert row(found, "fusion")["n"] == 4 and row(found, "fusion")["tau_b"] == pytest.approx(1 / 3, abs=1e-4)
    tally = {"agree": 2, "disagree": 1, "inert": 1, "one_sided": 0}
    assert {name: row(found, "fusion")[name] for name in tally} == tally
    assert row(found, "fusion-without-collapse")["n"] == row(found, "fusion-moved")["n"] == 3
    assert [r["verdict"] for r in found["classes"]["all"]["arms"]] == ["inert", "agree", "agree", "disagree"]
    assert {card["judged_by"] for card in found["cards"]} == {"human"}


@pytest.mark.parametrize("lost", BENCHES)
def test_ours_survives_a_corpus_that_was_not_obtained(at: Layout, lost: str) -> None:
    bakeoff.lack(at, lost)
    found = agreement.ours(at, "agreement")
    assert found["rows"] == [] and found["classes"] == {} and "not both were obtained" in found["note"]


def of(found: dict[str, Any], part: str, query_class: str = "all") -> list[dict[str, Any]]:
    return [row for row in found[part] if (row["family"], row["query_class"]) == ("fusion", query_class)]


def test_the_matrix_has_pairs_arms_and_what_the_third_adjudicates(at: Layout) -> None:
    found = agreement.matrix(at, "agreement")
    (family,) = found["families"]
    assert [(r["corpora"], r["tau_b"]) for r in of(found, "pairs")] == [
        (["real", "made"], pytest.approx(1 / 3, abs=1e-4)),
        (["real", "third"], pytest.approx(1 / 3, abs=1e-4)),
        (["made", "third"], 1.0),
    ]
    assert all(len(r["tau_b_interval"]) == 2 and r["tier"] == "A" for r in of(found, "pairs"))
    (split,) = of(found, "sided")
    assert (split["arm"], split["corpus"], split["side"]) == (bakeoff.ARMS[3], "third", "second")
    assert (split["first"], split["second"]) == pytest.approx((0.02, -0.1)) and split["judged_by"]["made"] == "human"
    (third,) = of(found, "further")
    assert third["corpus"] == "third" and third["disputed"] == third["second"] == 1 and third["first"] == 0
    assert third["clear_second"] == split["clear"] and third["clear_first"] == 0
    assert [c["corpus"] for c in family["corpora"]] == ["real", "made", "third"]
    assert family["corpora"][0]["queries"] == 9 and family["corpora"][0]["meetings"] == 4
    sixty = {r["corpus"]: r["delta"] for r in of(found, "arms") if r["arm"] == bakeoff.ARMS[1]}
    assert sixty == pytest.approx({"real": 0.01, "made": 0.03, "third": 0.02})
    (real, *_) = of(found, "picks")
    assert (real["corpus"], real["arm"], real["tier"]) == ("real", bakeoff.ARMS[3], "A")


def test_the_matrix_survives_missing_corpora(at: Layout) -> None:
    for bench in ("v6/made", "third"):
        bakeoff.lack(at, bench)
    found = agreement.matrix(at, "agreement")
    assert found["families"][0]["not_obtained"] == ["v6/made", "third"]
    assert found["pairs"] == found["sided"] == found["further"] == []
    bakeoff.lack(at, "v6/real")
    found = agreement.matrix(at, "agreement")
    assert found["families"][0]["corpora"] == [] and not any(found[part] for part in agreement.PARTS)


def test_a_third_corpus_does_not_take_the_place_of_one_of_the_pair(at: Layout) -> None:
    assert agreement.matrix(at, "agreement")["families"][0]["notes"] == {"all": None, "lookup": None}
    bakeoff.lack(at, "v6/made")
    found = agreement.matrix(at, "agreement")
    assert len(of(found, "pairs")) == 1 and found["sided"] == found["further"] == []
    assert found["families"][0]["notes"]["all"] == agreement.NO_PAIR


def test_a_corpus_of_a_lower_tier_marks_what_rests_on_it(at: Layout) -> None:
    bakeoff.score(at, "third", THIRD, tier="B")
    found = agreement.matrix(at, "agreement")
    assert [r["tier"] for r in of(found, "pairs")] == ["A", "B", "B"]
    assert {r["tier"] for r in of(found, "sided")} == {r["tier"] for r in of(found, "further")} == {"B"}
    assert {r["tier"] for r in of(found, "arms") if r["corpus"] == "third"} == {"B"}


def test_a_delta_over_another_index_is_refused(at: Layout) -> None:
    path = at.stage("stage5") / "scored" / "third" / bakeoff.ARMS[1] / "metrics.json"
    document = canon.read_json(path)
    canon.write_json(path, {**document, "hashes": {**document["hashes"], "index": "another"}})
    with pytest.raises(LossmapError, match="differ in index") as no:
        agreement.matrix(at, "agreement")
    assert no.value.exit_code == 2


def test_a_re_ranker_is_not_asked_about_what_it_learned_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = bakeoff.root(tmp_path, monkeypatch, ["v6/real", "learned.test"], parts=True)
    for bench in ("v6/real", "learned.test"):
        bakeoff.score(made, bench, {**REAL, f"{bakeoff.CONTROL}.cross50.final12": 0.1})
    with pytest.raises(LossmapError, match=r"learned from[\s\S]*family parts, bench learned\.test") as no:
        agreement.matrix(made, "agreement")
    assert no.value.exit_code == 2


def test_the_re_ranker_of_the_full_scale_names_its_corpus() -> None:
    """The stanza is written elsewhere: were its key another, the refusal above would never be asked."""
    at = layout.load("full")
    assert paired._learned(at) == "foolmetwice.dev"
    with pytest.raises(LossmapError, match="learned from"):
        paired.require_unseen(at, "pool", ["v6/qmsum", "foolmetwice"])
    for family in at.config["scales"]["full"]["chapters"]["agreement"]["families"]:
        paired.require_unseen(at, family, plan.benches(at, "agreement", family))
