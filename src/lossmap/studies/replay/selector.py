"""A selector between the admitted dense order and the fusion, query by query: a ridge on what both arms show.

It predicts the paired difference S2 - S1 from features that need no label, and takes the fusion where the prediction is
above zero; the oracle chooses by the difference itself (seed 004, section 5). All means are over queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lossmap.judge import decompose, intervals
from lossmap.layout import Layout
from lossmap.memory.frozen import Frozen
from lossmap.studies.replay import columns, folds, run
from lossmap.studies.replay.columns import POOLED, Bools, Floats, Row
from lossmap.studies.replay.folds import Ints
from lossmap.studies.replay.interactions import fusion
from lossmap.studies.replay.run import Replayed

FEATURES = ("best", "gap", "listed", "overlap", "admitted", "eligible")
"""The maximum cosine of an eligible row; how far it is above the tenth; the share of eligible rows on the lexical list;
the rows that the first ten of both arms share; log(1 + admitted eligible rows); log(1 + eligible rows)."""
PENALTIES = (100.0, 10.0, 1.0, 0.1, 0.01)
"""In units of the number of queries; of equals the first, the most cautious, is taken."""
TOP = 10
PLACES = 6
"""Decimals of features and predictions: what lies below is a matter of the machine."""
POLICIES = ("dense", "fused")


def study(at: Layout) -> dict[str, Any]:
    """selector.json: ``rows``, one a model and task, and ``models``, one a model over its tasks.

    ``constant`` is the order, of the two, that is better on the other folds; ``selected`` is chosen by a ridge that was
    fitted, and its penalty chosen, there too. ``gain`` is over the constant, ``gap`` what the oracle gains over it, and
    ``reached`` the first over the second: None where there is no gap.
    """
    found = run.replayed(at)
    return {
        "rows": [_row(each) for each in found],
        "models": [_over(model, mine) for model, mine in columns.by_model(run.headline(found)).items()],
        "features": list(FEATURES),
        "penalties": list(PENALTIES),
        "folds": folds.FOLDS,
        "intervals": intervals.card(),
    }


def features(found: Frozen) -> Floats:
    """(Q, 6) of FEATURES, in PLACES decimals."""
    eligible = np.maximum(found.eligible, 1)
    table = [
        found.best_eligible.astype(np.float64),
        found.best_eligible.astype(np.float64) - _tenth(found),
        found.lexical_eligible / eligible,
        _overlap(found) / TOP,
        np.log1p(found.admitted_eligible),
        np.log1p(found.eligible),
    ]
    return np.round(np.column_stack(table), PLACES)


def _tenth(found: Frozen) -> Floats:
    """Cosine (Q,) of the tenth eligible row; of the last where there are fewer, the best where there is none."""
    cosine = found.best_eligible.astype(np.float64)
    last = (np.minimum(TOP, found.eligible) - 1)[found.query]
    at = np.flatnonzero((found.dense_eligible == last) & (last >= 0))
    cosine[found.query[at]] = found.cosine[at]
    return cosine


def _overlap(found: Frozen) -> Ints:
    """Rows (Q,) among the first ten eligible of the dense order and of the lexical list."""
    at = np.flatnonzero(found.working & (found.lex >= 0))
    at = at[np.lexsort((found.lex[at], found.query[at]))]
    size = len(found.query_ids)
    held = np.bincount(found.query[at], minlength=size)
    place = np.arange(len(at)) - np.repeat(np.cumsum(held) - held, held)
    both = at[(place < TOP) & (found.dense_eligible[at] < TOP)]
    return np.bincount(found.query[both], minlength=size).astype(np.int64)


def ridge(table: Floats, target: Floats, penalty: float) -> tuple[Floats, Floats, Floats, float]:
    """Means, scales and coefficients (6,) of standardised features, and the intercept, which no penalty shrinks.

    A feature that does not vary has coefficient 0; without a query all are 0. Products by einsum: no thread adds them.
    """
    width = table.shape[1]
    if not len(table):
        return np.zeros(width), np.ones(width), np.zeros(width), 0.0
    centre, scale = table.mean(axis=0), table.std(axis=0)
    scale = np.where(np.round(scale, PLACES) > 0, scale, np.inf)
    x, level = (table - centre) / scale, float(target.mean())
    square = np.einsum("qi,qj->ij", x, x) + penalty * len(x) * np.eye(width)
    return centre, scale, np.linalg.solve(square, np.einsum("qi,q->i", x, target - level)), level


def predicted(table: Floats, fitted: tuple[Floats, Floats, Floats, float]) -> Bools:
    """(n,): whether the fusion is predicted to be better; nought is not above nought."""
    centre, scale, coefficients, level = fitted
    difference = level + np.einsum("qi,i->q", (table - centre) / scale, coefficients)
    return np.asarray(np.round(difference, PLACES) > 0)


def penalty_for(table: Floats, values: Floats, fold: Ints) -> float:
    """The penalty that achieves most on folds left out in turn: ``values`` (n, 2) of dense and fused."""
    reached = {}
    for penalty in PENALTIES:
        chosen = np.zeros(len(fold), bool)
        for number in np.unique(fold):
            held = fold == number
            chosen[held] = predicted(table[held], ridge(table[~held], values[~held, 1] - values[~held, 0], penalty))
        reached[penalty] = float(np.where(chosen, values[:, 1], values[:, 0]).sum())
    least = max(reached.values()) - decompose.BAND * len(fold)
    return next(penalty for penalty, total in reached.items() if total >= least)


def selected(found: Replayed) -> Row:
    """``fused`` and ``constant`` (Q, bool): where the selector and the constant take the fusion, each by the other
    folds; by fold the ``penalties`` and ``coefficients``."""
    table, fold = features(found.frozen), folds.dealt(found)
    values = np.column_stack([run.values(found, stage) for stage in ("s1", "s2")])
    fused, constant = np.zeros(len(fold), bool), np.zeros(len(fold), bool)
    penalties, coefficients = [], []
    for number in np.unique(fold):
        held = fold == number
        difference = values[~held, 1] - values[~held, 0]
        penalties.append(penalty_for(table[~held], values[~held], fold[~held]))
        fitted = ridge(table[~held], difference, penalties[-1])
        fused[held], constant[held] = predicted(table[held], fitted), difference.sum() > decompose.BAND
        coefficients.append(fitted[2])
    return {"fused": fused, "constant": constant, "penalties": penalties, "coefficients": coefficients}


def _values(found: Replayed, made: Row) -> dict[str, Floats]:
    """Columns (Q,)."""
    dense, fused = (run.values(found, stage) for stage in ("s1", "s2"))
    constant, selected = (np.where(made[name], fused, dense) for name in ("constant", "fused"))
    return {"s1": dense, "s2": fused, "constant": constant, "selected": selected, "oracle": np.maximum(dense, fused)}


def _deltas(values: dict[str, Floats]) -> dict[str, Floats]:
    base = values["constant"]
    return {"gain": values["selected"] - base, "gap": values["oracle"] - base}


def _row(found: Replayed) -> Row:
    made = selected(found)
    values = _values(found, made)
    said = columns.measured(found, values, _deltas(values), POOLED)
    reached, interval = _reached(found, _deltas(values))
    said["intervals"]["reached"] = interval
    moved = np.abs(fusion(found)) > decompose.BAND
    right = made["fused"] == (fusion(found) > 0)
    fold = folds.dealt(found)
    return {
        **run.head(found),
        **said,
        "reached": reached,
        "fused_share": float(made["fused"].mean()),
        "right_share": decompose.share(int((right & moved).sum()), int(moved.sum())),
        "constants": [POLICIES[int(made["constant"][fold == number][0])] for number in np.unique(fold)],
        "penalties": made["penalties"],
        "coefficients": dict(zip(FEATURES, np.round(np.stack(made["coefficients"]).mean(axis=0), PLACES).tolist())),
    }


def _reached(found: Replayed, deltas: dict[str, Floats]) -> tuple[float | None, dict[str, list[float]] | None]:
    """gain / gap and its intervals, both resampled together; None where a resample has no gap."""
    table = np.column_stack([deltas["gain"], deltas["gap"]])
    share = decompose.share(float(table[:, 0].mean()), float(table[:, 1].mean()))
    groups, spans = run.clusters(found), {}
    by_query = table, np.ones(len(table))
    by_meeting = by_query if groups is None else intervals.by_group(table, groups)
    for unit, summed in zip(columns.UNITS, (by_meeting, by_query)):
        drawn = intervals.resampled_means(*summed)
        if share is None or not (drawn[:, 1] > 0).all():
            return share, None
        spans[unit] = intervals.ends(drawn[:, :1] / drawn[:, 1:])[0].tolist()
    return share, spans


def _over(model: str, found: Sequence[Replayed]) -> Row:
    """The plain mean over tasks of query-pooled means; ``reached``: of these means."""
    said = columns.over_tasks([(each, _deltas(_values(each, selected(each)))) for each in found])
    reached = decompose.share(said["deltas"]["gain"], said["deltas"]["gap"])
    return {"model": model, "tasks": len(found), "mean": POOLED, **said, "reached": reached}
