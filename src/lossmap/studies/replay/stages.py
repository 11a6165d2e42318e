"""The stage table: what admission, fusion and gate add to the dense order (seed 004, section 2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lossmap.judge import decompose, intervals
from lossmap.judge.decompose import Decomposition
from lossmap.layout import Layout
from lossmap.memory import frozen
from lossmap.studies.replay import columns, run, weights
from lossmap.studies.replay.columns import MACRO, Bools, Row
from lossmap.studies.replay.run import Replayed

TRANSITIONS = {"s1": "adm", "s2": "fus", "s3": "gate"}


def study(at: Layout) -> dict[str, Any]:
    """stages.json: ``rows``, one a model, task and part.

    Means are of subtasks' means. Models are in the order of their mean dense score, ``models``.
    """
    found = run.replayed(at)
    return {
        "rows": [row for each in found for row in _parts(each)],
        "models": _models(found),
        "intervals": intervals.card(),
    }


def _models(found: list[Replayed]) -> list[Row]:
    """Mean over tasks of the dense order's task means; the order of models in every table."""
    return [
        {"model": model, "tasks": len(mine), "mean": MACRO, "s0": sum(run.macro(e, "s0") for e in mine) / len(mine)}
        for model, mine in columns.by_model(run.headline(found)).items()
    ]


def _parts(found: Replayed) -> Iterator[Row]:
    path, unfloored = run.decomposition(found), _unfloored(found)
    for part, keep in columns.parts(found):
        head = {**run.head(found), **part, "mean": MACRO}
        steps, (_, free) = (_rows(found, each, keep) for each in (path, unfloored))
        yield {**head, **_wide(steps, free), **_best(found, keep)}


def _unfloored(found: Replayed) -> Decomposition:
    """The diagnostic stage beside the path: fusion with nothing cut by the floor, against the dense order."""
    lists = [(name, frozen.ranking(found.frozen, frozen.order(found.frozen, name))) for name in ("s0", "s2nf")]
    return decompose.decompose(found.frozen.qrels(), lists)


def _rows(found: Replayed, path: Decomposition, keep: Bools) -> list[Row]:
    groups, ids = run.clusters(found), found.frozen.query_ids
    strata = dict(zip(ids, found.frozen.subtasks))
    return decompose.rows(path, None if groups is None else dict(zip(ids, groups)), keep, strata)


def _wide(steps: list[Row], free: Row) -> Row:
    """All stages in one row: nDCG@10 of each, what each adds, and harm H and gain C of the fusion."""
    fusion = next(step for step in steps if step["stage"] == "s2")
    named = [*steps, free]
    moves = {**{TRANSITIONS[step["stage"]]: step for step in steps[1:]}, "unfloored": free}
    spans = {step["stage"]: step["intervals"]["ndcg"] for step in named}
    spans |= {name: step["intervals"]["delta"] for name, step in moves.items()}
    return {
        "queries": fusion["queries"],
        "meetings": fusion["meetings"],
        **{step["stage"]: step["ndcg"] for step in named},
        "harm": fusion["harm"],
        "gain": fusion["gain"],
        **{name: fusion[name] for name in ("harmed", "helped", "unchanged")},
        "deltas": {name: step["delta"] for name, step in moves.items()},
        "intervals": {**spans, **{name: fusion["intervals"][name] for name in ("harm", "gain")}},
    }


def _best(found: Replayed, keep: Bools) -> Row:
    weight, mean = weights.best(found, run.WEIGHTS, keep)
    return {"best_weight": weight, "best_weight_s2": mean, "best_weight_chosen": weights.CHOSEN}
