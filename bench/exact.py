"""The exact dense leg against a plain per-query product and sort, side by side in one run.

    PYTHONPATH=src python bench/exact.py

Prints seconds of both, their ratio and the peak resident memory. Sizes are those of the full scale.
"""

from __future__ import annotations

import resource
import time

import numpy as np

from lossmap.index.vectors import Vectors
from lossmap.search.legs import Exact

DISTINCT, ROWS, DIMENSION, QUERIES, DEPTH = 87_000, 130_000, 384, 256, 500


def plain(vectors: Vectors, queries: np.ndarray) -> list[np.ndarray]:
    """One product and one full sort a query."""
    table = vectors.distinct[vectors.inverse]
    return [np.argsort(-(table @ query), kind="stable")[:DEPTH] for query in queries]


def main() -> None:
    random = np.random.default_rng(0)
    distinct = random.normal(size=(DISTINCT, DIMENSION)).astype(np.float32)
    distinct /= np.linalg.norm(distinct, axis=1, keepdims=True)
    extra = random.integers(DISTINCT, size=ROWS - DISTINCT)
    vectors = Vectors(distinct, np.concatenate([np.arange(DISTINCT), extra]).astype(np.int32))
    queries = random.normal(size=(QUERIES, DIMENSION)).astype(np.float32)
    begin = time.perf_counter()
    ours = list(Exact(vectors).corpus(queries, DEPTH))
    middle = time.perf_counter()
    theirs = plain(vectors, queries)
    end = time.perf_counter()
    same = np.mean([len(set(a[0]) & set(b)) / DEPTH for a, b in zip(ours, theirs, strict=True)])
    print(
        f"exact leg {middle - begin:.2f} s, plain {end - middle:.2f} s, ratio {(end - middle) / (middle - begin):.1f}"
    )
    print(f"{QUERIES} queries over {ROWS} rows to depth {DEPTH}; shared rows {same:.4f}")
    print(f"peak resident {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
