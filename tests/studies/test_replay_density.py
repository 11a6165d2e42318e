"""The density ratio on held-out queries: cross-fitted by cluster, beside the stages and a weight chosen alike."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import replay_crafted
from replay_crafted import Crafted, Pool, macro

from lossmap.judge import decompose
from lossmap.memory import density as ratios
from lossmap.memory import frozen
from lossmap.studies.replay import density, folds, weights

FOUND = replay_crafted.chapter(models=2, tasks=1)


def test_a_cluster_is_in_one_fold_and_a_task_has_the_same_folds_under_every_model() -> None:
    fold = folds.dealt(FOUND[0])
    assert (fold == folds.dealt(FOUND[1])).all() and set(fold.tolist()) == set(range(5))
    of: dict[str, set[int]] = {}
    for name, number in zip(FOUND[0].frozen.clusters, fold.tolist()):
        of.setdefault(name, set()).add(number)
    assert all(len(some) == 1 for some in of.values())
    sizes = np.bincount([min(some) for some in of.values()])
    assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("reading", ratios.READINGS)
def test_labels_of_a_query_do_not_move_its_own_rows(reading: str) -> None:
    made = Crafted(pools=(Pool("large", 300, 0.05, 40),))
    fold = folds.dealt(made)
    top, _ = density.held_out(made, fold, reading)
    mine = (fold == 2)[made.frozen.query]
    other = Crafted(pools=(Pool("large", 300, 0.05, 40),))
    turned = np.where(mine & (made.frozen.lex > 200), True, made.frozen.label)
    other.__dict__["frozen"] = replace(made.frozen, label=turned)
    moved, _ = density.held_out(other, fold, reading)
    assert (moved[fold == 2] == top[fold == 2]).all() and (moved[fold != 2] != top[fold != 2]).any()


def test_evidence_that_holds_for_other_queries_is_found_and_used() -> None:
    """Relevant rows come early on half of the lexical lists: a table that reads it is above the dense order."""
    made = Crafted(pools=(Pool("large", 300, 0.05, 150),))
    row = density._rows(made)[1]
    assert row["reading"] == "ranks" and row["deltas"]["over_dense"] > 0.03
    low, _ = row["intervals"]["over_dense"]["queries"]
    assert low > 0 and row["nats"] > 1 and row["flat"] == 0 and row["moved"] > 0.5


def test_every_column_is_scored_alike_and_deltas_are_paired(monkeypatch: pytest.MonkeyPatch) -> None:
    replay_crafted.serve(monkeypatch, FOUND)
    document = density.study(replay_crafted.layout())
    json.dumps(document, allow_nan=False)
    assert len(document["rows"]) == len(FOUND) * len(ratios.READINGS)
    for place, row in enumerate(document["rows"]):
        found = FOUND[place // len(ratios.READINGS)]
        top, _ = density.held_out(found, folds.dealt(found), row["reading"])
        mine = decompose.ndcg(found.frozen.qrels(), frozen.ranking(found.frozen, top))
        assert row["density"] == pytest.approx(macro(found, mine)) and row["mean"] == "macro"
        for name, stage in density.AGAINST.items():
            assert row[stage] == pytest.approx(macro(found, found.table[stage]))
            assert row["deltas"][f"over_{name}"] == pytest.approx(row["density"] - row[stage])
        assert set(row["intervals"]) == {*density.AGAINST.values(), "constant", "best", "density", *row["deltas"]}
        assert 0 <= row["proved"] <= 1 and row["relevant"] > 0 and row["null"] > row["relevant"]


def test_the_constant_weight_is_chosen_on_the_other_folds() -> None:
    for found in FOUND:
        fold = folds.dealt(found)
        values, chosen = density._constant(found, fold)
        for number in range(5):
            weight, _ = weights.best(found, weights.ALL, fold != number)
            assert chosen[number] == weight
            held = fold == number
            assert (values[held] == found.table["s2" if weight == 1 else f"w{weight:g}"][held]).all()


def test_one_cluster_has_no_other_fold_and_the_dense_order_stays() -> None:
    made = Crafted(pools=(Pool("scenes", 90, 0.25, 6, subset=True, clusters=1),))
    top, said = density.held_out(made, folds.dealt(made), "scores")
    assert (top == frozen.order(made.frozen, "s0")).all() and said["flat"] == 1 and said["proved"] == 1
