"""What the gate of the pool's size does to pools of each size (seed 004, section 4; spec/replay 4)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lossmap.judge import intervals
from lossmap.judge.decompose import share
from lossmap.layout import Layout
from lossmap.memory import frozen
from lossmap.memory.frozen import GATE_FACTOR, Ints, K
from lossmap.studies.replay import columns, run
from lossmap.studies.replay.columns import MACRO, Bools, Row
from lossmap.studies.replay.populations import relevant_rows
from lossmap.studies.replay.run import Replayed

DEPTHS = (10, 100)
"""First rows of the fused list of which those that the gate drops are counted."""
RANKS = 1000
"""No pool lets as deep a lexical rank pass: 41 rows at most (spec/replay 4.2)."""


def study(at: Layout) -> dict[str, Any]:
    """gate.json: ``rows``, one a model, task and group, with what the gate drops of the fused list and what it costs.

    ``lexical_rows``: how many first ranks of the lexical list can pass without a dense vote; ``loss_share``: the
    group's part of what losing groups cost the task; ``contribution`` sums over groups to the task's macro delta.
    """
    return {"rows": [row for each in run.replayed(at) for row in _groups(each)], "intervals": intervals.card()}


def lexical_rows(gate: float) -> int:
    """First ranks r of a lexical list with 1 / (K + r + 1) >= GATE_FACTOR * m(P) / (K + 1)."""
    return int((1.0 / (K + np.arange(RANKS) + 1) >= gate * GATE_FACTOR / (K + 1)).sum())


def _groups(found: Replayed) -> list[Row]:
    names = np.array(found.frozen.groups, object)
    effect = run.values(found, "s3") - run.values(found, "s2")
    weight = columns.weights(found, MACRO, columns.every(found))
    parts = {g["name"]: float((effect * weight)[names == g["name"]].sum() / len(names)) for g in found.card["groups"]}
    lost = sum(max(-part, 0.0) for part in parts.values())
    tops = {depth: frozen.order(found.frozen, "s2", depth=depth) for depth in DEPTHS}
    rows = []
    for group in found.card["groups"]:
        keep, part = names == group["name"], parts[group["name"]]
        said = columns.measured(found, _values(found), {"gate": effect}, MACRO, keep)
        cost = {"contribution": part, "loss_share": share(max(-part, 0.0), lost)}
        rows.append({**run.head(found), **_pool(group), **said, **cost, **_dropped(found, tops, keep)})
    return rows


def _values(found: Replayed) -> dict[str, columns.Floats]:
    return {stage: run.values(found, stage) for stage in ("s2", "s3")}


def _pool(group: Row) -> Row:
    passing = lexical_rows(group["gate"])
    return {
        "name": group["name"],
        "pool": group["pool"],
        "gate": group["gate"],
        "floor": group["floor"],
        "gate_above_floor": group["gate"] > group["floor"],
        "lexical_rows": passing,
        "lexical_rank_cut": passing - 1 if passing else None,
    }


def _dropped(found: Replayed, tops: dict[int, Ints], keep: Bools) -> Row:
    """Rows by branch among the first ranks of the fused list, and relevant rows at any depth, summed over queries."""
    mine = found.frozen
    kind = frozen.branch(mine)
    out: Row = {}
    for depth, top in tops.items():
        listed = top[keep][top[keep] >= 0]
        counts = np.bincount(kind[listed], minlength=4).tolist()
        by_branch = dict(zip(("dropped_by_cosine", "kept_by_cosine", "kept_by_rank", "dropped_by_rank"), counts))
        out |= {f"top{depth}_{name}": count for name, count in by_branch.items()}
        out[f"top{depth}_dropped_share"] = share(counts[0] + counts[3], len(listed))
    eligible = mine.dense_eligible >= 0
    for name, branch in (("cosine", 0), ("rank", 3)):
        out[f"relevant_dropped_by_{name}"] = int(relevant_rows(found, eligible & (kind == branch))[keep].sum())
    emptied = frozen.order(mine, "s3")[keep] >= 0
    out["fewer_than_ten"] = int((emptied.sum(axis=1) < np.minimum(10, mine.eligible[keep])).sum())
    return {**out, "emptied": int((~emptied.any(axis=1)).sum())}
