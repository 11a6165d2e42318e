"""The crafted replay is what the frozen one computes: every list by plain sorts, and nDCG@10 of each."""

from __future__ import annotations

import json

import numpy as np
import pytest
import replay_crafted

from lossmap.memory import frozen
from lossmap.studies.replay import (
    gate,
    interactions,
    movement,
    populations,
    reservation,
    run,
    signals,
    stages,
    starvation,
    weights,
)


@pytest.mark.parametrize("seed", range(4))
def test_every_stage_and_weight_is_ordered_as_plain_sorts_order_it(seed: int) -> None:
    asked, found = replay_crafted.queries(seed), replay_crafted.frozen(seed)
    for stage, weight in run.columns().values():
        top = frozen.ranking(found, frozen.order(found, stage, weight))
        assert top == {query.query_id: replay_crafted.lists(query, stage, weight)[:10] for query in asked}, stage


def test_values_are_those_of_the_replay() -> None:
    made = replay_crafted.Crafted(seed=3)
    scored = run.scored(made.frozen)
    assert list(scored) == list(made.table)
    for name, values in scored.items():
        np.testing.assert_array_equal(values, made.table[name])


def test_the_pools_hold_the_cases_that_the_studies_split_by() -> None:
    found = replay_crafted.frozen(1)
    assert (found.admitted_eligible < 10).any() and (found.admitted_eligible >= 10).any()
    assert found.missing.any() and found.fallback.any() and found.subset.any() and not found.subset.all()
    assert (found.lexical == 0).any() and found.gate.max() > 1 / 3
    assert len(set(found.clusters)) < len(found.query_ids) and found.query_ids == tuple(sorted(found.query_ids))
    assert not found.working.all() and 0 < found.chance[found.chance > 0].min() < 1


def test_a_task_of_one_group_without_meetings_goes_through_every_study(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries stand for themselves, there is one part, and no document holds what JSON does not."""
    pools = (replay_crafted.Pool("only", 60, 0.2, 6),)
    found = [replay_crafted.Crafted(f"m{i}", "t", pools=pools, encoder=i) for i in range(2)]
    assert run.clusters(found[0]) is None
    replay_crafted.serve(monkeypatch, found)
    for study in (stages, weights, interactions, movement, signals, populations, gate, reservation, starvation):
        document = study.study(replay_crafted.layout())
        json.dumps(document, allow_nan=False)
        for row in document["rows"]:
            assert row.get("meetings", row.get("queries")) == row.get("queries")
            assert row.get("part", "task") == "task"
            for ends in row.get("intervals", {}).values():
                assert ends is None or ends["meetings"] == ends["queries"]
