"""The weight sweep: every weight of both grids against the shipped one."""

from __future__ import annotations

import pytest
import replay_crafted
from replay_crafted import macro

from lossmap.studies.replay import run, weights

FOUND = replay_crafted.chapter()


@pytest.fixture(autouse=True)
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    replay_crafted.serve(monkeypatch, FOUND)


def test_every_weight_of_both_grids_stands_once_with_its_delta_to_the_shipped_one() -> None:
    rows = weights.study(replay_crafted.layout())["rows"]
    assert len(rows) == len(FOUND) * len(weights.ALL) == len(FOUND) * 11
    for found in FOUND:
        mine = [row for row in rows if (row["model"], row["task"]) == (found.model, found.task)]
        assert [row["weight"] for row in mine if row["coarse"]] == list(run.WEIGHTS)
        assert [row["weight"] for row in mine if row["fine"]] == list(run.FINE)
        shipped = macro(found, found.table["s2"])
        for row in mine:
            expected = macro(found, found.table["s2" if row["weight"] == 1 else f"w{row['weight']:g}"])
            assert (row["s2"], row["delta"]) == (pytest.approx(expected), pytest.approx(expected - shipped))
            assert row["mean"] == "macro"
        assert mine[-1]["intervals"]["delta"] == {"meetings": [0.0, 0.0], "queries": [0.0, 0.0]}


def test_the_shipped_weight_is_the_fusion_itself() -> None:
    """Weight 1 is scored twice, once as a stage and once as a weight: the identity of spec/replay 5.7."""
    for found in FOUND:
        assert (found.table["w1"] == found.table["s2"]).all()


def test_the_best_weight_is_the_one_that_no_other_beats_and_is_said_to_be_chosen_in_sample() -> None:
    document = weights.study(replay_crafted.layout())
    for best in document["best"]:
        mine = [r for r in document["rows"] if (r["model"], r["task"]) == (best["model"], best["task"])]
        mine = [row for row in mine if row[best["grid"]]]
        assert best["s2"] == pytest.approx(max(row["s2"] for row in mine))
        assert [row["weight"] for row in mine if row[f"{best['grid']}_best"]] == [best["weight"]]
        assert best["chosen"] == "in sample" and best["deltas"]["over_shipped"] >= 0
        assert best["deltas"]["over_zero"] >= -1e-12


def test_one_weight_for_all_tasks_of_a_model() -> None:
    shared = weights.study(replay_crafted.layout())["shared"]
    for model in ("m0", "m1"):
        mine = [row for row in shared if row["model"] == model]
        assert [row["weight"] for row in mine] == list(weights.ALL)
        assert sum(row["best"] for row in mine) >= 1
        half = next(row for row in mine if row["weight"] == 0.5)
        tasks = [each for each in FOUND if each.model == model]
        assert half["s2"] == pytest.approx(sum(macro(each, each.table["w0.5"]) for each in tasks) / 2)
