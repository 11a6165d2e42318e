"""Normalisation and combination, read off the live engine on lists whose scores are chosen: empty, short, and flat."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import crafted
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opensearchpy import OpenSearch, RequestError

from lossmap.search import arms, bodies, legs, pin, pipeline
from lossmap.search.legs import Leg, Live

MEANS = ("arithmetic_mean", "geometric_mean", "harmonic_mean")
FUSIONS: list[dict[str, Any]] = [
    {},
    {"weights": [0.7, 0.3]},
    *(
        {"normalization": norm, "combination": mean, **weights}
        for norm in ("min_max", "l2", "z_score")
        for mean in (MEANS if norm != "z_score" else MEANS[:1])
        for weights in ({}, {"weights": [0.29, 0.71]})
    ),
]
# The last two: a hit exactly at the mean, and scores that single precision does not hold.
LISTS: list[list[float]] = [
    [],
    [3.5],
    [0.25],
    [2.0, 1.0],
    [2.0, 2.0],
    [2.0, 2.0, 2.0, 2.0],
    [5.0, 5.0, 1.0],
    [3.0, 2.0, 1.0],
    [9.1, 7.3, 2.7, 2.7, 0.6],
]
OTHER = [4.0, 3.0, 2.5, 0.5]
SIZE = 12


@pytest.fixture(scope="module")
def live(opensearch: OpenSearch) -> Iterator[Live]:
    with crafted.index(opensearch, "lossmap_test_fusion") as (found, _, _):
        yield found


def scored(live: Live, scores: list[float], first: int) -> dict[str, Any]:
    """A clause that gives chosen scores to the documents of the rows from ``first``."""
    ids = {row: doc_id for doc_id, row in live.row_of.items()}
    should = [
        {"constant_score": {"filter": {"ids": {"values": [ids[first + i]]}}, "boost": score}}
        for i, score in enumerate(scores)
    ]
    nothing: dict[str, Any] = {"match_none": {}}
    return {"bool": {"should": should, "minimum_should_match": 1}} if should else nothing


def both(live: Live, scores: list[float]) -> list[dict[str, Any]]:
    """Two legs that share some documents: the second starts at the second document of the first."""
    return [scored(live, scores, 0), scored(live, OTHER, 1)]


def answered(live: Live, clauses: list[dict[str, Any]], arm: dict[str, Any]) -> list[tuple[int, float]]:
    body = {
        **bodies.hybrid(clauses, SIZE),
        "search_pipeline": {"phase_results_processors": pin.processors(arm)},
    }
    hits = live.client.search(index=live.index, body=body)["hits"]["hits"]
    return [(live.row_of[hit["_id"]], hit["_score"]) for hit in hits]


def offline(live: Live, clauses: list[dict[str, Any]], arm: dict[str, Any]) -> list[tuple[int, float]]:
    spec = {"depth": SIZE}
    frozen = [crafted.frozen(live, [clause], "leg", spec) for clause in clauses]
    found = pipeline.fused({**arm, "size": SIZE}, frozen, 0)
    return [(row, found[row]) for row in pin.engine_order(found)[:SIZE]]


@pytest.mark.parametrize("scores", LISTS, ids=str)
@pytest.mark.parametrize("fusion", FUSIONS, ids=lambda fusion: pin.fusion_id(fusion))
def test_short_and_flat_lists_are_fused_as_the_engine_does(live, fusion, scores) -> None:  # type: ignore[no-untyped-def]
    for clauses in (both(live, scores), both(live, scores)[::-1]):
        expected, found = offline(live, clauses, fusion), answered(live, clauses, fusion)
        assert [row for row, _ in found] == [row for row, _ in expected]
        assert [np.float32(score) for _, score in found] == [np.float32(score) for _, score in expected]


def shares(live: Live, scores: list[float], normalization: str) -> list[float]:
    """What the engine makes of one list, its other leg empty: twice an arithmetic mean of one half."""
    arm = {"normalization": normalization, "combination": "harmonic_mean"}
    arm = {**arm, "combination": "arithmetic_mean"} if normalization == "z_score" else arm
    times = 2 if normalization == "z_score" else 1
    found = dict(answered(live, [scored(live, scores, 0), {"match_none": {}}], arm))
    return [times * found[row] for row in range(len(scores))]


def test_what_the_engine_makes_of_a_list_without_spread(live) -> None:  # type: ignore[no-untyped-def]
    assert shares(live, [3.5], "min_max") == shares(live, [0.25], "min_max") == [1.0]
    assert shares(live, [2.0, 2.0, 2.0], "min_max") == [1.0, 1.0, 1.0]
    assert shares(live, [2.0, 1.0], "min_max") == pytest.approx([1.0, 0.001])
    assert shares(live, [3.5], "l2") == [1.0]


def test_z_score_hands_on_the_raw_best_score_where_a_hit_lies_at_the_mean(live) -> None:  # type: ignore[no-untyped-def]
    assert shares(live, [3.5], "z_score") == [3.5]
    assert shares(live, [2.0, 2.0, 2.0], "z_score") == [2.0, 2.0, 2.0]
    assert shares(live, [3.0, 2.0, 1.0], "z_score") == pytest.approx([1.0, 3.0, 0.001])
    assert shares(live, [2.0, 1.0], "z_score") == pytest.approx([0.5**0.5, 0.001])


def test_a_hit_of_score_zero_never_enters_a_fusion(live) -> None:  # type: ignore[no-untyped-def]
    """Neither leg gives one: BM25 is above 0 where a word matches, and (1 + cosine) / 2 is 0 for opposites alone."""
    assert {row for row, _ in answered(live, both(live, [2.0, 0.0])[:1] * 2, {})} == {0}


def test_a_hit_of_one_leg_keeps_its_share_under_the_means_that_skip(live) -> None:  # type: ignore[no-untyped-def]
    for mean, kept in (("arithmetic_mean", 0.5), ("geometric_mean", 1.0), ("harmonic_mean", 1.0)):
        found = dict(answered(live, both(live, [2.0]), {"normalization": "min_max", "combination": mean}))
        assert found[0] == pytest.approx(kept)


@pytest.mark.parametrize("weights", [[0.7, 0.7], [7.0, 3.0], [0.5], [0.2, 0.3, 0.5], [1.2, -0.2]])
@pytest.mark.parametrize("fusion", [{}, {"normalization": "min_max", "combination": "harmonic_mean"}], ids=str)
def test_the_engine_refuses_weights_that_do_not_sum_to_one_and_so_do_we(live, fusion, weights) -> None:  # type: ignore[no-untyped-def]
    arm = {"mode": "hybrid", "legs": ["bm25", "exact"], **fusion, "weights": weights}
    with pytest.raises(RequestError) as refusal:
        answered(live, both(live, [2.0, 1.0]), arm)
    assert refusal.value.status_code == 400
    with pytest.raises(Exception, match="weight") as ours:
        arms.check_fusion(arm, "test")
    assert ours.value.exit_code == 2


def test_weights_of_rrf_are_taken_as_they_are(live) -> None:  # type: ignore[no-untyped-def]
    found = dict(answered(live, both(live, [2.0]), {"rank_constant": 30, "weights": [0.7, 0.3]}))
    assert found[0] == pytest.approx(0.7 / 31) and found[1] == pytest.approx(0.3 / 31)


@pytest.mark.parametrize("mean", MEANS[1:])
def test_the_engine_refuses_z_score_with_another_mean_and_so_do_we(live, mean: str) -> None:  # type: ignore[no-untyped-def]
    arm = {"mode": "hybrid", "legs": ["bm25", "exact"], "normalization": "z_score", "combination": mean}
    with pytest.raises(RequestError) as refusal:
        answered(live, both(live, [2.0, 1.0]), arm)
    assert refusal.value.status_code == 400
    with pytest.raises(Exception, match="z_score has no such mean") as ours:
        arms.check_fusion(arm, "test")
    assert ours.value.exit_code == 2


def leg(lists: list[list[tuple[int, float]]]) -> Leg:
    hits = [([row for row, _ in hits], [score for _, score in hits]) for hits in lists]
    return Leg([f"q{i}" for i in range(len(lists))], *legs.pad(hits, 12), {"leg": "l", "index_sha256": "0"})


HITS = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from([0.5, 1.0, 1.5, 7.25])), unique_by=lambda hit: hit[0], max_size=12
).map(lambda hits: sorted(hits, key=lambda hit: -hit[1]))


@pytest.mark.parametrize("fusion", FUSIONS, ids=lambda fusion: pin.fusion_id(fusion))
@given(st.lists(st.tuples(HITS, HITS), min_size=1, max_size=4))
def test_every_fusion_is_a_total_order_over_the_hits_of_its_legs(fusion, pairs) -> None:  # type: ignore[no-untyped-def]
    pair = {"bm25": leg([left for left, _ in pairs]), "exact": leg([right for _, right in pairs])}
    arm = {"mode": "hybrid", "legs": ["bm25", "exact"], "size": 30, "leg_depth": 12, **fusion}
    ranked = pipeline.rank(arm, pair)
    for i, (left, right) in enumerate(pairs):
        found, fused = ranked[f"q{i}"], pipeline.fused(arm, list(pair.values()), i)
        assert {row for row, _ in found} == {row for row, _ in left + right} and len(found) == len(fused)
        assert found == sorted(fused.items(), key=lambda hit: (-hit[1], hit[0]))
        assert sorted(pin.engine_order(fused)) == sorted(fused)


@given(st.lists(HITS, min_size=1, max_size=4), st.integers(1, 12))
def test_a_single_leg_is_its_first_rows_with_ties_in_row_order(lists, size: int) -> None:  # type: ignore[no-untyped-def]
    ranked = pipeline.rank({"mode": "keyword", "legs": ["bm25"], "size": size}, {"bm25": leg(lists)})
    for i, hits in enumerate(lists):
        assert ranked[f"q{i}"] == sorted(hits[:size], key=lambda hit: (-hit[1], hit[0]))
