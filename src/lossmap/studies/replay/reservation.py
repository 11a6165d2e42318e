"""What the reservation invariant recovers: no stage leaves fewer than min(10, n) of n eligible rows (seed 004, 7)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lossmap.judge import intervals
from lossmap.judge.decompose import share
from lossmap.layout import Layout
from lossmap.memory import frozen
from lossmap.memory.frozen import RESERVED
from lossmap.studies.replay import columns, run
from lossmap.studies.replay.columns import MACRO, Row
from lossmap.studies.replay.run import Replayed

VARIANTS = {
    "s3r": "the gate as it is, refilled from the reserved rows",
    "s3g1": "the gate without its cut of lexical ranks, refilled",
    "s3g2": "no gate on fused rows, refilled",
}
STAGES = ("s0", "s1", "s2", "s3", *VARIANTS)


def study(at: Layout) -> dict[str, Any]:
    """reservation.json: ``rows``, one a model and task; each variant against the gated, the fused and the dense
    list. ``recovered``: the part of s2 - s3 that comes back, and ``recovered_of_all``: of s0 - s3; None where there is
    no such loss. Over 1: more than was lost."""
    found = run.replayed(at)
    return {
        "rows": [_row(each) for each in found],
        "variants": VARIANTS,
        "intervals": intervals.card(),
    }


def _row(found: Replayed) -> Row:
    values = {stage: run.values(found, stage) for stage in STAGES}
    deltas = {
        f"{stage}_over_{before}": values[stage] - values[before] for stage in VARIANTS for before in ("s3", "s2", "s0")
    }
    deltas |= {"gate": values["s3"] - values["s2"], "all": values["s3"] - values["s0"]}
    said = columns.measured(found, values, deltas, MACRO)
    return {**run.head(found), **said, **_recovered(said), **_refilled(found)}


def _recovered(said: Row) -> Row:
    """Shares of the loss of the gate, and of the whole path, that each variant gives back."""
    out: Row = {}
    for stage in VARIANTS:
        back = said["deltas"][f"{stage}_over_s3"]
        for name, loss in (("recovered", -said["deltas"]["gate"]), ("recovered_of_all", -said["deltas"]["all"])):
            out[f"{stage}_{name}"] = share(back, loss) if loss > 1e-12 else None
    return out


def _refilled(found: Replayed) -> Row:
    """Queries whose list of a stage is shorter than min(RESERVED, eligible): those that the invariant touches."""
    least = np.minimum(RESERVED, found.frozen.eligible)
    short = {
        stage: int(((frozen.order(found.frozen, stage) >= 0).sum(axis=1) < least).sum()) for stage in ("s1", "s2", "s3")
    }
    return {f"{stage}_short": count for stage, count in short.items()}
