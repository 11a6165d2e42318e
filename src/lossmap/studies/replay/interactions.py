"""Does fusion change sign with the model? The same queries and judgements, one dense arm a model.

The question is of an interaction: not whether fusion helps one model and not another, each against zero, but whether
its effects differ between two models, query by query (as studies/encoders asks it of meetings).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from lossmap.judge import intervals, multiplicity, permutation
from lossmap.layout import Layout
from lossmap.studies.replay import columns, run
from lossmap.studies.replay.columns import MACRO, Floats, Row
from lossmap.studies.replay.run import Replayed


def study(at: Layout) -> dict[str, Any]:
    """interactions.json: ``rows``, one a task and pair of models (the effect of fusion under the first minus that under
    the second); ``effects``, one a task and model (against zero); ``signs``, one a task, its models side by side.

    ``holm`` pays for the tasks of a pair, or of a model. Raises where two models replayed other queries of a task.
    """
    found = run.replayed(at)
    effects = [_effect(each) for each in found]
    pairs = [_pair(a, b) for mine in columns.by_task(found).values() for a, b in combinations(mine, 2)]
    for model in dict.fromkeys(row["model"] for row in effects):
        columns.adjust([row for row in effects if row["model"] == model])
    for pair in dict.fromkeys((row["a"], row["b"]) for row in pairs):
        columns.adjust([row for row in pairs if (row["a"], row["b"]) == pair])
    signs = [_signs(task, effects, pairs) for task in columns.by_task(found)]
    cards = {"intervals": intervals.card(), "permutation": permutation.card(), "multiplicity": _holm()}
    return {"rows": pairs, "effects": effects, "signs": signs, **cards}


def _holm() -> dict[str, Any]:
    return {**multiplicity.card(), "adjustment": "Holm step-down over the tasks of a pair of models, or of one model"}


def fusion(found: Replayed) -> Floats:
    """What fusion adds to the admitted list, query by query."""
    return run.values(found, "s2") - run.values(found, "s1")


def _effect(found: Replayed) -> Row:
    values = {stage: run.values(found, stage) for stage in ("s0", "s1", "s2")}
    row = {**run.head(found), **columns.measured(found, values, {"fus": fusion(found)}, MACRO)}
    return {**row, **_tested(found, fusion(found)), "sign": int(np.sign(row["deltas"]["fus"]))}


def _pair(first: Replayed, second: Replayed) -> Row:
    columns.require_alike(first, second)
    difference = fusion(first) - fusion(second)
    said = columns.measured(first, {"fus_a": fusion(first), "fus_b": fusion(second)}, {"fus": difference}, MACRO)
    turns = {np.sign(said["fus_a"]), np.sign(said["fus_b"])} == {-1.0, 1.0}
    clear = columns.clear(said["intervals"]["fus"])
    head = {**_common(first), "a": first.model, "b": second.model}
    return {**head, **said, **_tested(first, difference), "turns": turns, "differ": clear}


def _common(found: Replayed) -> Row:
    return {name: value for name, value in run.head(found).items() if name != "model"}


def _tested(found: Replayed, delta: Floats) -> Row:
    """p of sign flips of the macro mean, and the least effect that it could have shown.

    Each query's delta carries its subtask's weight. ``detectable`` is None where there is one cluster.
    """
    keep = columns.every(found)
    weighted = (delta * columns.weights(found, MACRO, keep))[:, None]
    groups = columns.clusters(found, keep)
    least = float(multiplicity.detectable(weighted, groups)[0])
    p_values = permutation.p_values(weighted, groups)[permutation.ALL].of(0)
    return {"p_values": p_values, "detectable": None if np.isnan(least) else least}


def _signs(task: str, effects: Sequence[Row], pairs: Sequence[Row]) -> Row:
    """The models of a task, weakest dense order first over all tasks, each with the sign of what fusion adds to it.

    ``turns``: signs differ; ``turns_clearly``: among effects whose interval leaves zero out; ``differ``: some pair of
    effects differs clearly; ``differ_holm``: at Holm's p over the tasks of its pair, below 0.05.
    """
    mine = [row for row in effects if row["task"] == task]
    between = [row for row in pairs if row["task"] == task]
    signs = [
        {
            "model": row["model"],
            "s0": row["s0"],
            "fus": row["deltas"]["fus"],
            "interval": row["intervals"]["fus"],
            "sign": row["sign"],
            "clear": columns.clear(row["intervals"]["fus"]),
        }
        for row in mine
    ]
    clearly = {sign["sign"] for sign in signs if sign["clear"]}
    level = 1 - multiplicity.LEVEL
    return {
        **{name: value for name, value in mine[0].items() if name in (*run.NAMED, "headline") and name != "model"},
        "mean": MACRO,
        "models": signs,
        "turns": {-1, 1} <= {sign["sign"] for sign in signs},
        "turns_clearly": {-1, 1} <= clearly,
        "differ": any(row["differ"] for row in between),
        "differ_holm": any((row["holm"]["meetings"] or 1) < level for row in between),
    }
