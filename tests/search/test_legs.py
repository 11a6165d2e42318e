"""Frozen legs, the exact order, and the fusion on lists."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lossmap import fuse
from lossmap.errors import LossmapError
from lossmap.index.vectors import Vectors
from lossmap.search import bodies, legs, pin, pipeline


def leg(rows: list[list[int]], scores: list[list[float]] | None = None) -> legs.Leg:
    values = scores or [[1.0 / (i + 1) for i in range(len(r))] for r in rows]
    padded = legs.pad(list(zip(rows, values, strict=True)), max(map(len, rows)))
    return legs.Leg([f"q{i}" for i in range(len(rows))], *padded, {"leg": "test", "index_sha256": "0"})


def test_a_leg_survives_its_file_and_the_file_has_the_same_bytes_twice(tmp_path: Path) -> None:
    value = leg([[3, 1], [2]])
    for name in ("a.npz", "b.npz"):
        legs.save(tmp_path / name, value)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    found = legs.load(tmp_path / "a.npz")
    assert (found.query_ids, found.top(0, 2), found.top(1, 2), found.meta) == (["q0", "q1"], [3, 1], [2], value.meta)


def test_a_leg_is_not_read_deeper_than_it_was_frozen() -> None:
    with pytest.raises(LossmapError, match="deeper"):
        leg([[1, 2]]).top(0, 3)


@given(st.integers(1, 12), st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_the_exact_leg_equals_a_full_sort_with_duplicates_in_row_order(distinct: int, n: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    # Every distinct vector has a row, as in the index.
    used, inverse = np.unique(random.integers(distinct, size=n), return_inverse=True)
    values = random.normal(size=(len(used), 6)).astype(np.float32)
    query = random.normal(size=6).astype(np.float32)
    rows, scores = next(legs.Exact(Vectors(values, inverse.astype(np.int32))).corpus(query[None], 5))
    cosine = (values.astype(float) @ query.astype(float))[inverse]
    expected = sorted(range(n), key=lambda i: (-np.float32((1 + cosine[i]) / 2), i))[:5]
    assert rows.tolist() == expected and (np.diff(scores) <= 0).all()


def test_recall_by_id_and_by_score_differ_where_texts_are_equal() -> None:
    exact = leg([[0, 1, 2]], [[0.9, 0.8, 0.8]])
    other = leg([[0, 3, 4]], [[0.9, 0.8, 0.1]])
    assert legs.recall(other, exact, 3).tolist() == [1 / 3]
    assert legs.recall_by_score(other, exact, 3).tolist() == [2 / 3]


def test_rrf_is_the_textbook_sum_and_the_engines_within_its_rounding() -> None:
    lists = [[1, 2, 3], [3, 4]]
    plain = fuse.rrf(lists, 30)
    assert plain == {1: 1 / 31, 2: 1 / 32, 3: 1 / 33 + 1 / 31, 4: 1 / 32}
    assert list(plain) == [1, 2, 3, 4]
    assert all(abs(pin.rrf(lists, 30)[d] - s) < 1e-8 for d, s in plain.items())
    assert fuse.ranked(plain, key=int) == [3, 1, 2, 4]


def test_the_engines_term_is_a_decimal_of_ten_digits_in_single_precision() -> None:
    assert pin.term(1.0, 30, 1) == float(np.float32(0.0322580645))
    assert pin.term(1.0, 60, 4) == float(np.float32(0.015625))


@given(st.permutations(range(40)), st.permutations(range(20, 60)))
def test_fusion_holds_every_row_once_in_a_total_order(left: list[int], right: list[int]) -> None:
    fused = pin.rrf([left, right], 30)
    order = fuse.ranked(fused, key=int)
    assert sorted(order) == list(range(60))
    assert all((fused[a], -a) >= (fused[b], -b) for a, b in zip(order, order[1:], strict=False))
    assert sorted(pin.engine_order(fused)) == list(range(60))


def test_an_arm_cuts_each_leg_at_its_depth_and_the_list_at_its_size() -> None:
    frozen = {"a": leg([[1, 2, 3, 4]]), "b": leg([[9, 8, 7, 6]])}
    arm = {"mode": "hybrid", "legs": ["a", "b"], "leg_depth": 2, "size": 3, "rank_constant": 30}
    assert [row for row, _ in pipeline.rank(arm, frozen)["q0"]] == [1, 9, 2]


def test_equal_scores_of_one_leg_are_put_in_row_order() -> None:
    frozen = {"a": leg([[5, 3, 4]], [[1.0, 1.0, 1.0]])}
    assert [row for row, _ in pipeline.rank({"mode": "semantic", "legs": ["a"], "size": 3}, frozen)["q0"]] == [3, 4, 5]


def test_the_text_clause_knows_quotes_one_word_and_several() -> None:
    assert bodies.text_clause('"remote control"')["multi_match"]["type"] == "phrase"
    assert len(bodies.text_clause("budget")["bool"]["should"]) == 1
    three = bodies.text_clause("what about it")["bool"]["should"]
    assert [c["multi_match"]["boost"] for c in three] == [1.5, 0.8, 2.0]


def test_legs_of_two_indexes_are_not_fused() -> None:
    other = leg([[9, 8, 7, 6]])
    other.meta["index_sha256"] = "1"
    arm = {"mode": "hybrid", "legs": ["a", "b"], "leg_depth": 2, "size": 3, "rank_constant": 30}
    with pytest.raises(LossmapError, match="do not belong together") as refusal:
        pipeline.rank(arm, {"a": leg([[1, 2, 3, 4]]), "b": other})
    assert refusal.value.exit_code == 3
