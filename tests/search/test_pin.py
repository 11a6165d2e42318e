"""The offline fusion equals the live engine's, row for row, and one wrong constant shows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from opensearchpy import OpenSearch

from lossmap import fuse
from lossmap.engine import marker
from lossmap.errors import LossmapError
from lossmap.index import build
from lossmap.index.table import Row
from lossmap.index.vectors import Vectors
from lossmap.search import bodies, legs, pin

DIMENSION, CHUNKS, SIZE = 16, 400, 48
WORDS = [
    "budget",
    "colour",
    "battery",
    "remote",
    "price",
    "market",
    "survey",
    "design",
    "button",
    "screen",
    "menu",
    "signal",
]


@pytest.fixture(scope="module")
def live(opensearch: OpenSearch) -> Iterator[tuple[legs.Live, Vectors, list[Row]]]:
    random = np.random.default_rng(7)
    rows = [
        Row(f"{i // 50:08d}-0000-0000-0000-000000000000", i % 50, "demo", f"m{i // 50}", "Demo", "en", "Demo", None,
            "A", ("A",), 0.0, 1.0, " ".join(random.choice(WORDS, 3)))
        for i in range(CHUNKS)
    ]  # fmt: skip
    texts = {text: i for i, text in enumerate(dict.fromkeys(r.text for r in rows))}
    values = random.normal(size=(len(texts), DIMENSION)).astype(np.float32)
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    passages = Vectors(values, np.array([texts[r.text] for r in rows], np.int32))
    key = {"encoder": {"name": "model-a", "dimension": DIMENSION}, "graph": True}
    build.build(opensearch, "lossmap_test_pin", rows, passages, key, timing=(20, 0.05))
    row_of = {row.doc_id: i for i, row in enumerate(rows)}
    yield legs.Live(opensearch, "lossmap_test_pin", row_of), passages, rows
    marker.delete_index(opensearch, "lossmap_test_pin")


def queries(count: int = 24) -> list[tuple[str, list[float]]]:
    random = np.random.default_rng(11)
    vectors = random.normal(size=(count, DIMENSION))
    return [(" ".join(random.choice(WORDS, 2)), vector.tolist()) for vector in vectors]


def both(live: legs.Live, rank_constant: int = 30) -> tuple[list[list[list[int]]], dict[str, list[int]]]:
    """Frozen lists per query and leg, and the live hybrid order."""
    asked = queries()
    clauses = [[bodies.text_leg(text), bodies.knn_leg(vector, 100)] for text, vector in asked]
    frozen = [[rows for rows, _ in legs._search(live, [bodies.request(c, SIZE) for c in pair])] for pair in clauses]
    requests = {str(i): bodies.hybrid(pair, SIZE) for i, pair in enumerate(clauses)}
    name = pin.ensure_pipeline(live.client, rank_constant)
    return frozen, pin.live_orders(live.client, live.index, name, requests, live.row_of)


def mismatches(frozen: list[list[list[int]]], live_order: dict[str, list[int]], rank_constant: int) -> int:
    def offline(query_id: str) -> list[int]:
        return pin.engine_order(pin.rrf(frozen[int(query_id)], rank_constant))[:SIZE]

    compared, differences = pin.compare(offline, live_order)
    assert compared == len(frozen)
    return len(differences)


def test_the_offline_order_is_the_live_order(live) -> None:  # type: ignore[no-untyped-def]
    frozen, order = both(live[0])
    assert mismatches(frozen, order, 30) == 0


def test_a_broken_constant_shows(live) -> None:  # type: ignore[no-untyped-def]
    frozen, order = both(live[0])
    assert mismatches(frozen, order, 31) > 0


def test_a_broken_tie_rule_shows(live, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    frozen, order = both(live[0])
    monkeypatch.setattr(pin, "engine_order", lambda fused: fuse.ranked(fused, key=int))
    assert mismatches(frozen, order, 30) > 0


def test_the_offline_exact_leg_is_the_engines_brute_force(live) -> None:  # type: ignore[no-untyped-def]
    bench, passages, _ = live
    exact = legs.Exact(passages)
    for _, vector in queries(6):
        rows, scores = next(exact.corpus(np.array([vector], np.float32), 30))
        ((found, engine_scores),) = legs._search(bench, [bodies.request(bodies.exact_leg(vector), 30)])
        assert rows.tolist() == found
        # The leg takes its vectors as they are, of unit length or not; the engine divides by the length.
        cosines = (2 * scores.astype(float) - 1) / np.linalg.norm(vector)
        np.testing.assert_allclose((1 + cosines) / 2, engine_scores, atol=1e-5)


def test_a_filter_inside_the_knn_clause_is_exact_and_one_beside_it_is_not(live) -> None:  # type: ignore[no-untyped-def]
    bench, passages, rows = live
    file = rows[0].file_uuid
    members = np.array([i for i, row in enumerate(rows) if row.file_uuid == file])
    for _, vector in queries(6):
        expected, _ = legs.Exact(passages).within(np.array(vector, np.float32), members, 20)
        inside = bodies.request(bodies.knn_leg(vector, 20, inside=True, files=[file]), 20)
        beside = bodies.request(bodies.knn_leg(vector, 20, inside=False, files=[file]), 20)
        (hits_inside, _), (hits_beside, _) = legs._search(bench, [inside, beside])
        assert hits_inside == expected.tolist()
        assert len(hits_beside) < 20


def test_a_failed_query_is_an_error_and_not_an_empty_list(live) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(Exception, match="a query failed"):
        list(legs._search(live[0], [{"query": {"no_such_query": {}}}]))


def test_a_pipeline_of_somebody_else_is_not_overwritten(live) -> None:  # type: ignore[no-untyped-def]
    client, name = live[0].client, pin.pipeline_id(77)
    combination = {"technique": "rrf", "rank_constant": 5}
    theirs = {"phase_results_processors": [{"score-ranker-processor": {"combination": combination}}]}
    path = f"/_search/pipeline/{name}"
    client.transport.perform_request("PUT", path, body=theirs)
    try:
        with pytest.raises(LossmapError, match="not ours") as refusal:
            pin.ensure_pipeline(client, 77)
        assert refusal.value.exit_code == 2
        assert client.transport.perform_request("GET", path)[name] == theirs
    finally:
        client.transport.perform_request("DELETE", path)


def test_an_answer_that_was_cut_short_is_refused() -> None:
    whole = {"timed_out": False, "_shards": {"failed": 0}}
    legs.require_whole(whole, "i")
    for part in ({**whole, "timed_out": True}, {**whole, "_shards": {"failed": 1}}):
        with pytest.raises(LossmapError, match="in part"):
            legs.require_whole(part, "i")
