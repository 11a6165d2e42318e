"""Second-stage order: the first rows by a re-ranker's score, the rest behind them as retrieved (spec/harness 8)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from lossmap.errors import LossmapError


def reordered(rows: Sequence[int], scores: Mapping[int, float], pairs: int, where: object = None) -> list[int]:
    """The first ``pairs`` of ``rows`` by falling score, equal ones as before; then the others, untouched.

    Raises where a row among the first has no score, or one that is not a number: a list that is handed on as it came
    looks like a re-ranker that agrees with it.
    """
    head = rows[:pairs]
    absent = [row for row in head if math.isnan(scores.get(row, math.nan))]
    if absent:
        raise LossmapError(
            "rows to re-rank have no score",
            where=where,
            observed=f"{len(absent)} of {len(head)} rows, the first {absent[0]}",
            expected="a frozen score for every pair of query and row",
            next_command="./run results/stage5 --forcerun rescore",
            exit_code=3,
        )
    return sorted(head, key=lambda row: -scores[row]) + list(rows[pairs:])


def positional(rows: Sequence[int]) -> list[tuple[int, float]]:
    """Rows with scores that only say their place: n, n - 1, ..., 1.

    A re-ranked head and its tail carry scores of two scales, so no score of theirs may order the list again.
    """
    return [(row, float(len(rows) - place)) for place, row in enumerate(rows)]
