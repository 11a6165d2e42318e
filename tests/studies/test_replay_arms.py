"""Arms of tasks, and floors of other calibrations: differences query by query, over the same queries alone."""

from __future__ import annotations

import numpy as np
import pytest
import replay_crafted
from replay_crafted import Crafted, macro

from lossmap.errors import LossmapError
from lossmap.memory import frozen
from lossmap.studies.replay import arms, floors, run


def test_an_arm_is_held_against_the_task_that_it_varies(monkeypatch: pytest.MonkeyPatch) -> None:
    base, arm = Crafted(task="t0"), Crafted(task="t1", encoder=1, arm_of="t0")
    replay_crafted.serve(monkeypatch, [base, arm])
    (row,) = arms.study(replay_crafted.layout())["rows"]
    expected = macro(arm, arm.table["s2"]) - macro(base, base.table["s2"])
    assert row["deltas"]["s2"] == pytest.approx(expected) and row["arm_of"] == "t0" and not row["headline"]
    replay_crafted.serve(monkeypatch, [Crafted(task="t0", seed=9), arm])
    arm.__dict__["frozen"] = Crafted(task="t1", seed=2, pools=replay_crafted.POOLS[:2]).frozen
    with pytest.raises(LossmapError, match="other queries"):
        arms.study(replay_crafted.layout())


def test_the_floor_that_was_used_changes_nothing_and_none_at_all_gives_the_unfloored_fusion() -> None:
    found = Crafted().frozen
    groups = set(found.groups)
    same = {group: 2 * float(found.floor[found.groups.index(group)]) for group in groups}
    for stage in floors.STAGES:
        assert (frozen.order(floors.under(found, same), stage) == frozen.order(found, stage)).all()
    free = floors.under(found, dict.fromkeys(groups, -4.0))
    assert (frozen.order(free, "s2") == frozen.order(found, "s2nf")).all()


def test_what_a_model_judged_and_arms_enter_no_mean_over_tasks() -> None:
    some = [Crafted(task="t0"), Crafted(task="t1", judged_by="model"), Crafted(task="t2", arm_of="t0")]
    assert [each.task for each in run.headline(some)] == ["t0"]
    assert np.array([run.head(each)["headline"] for each in some]).tolist() == [True, False, False]
