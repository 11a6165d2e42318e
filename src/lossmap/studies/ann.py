"""How much of the exact dense leg an HNSW leg finds. No number over HNSW is printed without it.

By id a hit counts only when the exact list holds the same row. By score it counts when it is as near as the exact
list's last: equal texts have equal vectors, and which of them a list ends with is no matter of quality.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from lossmap import layout
from lossmap.layout import Layout
from lossmap.search import legs
from lossmap.search.legs import Leg

DEPTHS = (10, 48)
LOW = 0.5


def every(at: Layout) -> list[dict[str, Any]]:
    """One row for each HNSW leg of arms.yaml and depth."""
    names = [name for name, spec in layout.arms(at)["legs"].items() if spec["kind"] == "hnsw"]
    return [row(at, name, depth) for name in names for depth in DEPTHS]


def of_arm(at: Layout, arm: Mapping[str, Any]) -> dict[str, Any] | None:
    """The row of an arm's HNSW leg at the depth that enters its ranking; None for an arm without one."""
    for name in arm["legs"]:
        if layout.leg(at, name)["kind"] == "hnsw":
            return row(at, name, arm.get("leg_depth", arm["size"]))
    return None


PER_QUERY_HEADER = ("leg", "depth", "qid", "recall", "hits")


def per_query(at: Layout) -> Iterator[tuple[str, int, str, str, int]]:
    """Rows of ann.csv.gz: recall by id of every query, and how many hits the graph returned."""
    for name, spec in layout.arms(at)["legs"].items():
        if spec["kind"] == "hnsw":
            approximate = legs.load(at.leg(name))
            exact = legs.load(at.leg(reference(at, spec["scope"])))
            hits = (approximate.rows >= 0).sum(axis=1).tolist()
            for depth in DEPTHS:
                shares = legs.recall(approximate, exact, depth).tolist()
                for query_id, share, count in zip(exact.query_ids, shares, hits, strict=True):
                    yield name, depth, query_id, repr(share), count


def reference(at: Layout, scope: str) -> str:
    """The exact leg of a scope."""
    stanzas = layout.arms(at)["legs"]
    return next(name for name, spec in stanzas.items() if spec["kind"] == "exact" and spec["scope"] == scope)


def row(at: Layout, name: str, depth: int) -> dict[str, Any]:
    spec = layout.leg(at, name)
    approximate = legs.load(at.leg(name))
    return _row(name, spec, approximate, legs.load(at.leg(reference(at, spec["scope"]))), depth)


def _row(name: str, spec: Mapping[str, Any], approximate: Leg, exact: Leg, depth: int) -> dict[str, Any]:
    by_id = legs.recall(approximate, exact, depth)
    hits = (approximate.rows >= 0).sum(axis=1)
    return {
        "leg": name,
        "scope": spec["scope"],
        "filter": spec.get("filter", "none"),
        "k": spec["k"],
        "depth": depth,
        "queries": len(by_id),
        **_spread("recall", by_id),
        **_spread("recall_by_score", legs.recall_by_score(approximate, exact, depth)),
        "recall_deciles": [float(np.quantile(by_id, q / 10)) for q in range(11)] if len(by_id) else [],
        "hits_mean": float(hits.mean()) if len(hits) else None,
        **_short(by_id, hits, spec["k"]),
        "queries_without_hits": int((hits == 0).sum()),
    }


def _short(recall: np.ndarray, hits: np.ndarray, k: int) -> dict[str, Any]:
    """Queries whose list is shorter than the k asked for, what they find, and the commonest length of such a list."""
    short = hits < k
    lengths = np.bincount(hits[short]) if short.any() else np.array([0])
    return {
        "short": int(short.sum()),
        "short_share": float(short.mean()) if len(hits) else None,
        "short_recall_mean": float(recall[short].mean()) if short.any() else None,
        "short_commonest_length": int(lengths.argmax()),
        "short_with_commonest_length": int(lengths.max()),
        "full_recall_mean": float(recall[~short].mean()) if not short.all() else None,
    }


def _spread(name: str, values: np.ndarray) -> dict[str, float | None]:
    if not len(values):
        return dict.fromkeys((f"{name}_mean", f"{name}_p5", f"{name}_min", f"{name}_low_share"))
    return {
        f"{name}_mean": float(values.mean()),
        f"{name}_p5": float(np.quantile(values, 0.05)),
        f"{name}_min": float(values.min()),
        f"{name}_low_share": float((values < LOW).mean()),
    }
