"""What another calibration would have done: every stage under the floors of other methods and of other samples.

A floor only says which of the frozen rows have a dense vote, so that nothing is recalled again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from lossmap.judge import decompose, intervals
from lossmap.layout import Layout
from lossmap.memory import frozen
from lossmap.memory.frozen import FLOOR_FACTOR, Frozen
from lossmap.studies.replay import columns, run
from lossmap.studies.replay.columns import MACRO, Floats, Row
from lossmap.studies.replay.run import Replayed

STAGES = ("s1", "s2", "s3")
BAND = {"lowest of the band": min, "highest of the band": max}
"""The samples of other seeds whose thresholds lie furthest apart."""


def study(at: Layout) -> dict[str, Any]:
    """floors.json: ``rows``, one a model, task and calibration: its stages, and minus those of the published one."""
    return {"rows": [row for each in run.replayed(at) for row in _rows(each)], "intervals": intervals.card()}


def _thresholds(found: Replayed) -> dict[str, dict[str, float]]:
    """Calibration to the threshold of each stored corpus."""
    groups = found.card["groups"]
    known = {method: {g["name"]: g["methods"][method] for g in groups} for method in groups[0]["methods"]}
    return {**known, **{name: {g["name"]: end(g["band"]) for g in groups} for name, end in BAND.items()}}


def under(found: Frozen, thresholds: dict[str, float]) -> Frozen:
    """The same frozen rows under other floors. Its counts of admitted rows are those of the old floor."""
    floor = np.array([np.float32(thresholds[group] * FLOOR_FACTOR) for group in found.groups], np.float32)
    return replace(found, floor=floor)


def _scored(found: Frozen) -> dict[str, Floats]:
    qrels = found.qrels()
    return {name: decompose.ndcg(qrels, frozen.ranking(found, frozen.order(found, name))) for name in STAGES}


def _rows(found: Replayed) -> Iterator[Row]:
    published = {name: run.values(found, name) for name in STAGES}
    for name, thresholds in _thresholds(found).items():
        values = _scored(under(found.frozen, thresholds))
        deltas = {stage: values[stage] - published[stage] for stage in STAGES}
        said = columns.measured(found, values, deltas, MACRO)
        ends = (min(thresholds.values()), max(thresholds.values()))
        yield {**run.head(found), "calibration": name, "threshold_low": ends[0], "threshold_high": ends[1], **said}
