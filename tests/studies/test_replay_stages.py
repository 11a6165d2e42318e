"""The stage table: deltas of stages, each part of a task under its own label, harm and gain, the best weight."""

from __future__ import annotations

import numpy as np
import pytest
import replay_crafted
from replay_crafted import Crafted, macro

from lossmap.judge import intervals
from lossmap.studies.replay import run, stages, weights

FOUND = replay_crafted.chapter()


@pytest.fixture(autouse=True)
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    replay_crafted.serve(monkeypatch, FOUND)


def test_a_row_says_what_each_stage_adds_as_means_of_subtask_means() -> None:
    document = stages.study(replay_crafted.layout())
    rows = [row for row in document["rows"] if row["part"] == "task"]
    assert [(row["model"], row["task"], row["mean"]) for row in rows] == [
        (each.model, each.task, "macro") for each in FOUND
    ]
    for found, row in zip(FOUND, rows, strict=True):
        means = {stage: macro(found, found.table[stage]) for stage in ("s0", "s1", "s2", "s3", "s2nf")}
        assert {stage: row[stage] for stage in means} == pytest.approx(means)
        expected = {"adm": ("s1", "s0"), "fus": ("s2", "s1"), "gate": ("s3", "s2"), "unfloored": ("s2nf", "s0")}
        assert row["deltas"] == pytest.approx({name: means[a] - means[b] for name, (a, b) in expected.items()})
        assert row["gain"] - row["harm"] == pytest.approx(row["deltas"]["fus"])
        fusion = found.table["s2"] - found.table["s1"]
        assert (row["harmed"], row["helped"]) == (int((fusion < -1e-12).sum()), int((fusion > 1e-12).sum()))


def test_subtasks_and_groups_have_rows_of_their_own_queries() -> None:
    rows = [
        row for row in stages.study(replay_crafted.layout())["rows"] if row["task"] == "t0" and row["model"] == "m0"
    ]
    found = FOUND[0].frozen
    assert {row["name"] for row in rows if row["part"] == "subtask"} == set(found.subtasks)
    assert {row["name"]: row["pool"] for row in rows if row["part"] == "group"} == dict(zip(found.groups, found.size))
    for row in rows:
        names = {"task": ("t0",) * len(found.query_ids), "subtask": found.subtasks, "group": found.groups}[row["part"]]
        keep = np.array([name == row["name"] for name in names])
        assert row["queries"] == keep.sum()
        if row["part"] == "subtask":
            assert row["s3"] == pytest.approx(FOUND[0].table["s3"][keep].mean())


def test_intervals_are_paired_and_of_the_macro_mean() -> None:
    row = stages.study(replay_crafted.layout())["rows"][0]
    found = FOUND[0]
    weight = [1 / found.frozen.subtasks.count(subtask) for subtask in found.frozen.subtasks]
    weight = np.array(weight) * len(weight) / len(set(found.frozen.subtasks))
    change = (found.table["s3"] - found.table["s2"]) * weight
    expected = intervals.means_with_intervals(change[:, None], list(found.frozen.clusters)).interval(0)
    for unit, ends in expected.items():
        assert row["intervals"]["gate"][unit] == pytest.approx(ends)
    assert row["meetings"] == len(set(found.frozen.clusters)) < row["queries"]


def test_models_stand_with_their_mean_dense_score() -> None:
    models = stages.study(replay_crafted.layout())["models"]
    assert [row["model"] for row in models] == ["m0", "m1"]
    assert models[0]["s0"] == pytest.approx(sum(macro(each, each.table["s0"]) for each in FOUND[:2]) / 2)


def test_the_best_weight_of_equals_is_the_smallest() -> None:
    made = Crafted()
    for weight in run.WEIGHTS:
        made.table[f"w{weight:g}"] = np.full(len(made.asked), 0.5 if weight in (0.25, 0.75) else 0.25)
    made.table["s2"] = made.table["w1"]
    assert weights.best(made, run.WEIGHTS) == (0.25, pytest.approx(0.5))
    made.table["w0.75"] = np.full(len(made.asked), 0.6)
    assert weights.best(made, run.WEIGHTS) == (0.75, pytest.approx(0.6))
