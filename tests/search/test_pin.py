"""The offline fusion equals the live engine's, row for row, under every fusion, and one wrong constant shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import crafted
import numpy as np
import pytest
from opensearchpy import OpenSearch

from lossmap import fuse
from lossmap.errors import LossmapError
from lossmap.index.table import Row
from lossmap.index.vectors import Vectors
from lossmap.search import bodies, freeze, legs, pin, pins, pipeline

SIZE = 48
MEANS = ("arithmetic_mean", "geometric_mean", "harmonic_mean")
NORMS = [
    {"normalization": norm, "combination": mean}
    for norm in ("min_max", "l2", "z_score")
    for mean in (MEANS if norm != "z_score" else MEANS[:1])
]
WEIGHTS = [{}, {"weights": [0.7, 0.3]}, {"weights": [0.1, 0.9]}, {"weights": [0.33, 0.67]}]
FUSIONS: list[dict[str, Any]] = [
    *({"rank_constant": k} for k in (1, 10, 30, 60, 120)),
    *({"rank_constant": 30, **weights} for weights in WEIGHTS[1:]),
    *({**norm, **weights} for norm in NORMS for weights in WEIGHTS),
    *({**fusion, "leg_depth": depth} for depth in (12, 100, 192, 300) for fusion in ({}, NORMS[0], NORMS[-1])),
    *({**fusion, "size": 12} for fusion in ({}, NORMS[0])),
]
STAGE = {
    "defaults": {"mode": "hybrid", "legs": ["bm25", "exact"], "size": SIZE},
    "families": {"fusion": {"control": "rrf-30-default", "arms": [{}, {"rank_constant": 60}, NORMS[0], NORMS[-1]]}},
}


@pytest.fixture(scope="module")
def live(opensearch: OpenSearch) -> Iterator[tuple[legs.Live, Vectors, list[Row]]]:
    with crafted.index(opensearch, "lossmap_test_pin") as found:
        yield found


@pytest.fixture(scope="module")
def frozen(live) -> dict[str, legs.Leg]:  # type: ignore[no-untyped-def]
    return crafted.graph_legs(live[0])


def arm_of(fusion: dict[str, Any]) -> dict[str, Any]:
    return {"mode": "hybrid", "legs": ["bm25", "hnsw"], "size": SIZE, **fusion}


def live_orders(live: legs.Live, arm: dict[str, Any]) -> dict[str, list[int]]:
    requests = {
        f"q{i:02d}": bodies.hybrid(crafted.clauses(asked), arm["size"], arm.get("leg_depth"))
        for i, asked in enumerate(crafted.queries())
    }
    return pin.live_orders(live.client, live.index, pin.ensure_pipeline(live.client, arm), requests, live.row_of)


def mismatches(frozen: dict[str, legs.Leg], orders: dict[str, list[int]], arm: dict[str, Any]) -> int:
    deep = [pins.whole(frozen[name], arm.get("leg_depth", 0)) for name in arm["legs"]]

    def offline(query_id: str) -> list[int]:
        return pin.engine_order(pipeline.fused(arm, deep, int(query_id[1:])))[: arm["size"]]

    compared, differences = pin.compare(offline, orders)
    assert compared == len(crafted.queries()) and all(orders.values())
    return len(differences)


@pytest.mark.parametrize("fusion", FUSIONS, ids=lambda fusion: "-".join(map(str, fusion.values())))
def test_the_offline_order_is_the_live_order(live, frozen, fusion: dict[str, Any]) -> None:  # type: ignore[no-untyped-def]
    arm = arm_of(fusion)
    assert mismatches(frozen, live_orders(live[0], arm), arm) == 0


@pytest.mark.parametrize(("asked", "taken"), [(30, 31), (60, 30)])
def test_a_broken_constant_shows(live, frozen, asked: int, taken: int) -> None:  # type: ignore[no-untyped-def]
    orders = live_orders(live[0], arm_of({"rank_constant": asked}))
    assert mismatches(frozen, orders, arm_of({"rank_constant": taken})) > 0


@pytest.mark.parametrize("fusion", [NORMS[0], NORMS[-1]], ids=["min_max", "z_score"])
def test_a_broken_share_of_the_least_hit_shows(live, frozen, fusion, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    arm = arm_of(fusion)
    orders = live_orders(live[0], arm)
    assert mismatches(frozen, orders, arm) == 0
    monkeypatch.setattr(fuse, "LOWEST", 0.0)
    assert mismatches(frozen, orders, arm) > 0


def test_a_broken_weight_shows(live, frozen) -> None:  # type: ignore[no-untyped-def]
    orders = live_orders(live[0], arm_of({"weights": [0.7, 0.3]}))
    assert mismatches(frozen, orders, arm_of({"weights": [0.3, 0.7]})) > 0


@pytest.mark.parametrize("fusion", [{}, NORMS[0]], ids=["rrf", "min_max"])
def test_a_broken_tie_rule_shows(live, frozen, fusion, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    arm = arm_of(fusion)
    orders = live_orders(live[0], arm)
    monkeypatch.setattr(pin, "engine_order", lambda fused: fuse.ranked(fused, key=int))
    assert mismatches(frozen, orders, arm) > 0


def test_the_offline_exact_leg_is_the_engines_brute_force(live) -> None:  # type: ignore[no-untyped-def]
    found, passages, _ = live
    exact = legs.Exact(passages)
    for _, vector in crafted.queries(6):
        rows, scores = next(exact.corpus(np.array([vector], np.float32), 30))
        ((listed, engine_scores),) = legs._search(found, [bodies.request(bodies.exact_leg(vector), 30)])
        assert rows.tolist() == listed
        np.testing.assert_allclose(scores, engine_scores, atol=1e-5)


def test_a_filter_inside_the_knn_clause_is_exact_and_one_beside_it_is_not(live) -> None:  # type: ignore[no-untyped-def]
    found, passages, rows = live
    file = rows[0].file_uuid
    members = np.array([i for i, row in enumerate(rows) if row.file_uuid == file])
    for _, vector in crafted.queries(6):
        expected, _ = legs.Exact(passages).within(np.array(vector, np.float32), members, 20)
        inside = bodies.request(bodies.knn_leg(vector, 20, inside=True, files=[file]), 20)
        beside = bodies.request(bodies.knn_leg(vector, 20, inside=False, files=[file]), 20)
        (hits_inside, _), (hits_beside, _) = legs._search(found, [inside, beside])
        assert hits_inside == expected.tolist()
        assert len(hits_beside) < 20


def test_a_failed_query_is_an_error_and_not_an_empty_list(live) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(Exception, match="a query failed"):
        list(legs._search(live[0], [{"query": {"no_such_query": {}}}]))


@pytest.mark.parametrize(
    ("arm", "theirs"),
    [
        ({"rank_constant": 77}, {"score-ranker-processor": {"combination": {"technique": "rrf", "rank_constant": 5}}}),
        ({**NORMS[1], "weights": [0.07, 0.93]}, {"normalization-processor": {"normalization": {"technique": "l2"}}}),
    ],
    ids=["rrf", "normalization"],
)
def test_a_pipeline_of_somebody_else_is_not_overwritten(live, arm, theirs) -> None:  # type: ignore[no-untyped-def]
    client, name = live[0].client, pin.pipeline_id(arm)
    body, path = {"phase_results_processors": [theirs]}, f"/_search/pipeline/{name}"
    client.transport.perform_request("PUT", path, body=body)
    try:
        with pytest.raises(LossmapError, match="not ours") as refusal:
            pin.ensure_pipeline(client, arm)
        assert refusal.value.exit_code == 2
        assert client.transport.perform_request("GET", path)[name] == body
    finally:
        client.transport.perform_request("DELETE", path)


def test_pipelines_are_named_by_their_parameters() -> None:
    assert pin.pipeline_id({}) == pin.pipeline_id({"rank_constant": 30}) == "lossmap-rrf-30"
    assert pin.pipeline_id({"weights": [0.7, 0.3]}) == "lossmap-rrf-30-w70_30"
    assert pin.pipeline_id({**NORMS[0], "weights": [0.29, 0.71]}) == "lossmap-norm-min_max-arithmetic_mean-w29_71"


def test_an_answer_that_was_cut_short_is_refused() -> None:
    whole = {"timed_out": False, "_shards": {"failed": 0}}
    legs.require_whole(whole, "i")
    for part in ({**whole, "timed_out": True}, {**whole, "_shards": {"failed": 1}}):
        with pytest.raises(LossmapError, match="in part"):
            legs.require_whole(part, "i")


@pytest.fixture
def at(live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """A scale over the crafted index, its legs frozen."""
    found, passages, rows = live
    place = crafted.scale(monkeypatch, tmp_path, {"stage5": STAGE})
    crafted.freeze_legs(place, found, passages)
    monkeypatch.setattr(pins, "Bench", lambda at: crafted.bench(at, found, rows))
    return place


def test_a_chapter_is_pinned_in_one_run(at) -> None:  # type: ignore[no-untyped-def]
    rows = pins.run(at, "stage5")["rows"]
    pins.require_pinned({"rows": rows})
    seen = [(row["arm"], row["legs"][1], row["every"], row["queries"]) for row in rows]
    norms = [pin.fusion_id(NORMS[0]), pin.fusion_id(NORMS[-1])]
    assert seen == [
        ("rrf-30-default", "hnsw", 1, 24),
        *((name, "hnsw", 20, 2) for name in ("rrf-60", *norms)),
        ("rrf-30-default", "exact", 20, 2),
    ]
    assert {(row["bench"], row["rows"], row["mismatches"]) for row in rows} == {("small/demo", SIZE, 0)}
    assert {row["index_sha256"] for row in rows} == {crafted.INDEX_SHA256}


def test_a_chapter_that_differs_is_refused(at, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(pin, "terms", lambda constant, depth: fuse.reciprocal(constant, depth + 1)[1:])
    report = pins.run(at, "stage5")
    assert {row["arm"] for row in report["rows"] if row["mismatches"]} >= {"rrf-30-default"}
    assert all(len(row["differences"]) <= 20 for row in report["rows"])
    with pytest.raises(LossmapError, match="not the engine's") as refusal:
        pins.require_pinned(report)
    assert refusal.value.exit_code == 3


def test_legs_of_another_index_are_not_pinned(at) -> None:  # type: ignore[no-untyped-def]
    leg = legs.load(at.leg("hnsw"))
    legs.save(at.leg("hnsw"), legs.Leg(leg.query_ids, leg.rows, leg.scores, {**leg.meta, "index_sha256": "other"}))
    with pytest.raises(LossmapError, match="another index") as refusal:
        pins.run(at, "stage5")
    assert refusal.value.exit_code == 3


def test_only_a_leg_that_has_no_more_to_give_is_taken_deeper_than_frozen() -> None:
    rows, scores = np.array([[1, 2]], np.int32), np.array([[2.0, 1.0]], np.float32)
    graph, text = ({"leg": "l", **spec} for spec in ({"k": 2}, {}))
    assert pins.whole(legs.Leg(["q"], rows, scores, graph), 4).rows.tolist() == [[1, 2, fuse.ABSENT, fuse.ABSENT]]
    with pytest.raises(LossmapError, match="deeper"):
        pins.whole(legs.Leg(["q"], rows, scores, text), 4).top(0, 4)


def test_a_stage_of_named_arms_is_pinned_arm_by_arm(live, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    stanza = {"mode": "hybrid", "legs": ["bm25", "exact"], "size": 48, "leg_depth": 48, "rank_constant": 30}
    place = crafted.scale(monkeypatch, tmp_path, {"stage1": {"arms": {"a": {**stanza, "pin": 3}, "b": stanza}}})
    crafted.freeze_legs(place, live[0], live[1])
    monkeypatch.setattr(pins, "Bench", lambda at: crafted.bench(at, live[0], live[2]))
    report = pins.pin_arm(place, "stage1", "a")
    assert (report["arm"], report["queries"], report["mismatches"], report["rows"]) == ("a", 8, 0, 48)
    with pytest.raises(LossmapError, match="not pinned"):
        pins.pin_arm(place, "stage1", "b")
    assert isinstance(pins.Clauses(freeze.Bench(place)), pins.Clauses)
