"""What the rule of one model and task left: its card, its frozen scores, and nDCG@10 of every stage and weight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lossmap import canon
from lossmap.judge import decompose
from lossmap.layout import Layout
from lossmap.memory import frozen, tasks
from lossmap.memory.frozen import Frozen

CHAPTER = "replay"
WEIGHTS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
FINE = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 1.0)
"""The two grids of lexical weights that seed 004 swept (spec/replay 3)."""
PATH = ("s0", "s1", "s2", "s3")
"""The stages that a recall has, in their order."""
NAMED = ("task", "model", "tier", "judged_by", "keyed", "corresponds")

Floats = NDArray[np.float64]


def folder(at: Layout, model: str, task: str) -> Path:
    """Where the rule of one model and task writes."""
    return at.build / CHAPTER / model / task


def columns() -> dict[str, tuple[str, float]]:
    """Every list that is scored: the stages as shipped, and the fusion under each weight of both grids."""
    weighted = {f"w{weight:g}": ("s2", weight) for weight in sorted({*WEIGHTS, *FINE})}
    return {**{stage: (stage, 1.0) for stage in frozen.STAGES}, **weighted}


def scored(found: Frozen) -> dict[str, Floats]:
    """nDCG@10 (Q,) of each of :func:`columns`, queries sorted: judge/decompose.ndcg to the last bit, without its lists.

    Labels are binary, so that the best list is one of min(relevant, 10) rows.
    """
    ideal = _discounted(np.arange(decompose.CUT) < found.relevant[:, None])
    reached = {
        name: _discounted(frozen.gains(found, frozen.order(found, stage, weight)))
        for name, (stage, weight) in columns().items()
    }
    return {name: np.divide(some, ideal, out=np.zeros(len(ideal)), where=ideal > 0) for name, some in reached.items()}


def _discounted(gains: NDArray[Any]) -> Floats:
    """Sum (Q,) of ``gains`` (Q, CUT) over log2(rank + 1), ranks from 1."""
    return np.asarray((gains * (1 / np.log2(np.arange(2, decompose.CUT + 2)))).sum(axis=1))


class Replayed:
    """One model over one task; files are read when they are asked for."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.card: dict[str, Any] = canon.read_json(place / "task.json")
        self.model: str = self.card["model"]
        self.task: str = self.card["task"]

    @cached_property
    def frozen(self) -> Frozen:
        return frozen.load(self.place / "frozen.npz")

    @cached_property
    def table(self) -> Mapping[str, Floats]:
        with np.load(self.place / "values.npz") as data:
            return {name: data[name] for name in data.files}


def models(at: Layout) -> list[str]:
    """The models of the chapter, in the order of config.yaml."""
    return list(at.config["scales"][at.scale]["chapters"][CHAPTER]["models"])


def of_model(at: Layout, model: str) -> list[Replayed]:
    """What a model has of every task of the scale, those that could not be had included."""
    return [Replayed(folder(at, model, task)) for task in tasks.names(at)]


def replayed(at: Layout) -> list[Replayed]:
    """What the chapter has of this scale: tasks that were obtained, models in the order of their mean dense score."""
    had = [each for model in models(at) for each in of_model(at, model) if each.card["obtained"]]
    means = {
        model: np.mean([macro(each, "s0") for each in headline(had) if each.model == model] or [0])
        for model in models(at)
    }
    return sorted(had, key=lambda each: (means[each.model], each.model))  # stable: tasks stay in order


def headline(found: Sequence[Replayed]) -> list[Replayed]:
    """Those that enter a mean or an adjustment over tasks: no arm of another task, none judged by a language model."""
    return [each for each in found if not each.card.get("arm_of") and each.card["judged_by"] != "model"]


def values(found: Replayed, stage: str, weight: float = 1.0) -> Floats:
    """nDCG@10 (Q,) of a stage; of the fusion under ``weight`` where that is not 1."""
    return found.table[stage if weight == 1.0 else f"w{weight:g}"]


def macro(found: Replayed, stage: str, weight: float = 1.0) -> float:
    """Mean over subtasks of the mean over their queries, as the seed's stage tables have it."""
    weights = decompose.macro(found.frozen.subtasks)
    return float(np.mean(values(found, stage, weight) * weights))


def decomposition(found: Replayed) -> decompose.Decomposition:
    """The four stages of the path, each by its first hundred rows."""
    rankings = [(stage, frozen.ranking(found.frozen, frozen.order(found.frozen, stage, depth=100))) for stage in PATH]
    return decompose.decompose(found.frozen.qrels(), rankings)


def head(found: Replayed) -> dict[str, Any]:
    """The fields that every row begins with."""
    return {**{name: found.card[name] for name in NAMED}, "headline": bool(headline([found]))}


def clusters(found: Replayed) -> list[str] | None:
    """What intervals resample whole: meetings; None where each query stands for itself."""
    same = found.frozen.clusters == found.frozen.query_ids
    return None if same else list(found.frozen.clusters)
