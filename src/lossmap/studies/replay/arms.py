"""Tasks that vary one thing of another: what collapsing equal texts, or stripping punctuation, does to every stage."""

from __future__ import annotations

from typing import Any

from lossmap.judge import intervals
from lossmap.layout import Layout
from lossmap.studies.replay import columns, run
from lossmap.studies.replay.columns import MACRO, Row
from lossmap.studies.replay.run import Replayed

STAGES = ("s0", "s2", "s3")


def study(at: Layout) -> dict[str, Any]:
    """arms.json: ``rows``, one a model and arm: its stages minus those of the task that it varies, query by query.

    Raises (exit 3) where the two were asked other queries.
    """
    found = {(each.model, each.task): each for each in run.replayed(at)}
    arms = [(each, found.get((each.model, each.card["arm_of"]))) for each in found.values() if each.card.get("arm_of")]
    rows = [_row(arm, base) for arm, base in arms if base is not None]
    return {"rows": rows, "intervals": intervals.card()}


def _row(arm: Replayed, base: Replayed) -> Row:
    columns.require_alike(arm, base)
    values = {
        f"{stage}_{side}": run.values(each, stage) for stage in STAGES for side, each in (("arm", arm), ("base", base))
    }
    deltas = {stage: values[f"{stage}_arm"] - values[f"{stage}_base"] for stage in STAGES}
    return {**run.head(arm), "arm_of": base.task, **columns.measured(arm, values, deltas, MACRO)}
