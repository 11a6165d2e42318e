"""How much a lexical vote should count: the fusion under every weight of the seed's two grids (seed 004, 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lossmap.judge import intervals
from lossmap.layout import Layout
from lossmap.studies.replay import columns, run
from lossmap.studies.replay.columns import MACRO, Bools, Row
from lossmap.studies.replay.run import Replayed

CHOSEN = "in sample"
"""The best weight is chosen on the queries that score it: no estimate of what it would do on others."""
SHIPPED = 1.0
ALL = tuple(sorted({*run.WEIGHTS, *run.FINE}))


def study(at: Layout) -> dict[str, Any]:
    """weights.json: ``rows``, one a model, task and weight; ``best``, one a model, task and grid; ``shared``, one a
    model and weight over all tasks. Deltas are to the shipped weight."""
    found = run.replayed(at)
    return {
        "rows": [row for each in found for row in _sweep(each)],
        "best": [row for each in found for row in _chosen(each)],
        "shared": [
            row for model, mine in columns.by_model(run.headline(found)).items() for row in _shared(model, mine)
        ],
        "grids": {name: list(grid) for name, grid in _grids().items()},
        "shipped": SHIPPED,
        "intervals": intervals.card(),
    }


def _grids() -> dict[str, Sequence[float]]:
    return {"coarse": run.WEIGHTS, "fine": run.FINE}


def best(found: Replayed, grid: Sequence[float], keep: Bools | None = None) -> tuple[float, float]:
    """The weight with the highest macro mean over the queries of ``keep``, and that mean; of equals the smallest."""
    chosen = columns.every(found) if keep is None else keep
    weight = columns.weights(found, MACRO, chosen)
    means = {w: float(np.mean(run.values(found, "s2", w)[chosen] * weight)) for w in sorted(grid)}
    least = max(means.values()) - 1e-12
    return next((w, mean) for w, mean in means.items() if mean >= least)


def _sweep(found: Replayed) -> list[Row]:
    """All weights resampled at once."""
    values = {f"{w:g}": run.values(found, "s2", w) for w in ALL}
    shipped = run.values(found, "s2", SHIPPED)
    said = columns.measured(found, values, {f"d{name}": mine - shipped for name, mine in values.items()}, MACRO)
    chosen = {name: best(found, grid)[0] for name, grid in _grids().items()}
    return [
        {
            **run.head(found),
            **{name: said[name] for name in ("mean", "queries", "meetings")},
            "weight": w,
            **{name: w in grid for name, grid in _grids().items()},
            **{f"{name}_best": w == weight for name, weight in chosen.items()},
            "s2": said[f"{w:g}"],
            "delta": said["deltas"][f"d{w:g}"],
            "intervals": {"s2": said["intervals"][f"{w:g}"], "delta": said["intervals"][f"d{w:g}"]},
        }
        for w in ALL
    ]


def _chosen(found: Replayed) -> list[Row]:
    """The best weight of each grid: against the shipped one, the dense order, and its own tail-filled w = 0."""
    rows = []
    for name, grid in _grids().items():
        weight, _ = best(found, grid)
        mine = run.values(found, "s2", weight)
        against = {"shipped": run.values(found, "s2", SHIPPED), "zero": run.values(found, "s2", 0.0)}
        against["dense"] = run.values(found, "s0")
        deltas = {f"over_{other}": mine - theirs for other, theirs in against.items()}
        head = {**run.head(found), "grid": name, "weight": weight, "chosen": CHOSEN}
        rows.append({**head, **columns.measured(found, {"s2": mine}, deltas, MACRO)})
    return rows


def _shared(model: str, found: Sequence[Replayed]) -> list[Row]:
    """One weight for all tasks of a model: the plain mean of their task means."""
    means = {w: float(np.mean([run.macro(each, "s2", w) for each in found])) for w in ALL}
    dense = float(np.mean([run.macro(each, "s0") for each in found]))
    head = {"model": model, "tasks": len(found), "mean": MACRO}
    return [
        {**head, "weight": w, "s0": dense, "s2": mean, "best": mean == max(means.values())} for w, mean in means.items()
    ]
