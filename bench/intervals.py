"""Intervals of many contrasts over one count matrix against a bootstrap a column, side by side in one run; and what a
family of seventy arms costs, intervals, sign flips and adjustment together.

PYTHONPATH=src OPENBLAS_NUM_THREADS=1 python bench/intervals.py

One thread a process: on two cores that others use as well, threads of the BLAS wait for each other and take four times
as long.
"""

from __future__ import annotations

import resource
import time

import numpy as np

from lossmap.judge import intervals, multiplicity, permutation

QUERIES, MEETINGS, COLUMNS = 1_576, 232, 63
ARMS, MEASURES = 70, 7


def column_by_column(values: np.ndarray) -> np.ndarray:
    """A fresh resampling of query indices for every column."""
    random = np.random.default_rng(0)
    ends = []
    for column in values.T:
        picks = random.integers(len(column), size=(intervals.RESAMPLES, len(column)))
        ends.append(np.quantile(column[picks].mean(axis=1), (0.025, 0.975)))
    return np.array(ends)


def family(random: np.random.Generator, groups: list[str]) -> float:
    """Seconds for every statistic of every arm and measure, over all queries and three quarters of them as a class."""
    values = random.normal(0, 0.1, (QUERIES, ARMS * MEASURES))
    keep = random.random(QUERIES) < 0.75
    begin = time.perf_counter()
    for part in (np.ones(QUERIES, bool), keep, ~keep):
        members = [group for group, kept in zip(groups, part) if kept]
        intervals.means_with_intervals(values[part], members)
        multiplicity.detectable(values[part], members)
    tested = permutation.p_values(values, groups, np.where(keep, "lookup", "summarize").tolist())
    for found in tested.values():
        multiplicity.holm(found.meetings.reshape(ARMS, MEASURES))
    return time.perf_counter() - begin


def main() -> None:
    random = np.random.default_rng(1)
    values = random.uniform(-1, 1, (QUERIES, COLUMNS))
    groups = [f"m{g}" for g in random.integers(MEETINGS, size=QUERIES)]
    intervals.counts.cache_clear()
    begin = time.perf_counter()
    ours = intervals.means_with_intervals(values, groups)
    middle = time.perf_counter()
    plain = column_by_column(values)
    end = time.perf_counter()
    gap = np.abs(ours.queries - plain).max()
    print(f"shared matrix {middle - begin:.2f} s (by query and by meeting), a column at a time {end - middle:.2f} s")
    print(
        f"ratio {(end - middle) / (middle - begin):.1f} over {COLUMNS} columns; largest difference of an end {gap:.4f}"
    )
    print(f"{ARMS} arms x {MEASURES} measures, all queries and two classes: {family(random, groups):.2f} s")
    print(f"peak resident {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
