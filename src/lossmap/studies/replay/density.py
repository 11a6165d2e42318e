"""What one table of density ratios could do: estimated with labels on four fifths of the queries, tried on the rest.

An upper bound for the mode that has no labels, not a way to rank (spec/replay 6.5).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lossmap.judge import decompose, intervals
from lossmap.layout import Layout
from lossmap.memory import density, frozen
from lossmap.memory.frozen import ABSENT, Ints
from lossmap.studies.replay import columns, folds, run, weights
from lossmap.studies.replay.columns import MACRO, Bools, Floats, Row
from lossmap.studies.replay.run import Replayed

AGAINST = {"dense": "s0", "admitted": "s1", "fused": "s2", "unfloored": "s2nf", "refilled": "s3g2"}
"""What the ratio is set beside: it reads rows below the floor, as S0 and the unfloored fusion do, and gives every query
min(10, eligible) rows, as S0 and the refilled fusion do."""


def study(at: Layout) -> dict[str, Any]:
    """density.json: ``rows``, one a model, task and reading of the two scores.

    ``density`` is scored on queries whose labels its table never saw, ``constant`` is the fusion under the weight that
    is best on the queries of that table, ``best`` under the weight chosen in sample.
    """
    rows = [row for each in run.replayed(at) for row in _rows(each)]
    bins = {"parts": density.PARTS, "least": density.LEAST}
    return {"rows": rows, "folds": folds.FOLDS, "bins": bins, "grid": list(weights.ALL), "intervals": intervals.card()}


def _rows(found: Replayed) -> list[Row]:
    fold, qrels = folds.dealt(found), found.frozen.qrels()
    constant, weight = _constant(found, fold)
    best, _ = weights.best(found, weights.ALL)
    values = {stage: run.values(found, stage) for stage in AGAINST.values()}
    values |= {"constant": constant, "best": run.values(found, "s2", best)}
    others = {**AGAINST, "constant": "constant", "best": "best"}
    dense, rows = frozen.order(found.frozen, "s0"), []
    for reading in density.READINGS:
        top, said = held_out(found, fold, reading)
        mine = decompose.ndcg(qrels, frozen.ranking(found.frozen, top))
        deltas = {f"over_{name}": mine - values[column] for name, column in others.items()}
        measured = columns.measured(found, {**values, "density": mine}, deltas, MACRO)
        chosen = {"weights": weight, "best_weight": best, "moved": float((top != dense).any(axis=1).mean())}
        rows.append({**run.head(found), "reading": reading, **measured, **chosen, **said})
    return rows


def _constant(found: Replayed, fold: Ints) -> tuple[Floats, list[float]]:
    """nDCG@10 (Q,) of the fusion under the weight that is best on the other folds, and the weight of each fold."""
    values, chosen = np.zeros(len(fold)), []
    for number in np.unique(fold):
        train = fold != number
        weight = weights.best(found, weights.ALL, train)[0] if train.any() else weights.SHIPPED
        values[~train] = run.values(found, "s2", weight)[~train]
        chosen.append(weight)
    return values, chosen


def held_out(found: Replayed, fold: Ints, reading: str) -> tuple[Ints, Row]:
    """The first ten rows (Q, 10) of each query by the table of the other folds, and what there is to say of it.

    ``relevant`` and ``null``: rows that a table is made of, in the mean over folds. ``cells`` likewise. ``nats``: the
    most that the lexical side moves a row within one dense bin. ``flat``: tables that say nothing. ``proved``:
    queries whose ten rows no row can enter that was not kept.
    """
    kept = found.frozen
    v, l = density.read(kept, reading)  # noqa: E741
    score, bound = np.zeros(len(kept.row)), np.zeros(len(fold))
    tables: list[Row] = []
    for number in np.unique(fold):
        train: Bools = fold != number
        first, null = (part(kept, train, reading) for part in (density.relevant, density.null))
        ratio = density.fit(first, null)
        mine = ~train[kept.query]
        score[mine] = ratio.of(v[mine], l[mine])
        bound[~train] = density.unkept(kept, ratio, reading)[~train]
        tables.append(_table(ratio, len(first.dense), len(null.dense)))
    top = density.order(kept, score)
    tenth = np.where(top[:, -1] == ABSENT, -np.inf, score[top[:, -1]])
    within = (tenth > bound) | ((tenth == bound) & (kept.dense[top[:, -1]] < kept.depth)) | np.isneginf(bound)
    means = {name: float(np.mean([table[name] for table in tables])) for name in ("relevant", "null", "cells")}
    said = {"nats": max(table["nats"] for table in tables), "flat": sum(table["nats_all"] == 0 for table in tables)}
    return top, {**means, **said, "proved": float(within.mean())}


def _table(ratio: density.Ratio, relevant: int, null: int) -> Row:
    """Size and reach of one table; both axes rise."""
    log = ratio.log
    spread = {"nats": float((log[:, -1] - log[:, 0]).max()), "nats_all": float(log[-1, -1] - log[0, 0])}
    return {"relevant": relevant, "null": null, "cells": log.size, **spread}
