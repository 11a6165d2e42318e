"""Is there lexical evidence that the cosine does not already hold, and how much of it? (spec/replay 6.4)"""

from __future__ import annotations

from typing import Any

import numpy as np

from lossmap.judge import intervals
from lossmap.layout import Layout
from lossmap.memory import evidence
from lossmap.memory.cut import PER_BIN
from lossmap.memory.evidence import DELTAS, EDGES, LEAST, NEAR, Grid, Sample, Stratified
from lossmap.memory.frozen import Floats
from lossmap.studies.replay import run
from lossmap.studies.replay.columns import UNITS, Row
from lossmap.studies.replay.run import Replayed

RESAMPLES = 2_000
"""The first of the resamples of judge/intervals."""
WEIGHTING = {
    "population": "a row that is not relevant counts for one over the chance with which the dump took it",
    "near": "the same, of the first eligible rows of the dense order alone",
    "sample": "a row that is not relevant counts once",
}


def study(at: Layout) -> dict[str, Any]:
    """evidence.json: ``rows``, one a model, task, width of block and weighting; ``spread``, one a model and task, the
    largest spread of J at a fixed dense bin, and ``grid``, its cells: lists over dense bins of lists over lexical bins.

    ``auc`` compares lexical scores, and ``control`` the cosines themselves, of relevant rows with the other rows of the
    same query and block; 1/2 says that there is nothing. ``j`` of a cell with too few rows is None.
    """
    found = [(each, evidence.sample(each.frozen)) for each in run.replayed(at)]
    grids = [(each, evidence.grid(mine)) for each, mine in found]
    return {
        "rows": [row for each, mine in found for delta in DELTAS for row in _rows(each, mine, delta)],
        "spread": [{**run.head(each), **_spread(mine)} for each, mine in grids],
        "grid": [{**run.head(each), **_cells(mine)} for each, mine in grids],
        "edges": list(EDGES),
        "least": LEAST,
        "near": NEAR,
        "weightings": WEIGHTING,
        "intervals": {**intervals.card(), "resamples": RESAMPLES},
    }


def _rows(found: Replayed, sample: Sample, delta: float) -> list[Row]:
    first, once = evidence.near(sample), np.ones(len(sample.weight))
    rows = []
    for name, mine, weight in (
        ("population", sample, sample.weight),
        ("near", first, first.weight),
        ("sample", sample, once),
    ):
        strata = evidence.strata(mine, delta)
        said, control = (evidence.stratified(score, mine.gold, weight, strata) for score in (mine.lexical, mine.cosine))
        counts = {
            "queries": len(np.unique(mine.query[said.first])),
            "like_left_out": int(found.frozen.fallback.sum()),
            "strata": len(said.first),
            "pairs": float(said.pairs.sum()) / (1 if name == "sample" else PER_BIN),
        }
        numbers = {"auc": said.auc, "z": said.z, "control": control.auc, "control_z": control.z}
        spans = _spans(found, mine, {"auc": said, "control": control})
        rows.append({**run.head(found), "delta": delta, "weighting": name, **counts, **numbers, "intervals": spans})
    return rows


def _spans(found: Replayed, mine: Sample, measured: dict[str, Stratified]) -> Row:
    """Intervals of each ratio of sums, over queries and over clusters; all have the same strata."""
    some = next(iter(measured.values()))
    if not len(some.first):
        return dict.fromkeys(measured)
    query = mine.query[some.first]
    count, groups = len(found.frozen.query_ids), run.clusters(found)
    columns = [*(each.above for each in measured.values()), some.pairs]
    by_query = np.column_stack([np.bincount(query, column, minlength=count).astype(np.float64) for column in columns])
    by_meeting = by_query if groups is None else intervals.by_group(by_query, groups)[0]
    ends = {unit: _ends(sums) for unit, sums in zip(UNITS, (by_meeting, by_query))}
    return {name: {unit: ends[unit][place].tolist() for unit in UNITS} for place, name in enumerate(measured)}


def _ends(sums: Floats) -> Floats:
    """Ends (M, 2) of the intervals of columns over the last column of ``sums`` (U, M + 1), of the resamples that have
    pairs. Sums are exact, as in judge/intervals."""
    exact, _ = intervals.on_grid(sums)
    totals = intervals.counts(len(sums))[:RESAMPLES].astype(float) @ exact
    totals = totals[totals[:, -1] > 0]
    return intervals.ends(totals[:, :-1] / totals[:, -1:])


def _spread(mine: Grid) -> Row:
    """Bins are named by the rank at which they begin; a lexical bin of None is that of absent rows."""
    widest, names = mine.spread(), [*EDGES, None]
    counts = {"gold": int(mine.gold.sum()), "interpretable": int(mine.interpretable.sum())}
    if widest is None:
        return {**counts, **dict.fromkeys(("spread", "dense", "lex_high", "lex_low", "j_high", "j_low"))}
    dense, high, low = widest
    ends = {"j_high": float(mine.j[dense, high]), "j_low": float(mine.j[dense, low])}
    bins = {"dense": EDGES[dense], "lex_high": names[high], "lex_low": names[low]}
    return {**counts, "spread": ends["j_high"] - ends["j_low"], **bins, **ends}


def _cells(mine: Grid) -> Row:
    j = [[float(v) if kept else None for v, kept in zip(*row)] for row in zip(mine.j, mine.interpretable)]
    counts = {"gold": mine.gold.tolist(), "other": mine.other.tolist(), "population": mine.population.tolist()}
    return {**counts, "j": j}
