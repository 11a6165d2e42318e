"""Starved queries, and the formula for their share."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import replay_crafted

from lossmap.studies.replay import starvation

FOUND = replay_crafted.chapter()


@pytest.fixture(autouse=True)
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    replay_crafted.serve(monkeypatch, FOUND)


def chance(eligible: int, relevant: int, alpha: float, beta: float) -> float:
    found = starvation.chance(np.array([eligible]), np.array([relevant]), np.array([alpha]), np.array([beta]))
    return float(found[0])


@pytest.mark.parametrize(("eligible", "expected"), [(19, 1.0), (45, 0.9999), (196, 0.481), (200, 0.455)])
def test_the_formula_gives_the_numbers_of_the_spec(eligible: int, expected: float) -> None:
    """spec/replay 6.2: alpha = 0.05, nothing relevant."""
    assert chance(eligible, 0, 0.05, 0.5) == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize(("eligible", "alpha"), [(19, 0.68), (45, 0.32), (200, 0.077)])
def test_rates_that_starve_one_query_in_twenty(eligible: int, alpha: float) -> None:
    assert chance(eligible, 0, alpha, 0.5) == pytest.approx(0.05, abs=0.006)


def test_the_formula_is_the_sum_over_every_way_to_admit() -> None:
    alpha, beta, relevant, eligible = 0.7, 0.9, 4, 13
    total = 0.0
    for passed in product((0, 1), repeat=eligible):
        rates = [beta] * relevant + [alpha] * (eligible - relevant)
        if sum(passed) < 10:
            total += float(np.prod([rate if yes else 1 - rate for yes, rate in zip(passed, rates)]))
    assert chance(eligible, relevant, alpha, beta) == pytest.approx(total)


def test_bounds_of_the_rates_and_tiny_universes() -> None:
    assert chance(9, 2, 1.0, 1.0) == chance(500, 0, 0.0, 1.0) == 1.0
    assert chance(10, 2, 1.0, 1.0) == 0.0
    assert chance(40, 40, 0.5, 1.0) == 0.0


def test_queries_are_split_by_admitted_eligible_rows() -> None:
    document = starvation.study(replay_crafted.layout())
    for found in FOUND:
        mine = [r for r in document["rows"] if (r["model"], r["task"]) == (found.model, found.task)]
        rows = {row["split"]: row for row in mine}
        admitted = np.array([len(replay_crafted.lists(query, "s1")) for query in found.asked])
        masks = {"fewer": admitted < 10, "enough": admitted >= 10, "none": admitted == 0, "all": admitted >= 0}
        for split, keep in masks.items():
            row = rows[split]
            assert row["queries"] == keep.sum() and row["mean"] == "pooled"
            if keep.any():
                assert row["s0"] == pytest.approx(found.table["s0"][keep].mean())
                fusion = (found.table["s2"] - found.table["s1"])[keep]
                assert row["deltas"]["fus"] == pytest.approx(fusion.mean())
            else:
                assert row["s0"] is None and row["deltas"]["fus"] is None
        assert rows["none"]["s1"] in (None, 0.0)
        assert rows["all"]["universe_below_ten"] == sum(len(query.eligible) < 10 for query in found.asked)


def test_the_observed_share_stands_beside_the_predicted_one() -> None:
    for found, row in zip(FOUND, starvation.study(replay_crafted.layout())["formula"], strict=True):
        sets = [(query, query.eligible & query.gold) for query in found.asked]
        good = sum(int(query.cosine[g] >= query.floor) for query, gold in sets for g in gold)
        relevant = sum(len(gold) for _, gold in sets)
        passed = sum(len(replay_crafted.lists(query, "s1")) for query in found.asked)
        eligible = sum(len(query.eligible) for query in found.asked)
        assert row["alpha"] == pytest.approx((passed - good) / (eligible - relevant))
        assert row["beta"] == pytest.approx(good / relevant)
        each = [chance(len(query.eligible), len(gold), row["alpha"], row["beta"]) for query, gold in sets]
        assert row["predicted"] == pytest.approx(np.mean(each))
        starved = [len(replay_crafted.lists(query, "s1")) < 10 for query in found.asked]
        assert row["observed"] == pytest.approx(np.mean(starved))
        assert row["deltas"]["predicted_over_observed"] == pytest.approx(row["predicted"] - row["observed"])
        assert abs(row["deltas"]["predicted_by_group_over_observed"]) < abs(row["deltas"]["predicted_over_observed"])
