"""A sweep of every fusion arm of Stage 5 against one dictionary a query, side by side in one run.

    PYTHONPATH=src python bench/fusion.py

Prints seconds of both for reciprocal rank fusion, their ratio, and the seconds of the whole sweep. Sizes are those of
the full scale.
"""

from __future__ import annotations

import resource
import time

import numpy as np

from lossmap import layout
from lossmap.search import arms, pin, pipeline
from lossmap.search.legs import Leg

QUERIES, ROWS, DEPTH = 1_576, 220_000, 500
ARM = "rrf-30-default"


def leg(name: str, random: np.random.Generator) -> Leg:
    rows = np.stack([random.choice(ROWS, DEPTH, replace=False) for _ in range(QUERIES)]).astype(np.int32)
    scores = -np.sort(-random.gamma(2.0, size=(QUERIES, DEPTH)), axis=1).astype(np.float32)
    return Leg([f"q{i:04d}" for i in range(QUERIES)], rows, scores, {"leg": name, "index_sha256": "x"})


def plain(arm: dict, legs: dict[str, Leg]) -> dict[str, list[tuple[int, float]]]:
    """One dictionary a query, one decimal division a hit."""
    found = {}
    for i, query_id in enumerate(legs["bm25"].query_ids):
        fused: dict[int, float] = {}
        for one in (legs[name].rows[i, : arm["leg_depth"]].tolist() for name in arm["legs"]):
            for rank, row in enumerate(one, 1):
                fused[row] = float(np.float32(fused.get(row, 0.0)) + np.float32(pin.term.__wrapped__(1.0, 30, rank)))
        found[query_id] = sorted(fused.items(), key=lambda item: (-item[1], item[0]))[: arm["size"]]
    return found


def main() -> None:
    random = np.random.default_rng(0)
    legs = {name: leg(name, random) for name in ("bm25", "exact", "hnsw")}
    every = {name: arm for name, arm in arms.of(layout.load("full"), "stage5").items() if "." not in name}
    begin = time.perf_counter()
    ours = pipeline.rank(every[ARM], legs)
    middle = time.perf_counter()
    theirs = plain(every[ARM], legs)
    end = time.perf_counter()
    for arm in every.values():
        pipeline.rank(arm, legs)
    swept = time.perf_counter() - end
    same = np.mean([ours[q] == theirs[q] for q in ours])
    print(
        f"one fusion {middle - begin:.2f} s, plain {end - middle:.2f} s, ratio {(end - middle) / (middle - begin):.1f}"
    )
    print(f"equal lists {same:.4f}; {len(every)} arms over {QUERIES} queries {swept:.1f} s")
    print(f"peak resident {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
