"""Does the maximum cosine of a query say whether fusion will help it? Quartiles, a switch, an oracle (seed 004, 5).

All means are over queries, not over subtasks, as the seed's section 5 has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lossmap.judge import decompose, intervals
from lossmap.layout import Layout
from lossmap.studies.replay import columns, run
from lossmap.studies.replay.columns import POOLED, Floats, Row
from lossmap.studies.replay.interactions import fusion
from lossmap.studies.replay.run import Replayed

SIGNALS = ("best", "best_eligible")
"""The maximum cosine over the whole group, which the seed reads, and over the eligible rows."""
TAUS = tuple(round(0.30 + 0.05 * step, 2) for step in range(14))
CONSTANT = {"dense": float("-inf"), "fused": float("inf")}
"""Switches that never switch; the seed's grid has neither, so its gain can be negative (spec/replay 5.6)."""
DENSE, FUSED = "s1", "s2"


def study(at: Layout) -> dict[str, Any]:
    """signals.json: ``rows``, one a model, task, signal and quarter; ``correlations``, ``switches`` (best tau of a
    task) and ``shared`` (one tau for the tasks of a model), by signal; ``oracles``, one a model and task.

    A switch takes the admitted dense order from tau on, else the fusion. Every tau is chosen in sample.
    """
    found = run.replayed(at)
    return {
        "rows": [row for each in found for name in SIGNALS for row in _quarters(each, name)],
        "correlations": [_correlation(each, name) for each in found for name in SIGNALS],
        "switches": [_switch(each, name) for each in found for name in SIGNALS],
        "shared": [
            _shared(m, mine, name) for m, mine in columns.by_model(run.headline(found)).items() for name in SIGNALS
        ],
        "oracles": [_oracle(each) for each in found],
        "grid": list(TAUS),
        "chosen": "in sample",
        "intervals": intervals.card(),
    }


def _signal(found: Replayed, name: str) -> Floats:
    return np.asarray(getattr(found.frozen, name), np.float64)


def _quarters(found: Replayed, name: str) -> list[Row]:
    signal, effect = _signal(found, name), fusion(found)
    cuts = decompose.quartiles(signal, effect)["cuts"]
    place = (signal[:, None] >= np.array(cuts)).sum(axis=1)
    rows = []
    for quarter in range(4):
        keep = place == quarter
        span = [float(end(signal[keep])) if keep.any() else None for end in (np.min, np.max)]
        head = {**run.head(found), "signal": name, "quarter": quarter + 1, "from": span[0], "to": span[1]}
        rows.append({**head, **columns.measured(found, {}, {"fus": effect}, POOLED, keep)})
    return rows


def _correlation(found: Replayed, name: str) -> Row:
    said = decompose.quartiles(_signal(found, name), fusion(found))
    head = {**run.head(found), "signal": name, "mean": POOLED, "queries": len(found.frozen.query_ids)}
    cuts = dict(zip(("cut_25", "cut_50", "cut_75"), said["cuts"]))
    return {**head, **cuts, "pearson": said["pearson"], "constant": said["pearson"] is None}


def switched(found: Replayed, name: str, tau: float) -> Floats:
    """nDCG@10 (Q,) of the dense order where the signal reaches ``tau``, else of the fusion."""
    return np.where(_signal(found, name) >= tau, run.values(found, DENSE), run.values(found, FUSED))


def _policy(tau: float) -> Row:
    named = next((policy for policy, constant in CONSTANT.items() if tau == constant), None)
    return {"policy": named or "switch", "tau": None if named else tau}


def _choose(means: dict[float, float]) -> float:
    """The tau of the highest mean; a constant policy before a switch that is no better, then the smallest."""
    least = max(means.values()) - decompose.BAND
    return next(tau for tau, mean in means.items() if mean >= least)


def _constant(dense: float, fused: float) -> str:
    return "dense" if dense >= fused else "fused"


def _switch(found: Replayed, name: str) -> Row:
    """The best switch of a task against the better constant policy, with the constants in the grid and without."""
    means = {tau: float(switched(found, name, tau).mean()) for tau in (*CONSTANT.values(), *TAUS)}
    tau, inner = _choose(means), _choose({tau: means[tau] for tau in TAUS})
    better = _constant(*(means[tau] for tau in CONSTANT.values()))
    base = switched(found, name, CONSTANT[better])
    values = {"s1": run.values(found, DENSE), "s2": run.values(found, FUSED), "switch": switched(found, name, tau)}
    deltas = {"gain": values["switch"] - base, "grid_gain": switched(found, name, inner) - base}
    said = columns.measured(found, values, deltas, POOLED)
    return {**run.head(found), "signal": name, **_policy(tau), "grid_tau": inner, "better_constant": better, **said}


def _shared(model: str, found: Sequence[Replayed], name: str) -> Row:
    """One tau for every task of a model: the plain mean over tasks of query-pooled means.

    ``gain`` is over the better constant for all tasks; ``over_best_constants`` over the better constant of each.
    """
    means = {
        tau: float(np.mean([switched(each, name, tau).mean() for each in found])) for tau in (*CONSTANT.values(), *TAUS)
    }
    tau, (dense, fused) = _choose(means), (means[tau] for tau in CONSTANT.values())
    better = CONSTANT[_constant(dense, fused)]
    against = {"gain": lambda each: better, "over_best_constants": _best_constant}
    columns_ = [
        (each, {k: switched(each, name, tau) - switched(each, name, other(each)) for k, other in against.items()})
        for each in found
    ]
    head = {"model": model, "signal": name, "tasks": len(found), "mean": POOLED, **_policy(tau)}
    said = {"better_constant": _constant(dense, fused), "s1": dense, "s2": fused, "switch": means[tau]}
    return {**head, **said, **columns.over_tasks(columns_)}


def _best_constant(found: Replayed) -> float:
    return CONSTANT[_constant(float(run.values(found, DENSE).mean()), float(run.values(found, FUSED).mean()))]


def _oracle(found: Replayed) -> Row:
    """The better of admitted dense order and fusion, query by query, over the better constant."""
    values = np.column_stack([run.values(found, stage) for stage in (DENSE, FUSED)])
    said = decompose.oracle(values, (DENSE, FUSED), run.clusters(found))
    return {
        **run.head(found),
        "mean": POOLED,
        "queries": said["queries"],
        **said["means"],
        "better_constant": "dense" if said["best_constant"] == DENSE else "fused",
        "oracle": said["oracle"],
        "deltas": {"gap": said["gap"]},
        "intervals": said["intervals"],
        "s1_better": said["strictly_best"][DENSE],
        "s2_better": said["strictly_best"][FUSED],
        "tied": said["tied"],
    }
