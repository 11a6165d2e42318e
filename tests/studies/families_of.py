"""A root with scored arms of a family, their values drawn at random around a true effect."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import planted
import pytest

from lossmap.layout import Layout
from lossmap.studies import scores
from lossmap.studies.stacks import Family

CONTROL = "rrf-30-default"
BENCH = "v6/qmsum"
QUERIES = {
    f"qmsum:m{place // 4:02d}:{place % 4:03d}": "summarize" if place % 4 == 0 else "lookup" for place in range(120)
}


def root(folder: Path, patch: pytest.MonkeyPatch, benches: tuple[str, ...] = (BENCH,)) -> Layout:
    indexes = {bench.partition("/")[0]: {"documents": ["qmsum"], "scored": ["qmsum"]} for bench in benches}
    at = planted.scale(patch, folder, indexes, {}, {})
    planted.corpus(
        at,
        "qmsum",
        [planted.meeting(f"m{place:02d}", ("A", "so")) for place in range(30)],
        {query_id: ("what ?", query_class) for query_id, query_class in QUERIES.items()},
        {query_id: query_id.split(":")[1] for query_id in QUERIES},
    )
    return at


def values(seed: int, effect: float = 0.0, spread: float = 0.1) -> dict[str, float]:
    """The same base for every seed, moved by ``effect`` and by chance."""
    base = np.random.default_rng(7).uniform(0.2, 0.6, len(QUERIES))
    moved = base + effect + np.random.default_rng(seed).normal(0, spread, len(QUERIES))
    return dict(zip(QUERIES, moved.tolist()))


def score(at: Layout, some: Mapping[str, Mapping[str, float]], bench: str = BENCH, **other: Any) -> Family:
    """The control and ``some`` arms on disk; the family of them."""
    for name, found in {CONTROL: values(0, spread=0.0), **some}.items():
        stanza = {"arm": {"id": name, **other.get("stanzas", {}).get(name, {"mode": "hybrid", "legs": ["a", "b"]})}}
        rest = {key: value for key, value in other.items() if key != "stanzas"}
        planted.arm(scores.scored(at, bench, "stage5") / name, name, found, QUERIES, **{**stanza, **rest})
    return Family("fusion", CONTROL, dict.fromkeys(some, "weights"), (bench,))
