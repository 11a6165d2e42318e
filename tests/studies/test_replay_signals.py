"""Quartiles, switch and oracle: query-pooled, with the constant policies among the switches."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import replay_crafted
from replay_crafted import Crafted

from lossmap.judge import intervals
from lossmap.studies.replay import columns, signals

FOUND = replay_crafted.chapter()


def study(monkeypatch: pytest.MonkeyPatch, found: list[Crafted]) -> dict[str, Any]:
    replay_crafted.serve(monkeypatch, found)
    return signals.study(replay_crafted.layout())


def shaped(dense: list[float], fused: list[float], cosine: list[float], task: str = "t") -> Crafted:
    """A replay whose first queries have these scores and maximum cosines; the others repeat the last."""
    made = Crafted(task=task)
    size = len(made.asked)
    fill = lambda given: np.array(given + given[-1:] * (size - len(given)))  # noqa: E731
    made.table["s1"], made.table["s2"] = fill(dense), fill(fused)
    made.frozen.best[:] = fill(cosine).astype(np.float32)
    return made


def test_quarters_are_of_queries_and_a_value_on_a_cut_goes_up(monkeypatch: pytest.MonkeyPatch) -> None:
    document = study(monkeypatch, FOUND)
    for found in FOUND:
        for name in signals.SIGNALS:
            signal = getattr(found.frozen, name).astype(float)
            fusion = found.table["s2"] - found.table["s1"]
            cuts = np.quantile(signal, [0.25, 0.5, 0.75])
            rows = [
                r for r in document["rows"] if (r["model"], r["task"], r["signal"]) == (found.model, found.task, name)
            ]
            assert [row["quarter"] for row in rows] == [1, 2, 3, 4]
            for row in rows:
                mine = [i for i, value in enumerate(signal) if sum(cut <= value for cut in cuts) == row["quarter"] - 1]
                assert row["queries"] == len(mine) and row["mean"] == "pooled"
                assert row["deltas"]["fus"] == (pytest.approx(np.mean(fusion[mine])) if mine else None)
            said = next(
                row
                for row in document["correlations"]
                if (row["model"], row["task"], row["signal"]) == (found.model, found.task, name)
            )
            assert said["pearson"] == pytest.approx(np.corrcoef(signal, fusion)[0, 1])


def test_the_two_signals_differ_where_candidates_are_a_subset() -> None:
    found = FOUND[0].frozen
    assert (found.best > found.best_eligible)[found.subset].any()
    assert (found.best == found.best_eligible)[~found.subset].all()


def test_a_signal_that_tells_all_reaches_the_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    made = shaped([0.2] * 10 + [0.9] * 10 + [0.9], [0.6] * 10 + [0.5] * 10 + [0.5], [0.4] * 10 + [0.8] * 11)
    document = study(monkeypatch, [made])
    row = next(row for row in document["switches"] if row["signal"] == "best")
    assert (row["policy"], row["tau"], row["better_constant"]) == ("switch", 0.45, "dense")
    oracle = document["oracles"][0]
    assert row["switch"] == pytest.approx(oracle["oracle"])
    assert row["deltas"]["gain"] == pytest.approx(oracle["deltas"]["gap"]) == pytest.approx(10 * 0.4 / len(made.asked))


def test_a_switch_never_loses_to_the_constants_that_are_in_its_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every tau of the seed's grid is below the cosines, the grid cannot say 'fused' and its gain is negative."""
    made = shaped([0.3], [0.5], [0.97])
    row = next(row for row in study(monkeypatch, [made])["switches"] if row["signal"] == "best")
    assert (row["policy"], row["tau"], row["better_constant"]) == ("fused", None, "fused")
    assert row["deltas"]["gain"] == 0.0
    assert row["deltas"]["grid_gain"] == pytest.approx(-0.2)
    for found in study(monkeypatch, FOUND)["switches"]:
        assert found["deltas"]["gain"] >= 0 and found["deltas"]["gain"] >= found["deltas"]["grid_gain"]


def test_from_tau_on_the_dense_order_is_taken() -> None:
    made = shaped([0.3, 0.3], [0.5, 0.5], [0.5, 0.75])
    assert signals.switched(made, "best", 0.75)[:2].tolist() == [0.5, 0.3]
    assert signals.switched(made, "best", math.inf)[:2].tolist() == [0.5, 0.5]
    assert signals.switched(made, "best", -math.inf)[:2].tolist() == [0.3, 0.3]


def test_one_tau_serves_the_tasks_of_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [shaped([0.9], [0.5], [0.8], "a"), shaped([0.2], [0.5], [0.4], "b")]
    document = study(monkeypatch, tasks)
    row = next(row for row in document["shared"] if row["signal"] == "best")
    assert (row["policy"], row["tau"], row["tasks"]) == ("switch", 0.45, 2)
    assert row["switch"] == pytest.approx((0.9 + 0.5) / 2)
    assert row["better_constant"] == "dense" and row["deltas"]["gain"] == pytest.approx(0.15)
    assert row["deltas"]["over_best_constants"] == pytest.approx(0.0)


def test_the_interval_over_tasks_resamples_tasks_over_other_clusters_apart() -> None:
    values = FOUND[0].table["s2"] - FOUND[0].table["s1"]
    said = columns.over_tasks([(FOUND[0], {"fus": values})])
    alone = intervals.means_with_intervals(values[:, None], list(FOUND[0].frozen.clusters))
    assert said["deltas"]["fus"] == pytest.approx(float(alone.mean[0]))
    for unit, ends in alone.interval(0).items():
        assert said["intervals"]["fus"][unit] == pytest.approx(ends)
    other = replay_crafted.Crafted(task="other")
    renamed = tuple(f"other {name}" for name in FOUND[0].frozen.clusters)
    other.__dict__["frozen"] = replace(FOUND[0].frozen, clusters=renamed)
    once, same, apart = (
        columns.over_tasks([(found, {"fus": values}) for found in tasks])["intervals"]["fus"]["queries"]
        for tasks in ([FOUND[0]], [FOUND[0]] * 2, [FOUND[0], other])
    )
    # Over the same clusters a second task tells nothing new; over others it does.
    assert same == pytest.approx(once)
    assert apart[1] - apart[0] < 0.85 * (once[1] - once[0])


def test_an_oracle_takes_the_better_order_of_each_query(monkeypatch: pytest.MonkeyPatch) -> None:
    for found, row in zip(FOUND, study(monkeypatch, FOUND)["oracles"], strict=True):
        best = np.maximum(found.table["s1"], found.table["s2"])
        assert row["oracle"] == pytest.approx(best.mean()) and row["mean"] == "pooled"
        assert row["deltas"]["gap"] == pytest.approx(best.mean() - max(row["s1"], row["s2"]))
        assert row["s1_better"] + row["s2_better"] + row["tied"] == row["queries"]
