"""The offline fusion in the live engine's own arithmetic and order.

All that is bound to one engine version stands here: single precision, its decimal rounding, its branches for lists
without spread, and the order in which it lists equal scores. Observed on OpenSearch 3.6.0 with one shard and one
segment (spec/engine.md, tests/search/test_fusion.py); on several shards or segments equality holds up to groups of
equal score.
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
from lossmap.fuse import Array
from lossmap.search.legs import require_whole

DIGITS = Decimal(1).scaleb(-10)
RANK_CONSTANT = 30
"""Of an arm that names no fusion; the engine's own default is 60."""
WORKERS = 2
PREFIX = "lossmap-"


@functools.cache
def term(weight: float, rank_constant: int, rank: int) -> float:
    """w / (K + r) as the engine has it: a decimal rounded half up to ten digits, then single precision."""
    share = (Decimal(1) / Decimal(rank_constant + rank)).quantize(DIGITS, ROUND_HALF_UP)
    return float(np.float32(np.float32(share) * np.float32(weight)))


@functools.cache
def terms(rank_constant: int, depth: int) -> Array:
    """float32 (depth): ``term`` of each rank from 1, unweighted."""
    return np.array([term(1.0, rank_constant, rank) for rank in range(1, depth + 1)], np.float32)


def rrf(legs: Sequence[Sequence[int]], rank_constant: int, weights: Sequence[float] | None = None) -> dict[int, float]:
    """fuse.rrf in the engine's arithmetic."""
    return fuse.rrf(legs, rank_constant, weights, terms)


def min_max(scores: Array, held: Array) -> Array:
    return fuse.min_max(scores, held, fuse.LOWEST)


def z_score(scores: Array, held: Array) -> Array:
    """fuse.z_score with the engine's branches: a hit at the mean gets the raw best score, and so does a lone one."""
    mean, deviation = fuse.moments(scores, held)
    best = np.where(held, scores, -np.inf).max(axis=1, keepdims=True, initial=-np.inf).astype(scores.dtype)
    least = np.where(held, scores, np.inf).min(axis=1, keepdims=True, initial=np.inf).astype(scores.dtype)
    value = np.where(deviation == 0, least, fuse.z_score(scores, held, fuse.LOWEST))
    return np.where(held, np.where(scores == mean, best, value), scores.dtype.type(0))


NORMALIZATIONS: dict[str, Callable[[Array, Array], Array]] = {"min_max": min_max, "l2": fuse.l2, "z_score": z_score}
COMBINATIONS: dict[str, fuse.Combination] = {
    "arithmetic_mean": fuse.arithmetic_mean,
    "geometric_mean": fuse.geometric_mean,
    "harmonic_mean": fuse.harmonic_mean,
}


def shares(arm: Mapping[str, Any], scores: Array, held: Array) -> Array:
    """float32 (q, depth): what one leg gives to each of its hits under the arm's fusion; 0 where it has none."""
    if "normalization" in arm:
        return NORMALIZATIONS[arm["normalization"]](scores.astype(np.float32), held)
    ranked = terms(arm.get("rank_constant", RANK_CONSTANT), scores.shape[1])
    return np.where(held, ranked, np.float32(0))


def combine(arm: Mapping[str, Any], columns: Sequence[Array]) -> Array:
    """float32 (q, m): the shares of the legs under the arm's combination and weights."""
    weights = [np.float32(weight) for weight in arm.get("weights") or [1.0] * len(columns)]
    combination = COMBINATIONS[arm["combination"]] if "normalization" in arm else fuse.weighted_sum
    return combination(columns, weights)


def engine_order(fused: Mapping[int, float]) -> list[int]:
    """Doc ids as the engine lists them: a stable sort by score over the iteration order of a java.util.HashMap."""
    capacity = 16
    while len(fused) > 0.75 * capacity:
        capacity *= 2
    inserted = {doc: i for i, doc in enumerate(fused)}
    walk = sorted(fused, key=lambda doc: ((doc ^ (doc >> 16)) & (capacity - 1), -inserted[doc]))
    return sorted(walk, key=lambda doc: -fused[doc])


def percents(weights: Sequence[float]) -> str:
    """70_30 of (0.7, 0.3)."""
    return "_".join(str(round(100 * weight)) for weight in weights)


def fusion_id(arm: Mapping[str, Any]) -> str:
    """rrf-30, rrf-30-w70_30, norm-min_max-arithmetic_mean: the fusion by its parameters, whole percents and all."""
    if "normalization" in arm:
        name = f"norm-{arm['normalization']}-{arm['combination']}"
    else:
        name = f"rrf-{arm.get('rank_constant', RANK_CONSTANT)}"
    return f"{name}-w{percents(arm['weights'])}" if "weights" in arm else name


def pipeline_id(arm: Mapping[str, Any]) -> str:
    return PREFIX + fusion_id(arm)


def processors(arm: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The phase result processors of the arm's fusion, as the engine takes them."""
    weighted = {"parameters": {"weights": list(arm["weights"])}} if "weights" in arm else {}
    if "normalization" in arm:
        normalization = {"technique": arm["normalization"]}
        combination = {"technique": arm["combination"], **weighted}
        return [{"normalization-processor": {"normalization": normalization, "combination": combination}}]
    constant = arm.get("rank_constant", RANK_CONSTANT)
    combination = {"technique": "rrf", "rank_constant": constant, **weighted}
    return [{"score-ranker-processor": {"combination": combination}}]


def ensure_pipeline(client: OpenSearch, arm: Mapping[str, Any]) -> str:
    """The fusion pipeline of an arm, created when absent and compared structurally before use; its name."""
    name, path = pipeline_id(arm), f"/_search/pipeline/{pipeline_id(arm)}"
    body = {"description": "lossmap", "phase_results_processors": processors(arm)}
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
    client: OpenSearch,
    index: str,
    pipeline: str | None,
    requests: Mapping[str, dict[str, Any]],
    row_of: Mapping[str, int],
) -> dict[str, list[int]]:
    """Rows in live order for each query id; ``pipeline`` None where the requests bring one along."""
    params = {"request_timeout": 120, **({"search_pipeline": pipeline} if pipeline else {})}

    def one(item: tuple[str, dict[str, Any]]) -> tuple[str, list[int]]:
        reply = client.search(index=index, body=item[1], params=dict(params))
        require_whole(reply, index)
        return item[0], [row_of[hit["_id"]] for hit in reply["hits"]["hits"]]

    with ThreadPoolExecutor(WORKERS) as pool:
        return dict(progress.bar(pool.map(one, requests.items()), "pin", len(requests), "queries"))


def compare(offline: Callable[[str], Sequence[int]], live: Mapping[str, Sequence[int]]) -> tuple[int, list[Mismatch]]:
    """How many queries were compared, and the first difference of each one that differs."""
    differences: Iterable[Mismatch | None] = (first_difference(q, offline(q), live[q]) for q in sorted(live))
    return len(live), [d for d in differences if d is not None]
