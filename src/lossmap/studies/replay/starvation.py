"""Queries of which the floor admits fewer than ten rows: what fusion does for them, and a formula for their number.

All means are over queries, not over subtasks, as the seed's section 4 has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import binom

from lossmap.judge import intervals
from lossmap.judge.decompose import share
from lossmap.layout import Layout
from lossmap.memory.frozen import Ints
from lossmap.studies.replay import columns, run
from lossmap.studies.replay.columns import POOLED, Floats, Row
from lossmap.studies.replay.populations import relevant_rows
from lossmap.studies.replay.run import Replayed

ENOUGH = 10
STAGES = ("s0", "s1", "s2", "s3")


def study(at: Layout) -> dict[str, Any]:
    """starvation.json: ``rows``, one a model, task and split of its queries by eligible admitted rows (``fewer`` than
    ten, ``enough``, ``none`` of them, which are among the fewer, ``all``); ``formula``, one a model and task."""
    found = run.replayed(at)
    return {
        "rows": [row for each in found for row in _splits(each)],
        "formula": [_formula(each) for each in found],
        "enough": ENOUGH,
        "intervals": intervals.card(),
    }


def _splits(found: Replayed) -> list[Row]:
    admitted = found.frozen.admitted_eligible
    splits = {
        "fewer": admitted < ENOUGH,
        "enough": admitted >= ENOUGH,
        "none": admitted == 0,
        "all": columns.every(found),
    }
    values = {stage: run.values(found, stage) for stage in STAGES}
    deltas = {
        name: values[stage] - values[before]
        for name, stage, before in (("adm", "s1", "s0"), ("fus", "s2", "s1"), ("gate", "s3", "s2"))
    }
    return [
        {
            **run.head(found),
            "split": name,
            "share": float(keep.mean()),
            "universe_below_ten": int((found.frozen.eligible[keep] < ENOUGH).sum()),
            **columns.measured(found, values, deltas, POOLED, keep),
        }
        for name, keep in splits.items()
    ]


def chance(eligible: Ints, relevant: Ints, alpha: Floats, beta: Floats) -> Floats:
    """P(A < 10) (Q,) of A = Bin(relevant, beta) + Bin(eligible - relevant, alpha) admitted rows (spec/replay 6.2).

    sum over j <= min(m, 9) of C(m, j) beta^j (1 - beta)^(m - j) * BinCDF(9 - j; n - m, alpha).
    """
    j = np.arange(ENOUGH)
    good = binom.pmf(j, relevant[:, None], beta[:, None])
    null = binom.cdf(ENOUGH - 1 - j, (eligible - relevant)[:, None], alpha[:, None])
    return np.asarray((good * null).sum(axis=1))


def _formula(found: Replayed) -> Row:
    """The share that the formula predicts against the observed one; the chance is averaged over queries.

    ``alpha`` and ``beta`` are pass rates of the task's eligible null and relevant rows. ``by_group`` measures them in
    each group, whose floors differ.
    """
    starved = (found.frozen.admitted_eligible < ENOUGH).astype(float)
    counted = _counts(found)
    groups = np.unique(found.frozen.groups, return_inverse=True)[1]
    predicted, by_group = (_predicted(counted, member) for member in (np.zeros_like(groups), groups))
    values = {"observed": starved, "predicted": predicted, "predicted_by_group": by_group}
    deltas = {f"{name}_over_observed": values[name] - starved for name in ("predicted", "predicted_by_group")}
    eligible, relevant, passed, good = (float(column.sum()) for column in counted)
    return {
        **run.head(found),
        **columns.measured(found, values, deltas, POOLED),
        "alpha": share(passed - good, eligible - relevant),
        "beta": share(good, relevant),
        "eligible_median": float(np.median(found.frozen.eligible)),
    }


def _counts(found: Replayed) -> tuple[Ints, Ints, Ints, Ints]:
    """(Q,) each: eligible rows, relevant ones of them, and how many of either the floor admits."""
    mine = found.frozen
    eligible = mine.dense_eligible >= 0
    relevant, good = (relevant_rows(found, chosen) for chosen in (eligible, eligible & mine.admitted_row))
    return mine.eligible, relevant, mine.admitted_eligible, good


def _predicted(counted: Sequence[Ints], member: Ints) -> Floats:
    """P(A < 10) of each query, under the pass rates of all queries that ``member`` (Q,) puts with it."""
    eligible, relevant, passed, good = (np.bincount(member, values).astype(float) for values in counted)
    alpha, beta = _rate(passed - good, eligible - relevant), _rate(good, relevant)
    return chance(counted[0], counted[1], alpha[member], beta[member])


def _rate(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)
