"""The offline fusion held against the live engine, row for row.

All that is bound to one engine version stands here: its decimal rounding and the order in which it lists equal scores.
Observed on OpenSearch 3.6.0 with one shard and one segment (spec/engine.md); on several shards or segments equality
holds up to groups of equal score.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
from opensearchpy import NotFoundError, OpenSearch

from lossmap import fuse, progress
from lossmap.errors import LossmapError
from lossmap.search.legs import require_whole

DIGITS = Decimal(1).scaleb(-10)
WORKERS = 2


@functools.cache
def term(weight: float, rank_constant: int, rank: int) -> float:
    """w / (K + r) as the engine has it: a decimal rounded half up to ten digits, then single precision."""
    share = (Decimal(1) / Decimal(rank_constant + rank)).quantize(DIGITS, ROUND_HALF_UP)
    return float(np.float32(np.float32(share) * np.float32(weight)))


def add(left: float, right: float) -> float:
    return float(np.float32(left) + np.float32(right))


def rrf(legs: Sequence[Sequence[int]], rank_constant: int, weights: Sequence[float] | None = None) -> dict[int, float]:
    """fuse.rrf in the engine's arithmetic."""
    return fuse.rrf(legs, rank_constant, weights, term, add)


def engine_order(fused: Mapping[int, float]) -> list[int]:
    """Doc ids as the engine lists them: a stable sort by score over the iteration order of a java.util.HashMap."""
    capacity = 16
    while len(fused) > 0.75 * capacity:
        capacity *= 2
    inserted = {doc: i for i, doc in enumerate(fused)}
    walk = sorted(fused, key=lambda doc: ((doc ^ (doc >> 16)) & (capacity - 1), -inserted[doc]))
    return sorted(walk, key=lambda doc: -fused[doc])


def pipeline_id(rank_constant: int) -> str:
    return f"lossmap-rrf-{rank_constant}"


def ensure_pipeline(client: OpenSearch, rank_constant: int) -> str:
    """The fusion pipeline of one rank constant, created when absent and compared structurally before use."""
    name, path = pipeline_id(rank_constant), f"/_search/pipeline/{pipeline_id(rank_constant)}"
    body = {
        "description": "lossmap",
        "phase_results_processors": [
            {"score-ranker-processor": {"combination": {"technique": "rrf", "rank_constant": rank_constant}}}
        ],
    }
    try:
        found = client.transport.perform_request("GET", path).get(name)
    except NotFoundError:
        found = None
    if found is None:
        client.transport.perform_request("PUT", path, body=body)
        found = client.transport.perform_request("GET", path)[name]
    if found != body:
        raise LossmapError(
            "a fusion pipeline of this name is not ours, or not what was asked for",
            where=name,
            observed=found,
            expected=body,
            next_command="remove it from the engine, or point LOSSMAP_OPENSEARCH_URL at another one",
            exit_code=2,
        )
    return name


@dataclass(frozen=True)
class Mismatch:
    query_id: str
    rank: int
    offline: int | None
    live: int | None


def first_difference(query_id: str, offline: Sequence[int], live: Sequence[int]) -> Mismatch | None:
    """The first rank (from 1) at which two orders differ, or None."""
    for rank in range(max(len(offline), len(live))):
        left = offline[rank] if rank < len(offline) else None
        right = live[rank] if rank < len(live) else None
        if left != right:
            return Mismatch(query_id, rank + 1, left, right)
    return None


def live_orders(
    client: OpenSearch, index: str, pipeline: str, requests: Mapping[str, dict[str, Any]], row_of: Mapping[str, int]
) -> dict[str, list[int]]:
    """Rows in live order for each query id."""

    def one(item: tuple[str, dict[str, Any]]) -> tuple[str, list[int]]:
        reply = client.search(index=index, body=item[1], params={"search_pipeline": pipeline, "request_timeout": 120})
        require_whole(reply, index)
        return item[0], [row_of[hit["_id"]] for hit in reply["hits"]["hits"]]

    with ThreadPoolExecutor(WORKERS) as pool:
        return dict(progress.bar(pool.map(one, requests.items()), "pin", len(requests), "queries"))


def compare(offline: Callable[[str], Sequence[int]], live: Mapping[str, Sequence[int]]) -> tuple[int, list[Mismatch]]:
    """How many queries were compared, and the first difference of each one that differs."""
    differences: Iterable[Mismatch | None] = (first_difference(q, offline(q), live[q]) for q in sorted(live))
    return len(live), [d for d in differences if d is not None]
