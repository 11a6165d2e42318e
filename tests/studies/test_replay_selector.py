"""The selector: features by plain loops, nothing of a query in its own choice, and a share of the oracle's gap."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import replay_crafted
from replay_crafted import Crafted, Pool

from lossmap.studies.replay import folds, selector

FOUND = replay_crafted.chapter()
MANY = (Pool("large", 300, 0.05, 60),)


def shaped(dense: np.ndarray, fused: np.ndarray) -> Crafted:
    made = Crafted(pools=MANY)
    made.table["s1"], made.table["s2"] = dense, fused
    return made


def test_features_are_what_both_arms_show_of_the_eligible_rows() -> None:
    found = FOUND[0]
    for query, mine in zip(found.asked, selector.features(found.frozen), strict=True):
        ranked = [row for row in query.dense if row in query.eligible]
        listed = [row for row in query.lex if row in query.eligible]
        cosine = [float(query.cosine[row]) for row in ranked]
        admitted = sum(bool(query.cosine[row] >= query.floor) for row in ranked)
        expected = (
            cosine[0],
            cosine[0] - cosine[min(9, len(ranked) - 1)],
            len(listed) / len(ranked),
            len(set(ranked[:10]) & set(listed[:10])) / 10,
            math.log(1 + admitted),
            math.log(1 + len(ranked)),
        )
        assert mine.tolist() == pytest.approx(list(expected), abs=1e-6)


def test_ridge_is_least_squares_with_rows_that_hold_the_coefficients_down() -> None:
    generator = np.random.Generator(np.random.PCG64(1))
    table, target = generator.normal(3, 2, (50, 6)), generator.normal(1, 1, 50)
    table[:, 4] = 7.0
    centre, scale, coefficients, level = selector.ridge(table, target, 0.1)
    x = np.where(np.isinf(scale), 0, (table - table.mean(axis=0)) / np.where(np.isinf(scale), 1, table.std(axis=0)))
    longer = np.vstack([x, np.sqrt(0.1 * 50) * np.eye(6)])
    expected = np.linalg.lstsq(longer, np.concatenate([target - target.mean(), np.zeros(6)]), rcond=None)[0]
    assert coefficients == pytest.approx(expected) and level == pytest.approx(target.mean())
    assert coefficients[4] == 0
    assert not selector.predicted(table, selector.ridge(table[:0], target[:0], 0.1)).any()


def test_a_feature_that_tells_the_sign_reaches_most_of_the_oracle() -> None:
    best = Crafted(pools=MANY).frozen.best_eligible
    low = best < np.median(best)
    row = selector._row(shaped(np.where(low, 0.2, 0.6), np.where(low, 0.6, 0.2)))
    assert row["oracle"] == pytest.approx(0.6) and row["reached"] > 0.7 and row["right_share"] > 0.85
    assert row["coefficients"]["best"] == min(row["coefficients"].values()) < 0
    assert row["intervals"]["reached"]["queries"][0] > 0.4


def test_noise_makes_it_cautious_and_the_constant_is_not_missed() -> None:
    """Where the fusion is better whatever the features say, no query is turned away from it."""
    generator = np.random.Generator(np.random.PCG64(2))
    noise = generator.normal(0, 0.01, 60)
    row = selector._row(shaped(np.full(60, 0.3), 0.5 + noise))
    assert (row["fused_share"], row["deltas"]["gain"], row["constants"]) == (1.0, 0.0, ["fused"] * 5)
    assert row["penalties"] == [selector.PENALTIES[0]] * 5
    assert (row["deltas"]["gap"], row["reached"], row["intervals"]["reached"]) == (0.0, None, None)


def test_what_a_query_scores_does_not_decide_its_own_choice() -> None:
    generator = np.random.Generator(np.random.PCG64(3))
    dense, fused = generator.random(60), generator.random(60)
    made = shaped(dense, fused)
    before, fold = selector.selected(made), folds.dealt(made)
    held = fold == 1
    after = selector.selected(shaped(np.where(held, 1.0, dense), np.where(held, 0.0, fused)))
    assert (before["fused"][held] == after["fused"][held]).all()
    assert before["penalties"][1] == after["penalties"][1]
    assert (before["constant"][held] == after["constant"][held]).all()


def test_the_penalty_is_chosen_by_what_it_achieves_on_inner_folds() -> None:
    found = FOUND[0]
    table, fold = selector.features(found.frozen), folds.dealt(found)
    values = np.column_stack([found.table["s1"], found.table["s2"]])
    keep = fold != 0
    achieved = {}
    for penalty in selector.PENALTIES:
        total = 0.0
        for number in (1, 2, 3, 4):
            train, held = keep & (fold != number), fold == number
            fitted = selector.ridge(table[train], values[train, 1] - values[train, 0], penalty)
            total += values[held][np.arange(held.sum()), selector.predicted(table[held], fitted).astype(int)].sum()
        achieved[penalty] = total
    chosen = selector.penalty_for(table[keep], values[keep], fold[keep])
    assert achieved[chosen] == pytest.approx(max(achieved.values()))


def test_the_document_is_pooled_and_says_what_of_the_gap_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    replay_crafted.serve(monkeypatch, FOUND)
    document = selector.study(replay_crafted.layout())
    json.dumps(document, allow_nan=False)
    for found, row in zip(FOUND, document["rows"], strict=True):
        made = selector.selected(found)
        chosen = np.where(made["fused"], found.table["s2"], found.table["s1"])
        constant = np.where(made["constant"], found.table["s2"], found.table["s1"])
        assert row["mean"] == "pooled" and row["selected"] == pytest.approx(chosen.mean())
        assert row["oracle"] == pytest.approx(np.maximum(found.table["s1"], found.table["s2"]).mean())
        assert row["deltas"]["gain"] == pytest.approx((chosen - constant).mean())
        assert row["reached"] == pytest.approx(row["deltas"]["gain"] / row["deltas"]["gap"])
        gaps = np.maximum(found.table["s1"], found.table["s2"]) - constant > 0
        if (spans := row["intervals"]["reached"]) is None:
            assert gaps.sum() < 10  # a resample that draws none of them has no gap to reach a share of
        else:
            assert spans["meetings"][0] <= row["reached"] <= spans["meetings"][1]
    assert [row["model"] for row in document["models"]] == ["m0", "m1"]
    for row in document["models"]:
        mine = [each for each in document["rows"] if each["model"] == row["model"]]
        assert row["deltas"]["gap"] == pytest.approx(np.mean([each["deltas"]["gap"] for each in mine]))
