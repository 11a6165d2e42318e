"""Intervals of many contrasts over one count matrix against a bootstrap a column, side by side in one run.

PYTHONPATH=src python bench/intervals.py
"""

from __future__ import annotations

import resource
import time

import numpy as np

from lossmap.judge import intervals

QUERIES, MEETINGS, COLUMNS = 1_576, 232, 63


def column_by_column(values: np.ndarray) -> np.ndarray:
    """A fresh resampling of query indices for every column."""
    random = np.random.default_rng(0)
    ends = []
    for column in values.T:
        picks = random.integers(len(column), size=(intervals.RESAMPLES, len(column)))
        ends.append(np.quantile(column[picks].mean(axis=1), (0.025, 0.975)))
    return np.array(ends)


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
    print(f"peak resident {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
