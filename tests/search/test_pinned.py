"""Which arms are held against the engine: every fusion of the families that are nothing else, each once."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import crafted
import numpy as np
import pytest

from lossmap import layout
from lossmap.search import arms, legs, pin, pins, plan
from lossmap.studies import stage5

Asked = list[tuple[str, Any, int]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """What the engine would be asked; it is not there."""
    found: Asked = []

    def undisturbed(_: object, some: Asked) -> list[dict[str, Any]]:
        found.extend(some)
        return [{"arm": name, "mismatches": 0} for name, _, _ in some]

    monkeypatch.setattr(pins, "_undisturbed", undisturbed)
    monkeypatch.setattr(pins, "Bench", lambda at: SimpleNamespace(at=at))
    return found


def test_every_fusion_of_the_chapter_is_pinned_once(asked: Asked) -> None:
    at = layout.load("smoke")
    stage5.pinned(at, "stage5")
    over_graph = [name for name, arm, _ in asked if arm["legs"] == pins.GRAPH]
    families = arms.families(at, "stage5")
    hybrids = {
        name for family in plan.PINNED for name, arm in families[family]["arms"].items() if arm["legs"] == pins.EXACT
    }
    assert sorted(over_graph) == sorted(hybrids) and "rrf-30-w20_80" in over_graph
    assert [name for name, arm, _ in asked if arm["legs"] == pins.EXACT] == ["rrf-30-default"]


def test_an_arm_of_two_families_is_pinned_once_and_as_a_control_where_it_is_one(
    asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = {
        "defaults": {"mode": "hybrid", "legs": ["bm25", "exact"], "size": 48},
        "families": {
            "fusion": {"control": "rrf-30-default", "arms": [{}, {"rank_constant": 60}]},
            "graph": {"control": "rrf-60", "arms": [{}, {"rank_constant": 60}]},
        },
    }
    pins.run(crafted.scale(monkeypatch, tmp_path, {"stage5": stage}), "stage5", "fusion", "graph")
    counted = [(name, arm["legs"][1], every) for name, arm, every in asked]
    assert sorted(counted) == [
        ("rrf-30-default", "exact", pins.EVERY),
        ("rrf-30-default", "hnsw", 1),
        ("rrf-60", "exact", pins.EVERY),
        ("rrf-60", "hnsw", 1),
    ]


def test_a_bench_without_queries_has_no_mismatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = crafted.scale(monkeypatch, tmp_path, {})
    none = np.zeros((0, 48), np.int32)
    for name in pins.GRAPH:
        meta = {"leg": name, "index_sha256": crafted.INDEX_SHA256}
        legs.save(at.leg(name), legs.Leg([], none, none.astype(np.float32), meta))
    bench = crafted.bench(at, legs.Live(None, "i", {}), [])  # type: ignore[arg-type]
    vars(bench).update(queries=[])
    monkeypatch.setattr(pin, "ensure_pipeline", lambda client, arm: "p")
    row = pins._held(bench, pins.Clauses(bench), "a", {"legs": pins.GRAPH, "mode": "hybrid", "size": 48}, 1)
    assert (row["queries"], row["mismatches"]) == (0, 0)
