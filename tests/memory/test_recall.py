"""The live pipeline on rows whose cosines and lexical ranks are set by hand; its constants as spec/replay has them."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lossmap.errors import LossmapError
from lossmap.memory import recall, store
from lossmap.memory.recall import Hit, Recall, Regime
from lossmap.memory.store import Keyword, Store

ASKED = np.array([1, 0], np.float32)
NO_FLOOR = -4.0
M_OF_P = {
    19: 0.3554, 20: 0.3530, 30: 0.3342, 31: 0.3327, 43: 0.3173, 55: 0.3057, 96: 0.2792, 110: 0.2727, 196: 0.2450,
    218: 0.2399, 499: 0.2, 500: 0.2, 129_062: 0.2, 0: 0.5, -1: 0.5, 1: 0.4665,
}  # fmt: skip
LAST_RANK = {1: -1, 30: -1, 31: 0, 43: 3, 55: 5, 96: 11, 110: 13, 196: 21, 218: 23, 499: 40, 129_062: 40}


@pytest.fixture
def held() -> Iterator[Store]:
    found = Store()
    yield found
    found.close()


def vectors(cosines: list[float]) -> np.ndarray:
    """Float32 (n, 2) rows whose dot product with ASKED is the cosine, exactly."""
    return np.array([[cosine, 0.5] for cosine in cosines], np.float32)


def with_lists(held: Store, cosines: list[float], lexical: list[int], patch: Any) -> None:
    """Fill ``held`` with rows of these cosines; every keyword search then finds the rows ``lexical``, in this order."""
    keys = [f"m/{n}" for n in range(len(cosines))]
    held.fill(keys, keys, vectors(cosines), "rows")
    hits: list[store.Hit] = [(row + 1, keys[row], float(-place)) for place, row in enumerate(lexical)]
    patch.setattr(Store, "keyword", lambda self, text, limit, strip_punct=False: Keyword(hits[:limit], False))


def order(hits: list[Hit]) -> list[int]:
    return [hit.rowid - 1 for hit in hits]


def test_the_witness_imports_nothing_of_what_it_is_checked_against() -> None:
    allowed = {"lossmap.errors", "lossmap.memory", "lossmap.memory.store"}
    for module in (recall, store):
        tree = ast.parse(Path(module.__file__ or "").read_text())
        own = {
            name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom | ast.Import)
            for name in ([node.module or "."] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names])
            if name.startswith((".", "lossmap"))
        }
        parts = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "lossmap.memory"
            for alias in node.names
        }
        calls = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert own <= allowed and parts <= {"store"}
        assert not calls & {
            "argsort",
            "lexsort",
            "argpartition",
            "partition",
            "unique",
            "searchsorted",
            "import_module",
        }


def test_constants_are_its_own() -> None:
    found = (recall.K, recall.FLOOR_FACTOR, recall.GATE_VOTES, recall.GATE_SCORELESS, recall.CEILING, store.SCAN_WINDOW)
    assert found == (60, 0.5, 3, 100, 300_000, 300_000)


def test_constants_are_read_when_a_recall_runs(held: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a test that changes one of them on this side alone would prove nothing of the identities."""
    with_lists(held, [0.9, 0.4], [1], monkeypatch)
    live = Recall(held, 1.0)
    assert order(live.rrf("asked", ASKED, 5)) == [0, 1] and live.rrf("asked", ASKED, 5)[1].cosine is None
    monkeypatch.setattr(recall, "K", 9)
    monkeypatch.setattr(recall, "FLOOR_FACTOR", 0.25)
    found = live.rrf("asked", ASKED, 5)
    assert order(found) == [1, 0] and [hit.score for hit in found] == [1 / 11 + 1 / 10, 1 / 10]


@pytest.mark.parametrize(("pool", "expected"), M_OF_P.items())
def test_gate_by_the_size_of_the_pool(pool: int, expected: float) -> None:
    assert recall.gate(pool) == expected


@pytest.mark.parametrize(("pool", "expected"), LAST_RANK.items())
def test_the_last_lexical_rank_that_passes(pool: int, expected: int) -> None:
    hits = [Hit(rank, "", 1 / (60 + rank + 1), None) for rank in range(200)]
    assert order(recall.gated(hits, pool)) == list(range(-1, expected))


def test_a_cosine_at_the_gate_passes_in_single_precision() -> None:
    for pool, least in M_OF_P.items():
        at = np.float32(least)
        below = np.nextafter(at, np.float32(0))
        hits = [Hit(1, "", 0.001, float(at)), Hit(2, "", 1.0, float(below)), Hit(3, "", 0.001, float(at) + 0.1)]
        assert order(recall.gated(hits, pool)) == [0, 2]


def test_a_vote_at_the_gate_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall, "gate", lambda pool: 0.2)
    least = 0.2 * 3 / 61
    hits = [Hit(1, "", least, None), Hit(2, "", math.nextafter(least, 0), None), Hit(3, "", 0.0, None)]
    assert order(recall.gated(hits, 7)) == [0]


def test_a_row_without_any_score_passes_in_a_large_pool_or_on_a_blank_query() -> None:
    hit = [Hit(1, "", None, None)]
    assert [recall.gated(hit, pool, blank) for pool, blank in ((99, False), (100, False), (99, True))] == [[], hit, hit]


def test_the_cosine_decides_before_the_vote() -> None:
    strong, weak = Hit(1, "", 1 / 61, 0.1), Hit(2, "", 1 / 900, 0.9)
    assert recall.gated([strong, weak], 129_062) == [weak]


def test_the_floor_is_half_the_threshold_in_single_precision(held: Store) -> None:
    at = float(np.float32(0.3712))
    below, above = float(np.nextafter(np.float32(at), np.float32(0))), at + 0.1
    held.fill(["a", "b", "c", "d"], ["1", "2", "3", "4"], vectors([at, below, above, -1.0]), "rows")
    assert [key for _, _, key in Recall(held, 0.7424).dense(ASKED, 10)] == ["c", "a"]
    assert [key for _, _, key in Recall(held, NO_FLOOR).dense(ASKED, 10)] == ["c", "a", "b", "d"]


def test_equal_cosines_stay_in_the_order_of_the_scan(held: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    cosines = [0.25, 0.5, 0.25, 0.5, 0.75, 0.25]
    held.fill(list("abcdef"), list("abcdef"), vectors(cosines), "rows")
    live = Recall(held, 0.1)
    assert "".join(key for _, _, key in live.dense(ASKED, 6)) == "ebdacf"
    assert "".join(key for _, _, key in live.dense(ASKED, 4)) == "ebda"
    monkeypatch.setattr(store, "NEWEST", "created_at DESC, id DESC")
    assert "".join(key for _, _, key in live.dense(ASKED, 6)) == "edbfca"


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), st.integers(1, 40), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_cosines_are_doubles_cut_to_single(count: int, width: int, block: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix, query = rng.standard_normal((count, width), np.float32), rng.standard_normal(width, np.float32)
    held = Store()
    held.fill([str(n) for n in range(count)], [str(n) for n in range(count)], matrix, "rows")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recall, "BLOCK", block)
        found = Recall(held, -1e9).dense(query, count)
    exact = [math.fsum(float(a) * float(b) for a, b in zip(row, query, strict=True)) for row in matrix]
    expected = sorted(((float(np.float32(value)), n) for n, value in enumerate(exact)), key=lambda pair: -pair[0])
    assert [(cosine, rowid - 1) for cosine, rowid, _ in found] == expected
    held.close()


def test_votes_are_of_ranks_in_both_whole_lists(held: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with_lists(held, [0.9, 0.8, 0.1, 0.7], [2, 3, 0], monkeypatch)
    found = Recall(held, 1.0).rrf("asked", ASKED, 10)  # floor 0.5: row 2 is lexical only
    assert order(found) == [0, 3, 2, 1]
    assert [hit.score for hit in found] == [1 / 61 + 1 / 63, 1 / 63 + 1 / 62, 1 / 61, 1 / 62]
    assert [hit.cosine for hit in found] == [
        float(np.float32(0.9)),
        float(np.float32(0.7)),
        None,
        float(np.float32(0.8)),
    ]
    assert [hit.key for hit in found] == ["m/0", "m/3", "m/2", "m/1"]


def test_swapped_ranks_give_equal_sums_and_the_better_dense_rank_wins(
    held: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_lists(held, [0.6, 0.9, 0.8, 0.7], [3, 2, 0, 1], monkeypatch)
    found = Recall(held, 0.2).rrf("asked", ASKED, 10)  # ranks (r_v, r_l): 0 (3,2), 1 (0,3), 2 (1,1), 3 (2,0)
    assert order(found) == [3, 2, 1, 0]
    with_lists(held, [0.9, 0.8], [1, 0], monkeypatch)
    found = Recall(held, 0.2).rrf("asked", ASKED, 10)
    assert order(found) == [0, 1] and found[0].score == found[1].score == 1 / 61 + 1 / 62


def test_a_lexical_vote_ties_with_a_dense_one_of_its_rank_and_dense_wins(
    held: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_lists(held, [0.1, 0.2, 0.9, 0.8], [0, 1], monkeypatch)
    found = Recall(held, 1.0).rrf("asked", ASKED, 10)
    assert order(found) == [2, 0, 3, 1]
    assert [hit.score for hit in found] == [1 / 61, 1 / 61, 1 / 62, 1 / 62]


def test_a_weight_scales_the_lexical_vote(held: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with_lists(held, [0.1, 0.9, 0.8], [0, 2], monkeypatch)
    by_weight = {w: Recall(held, 1.0, Regime(weight=w)).rrf("asked", ASKED, 10) for w in (0.25, 0.5, 1.0)}
    assert {w: order(hits) for w, hits in by_weight.items()} == {0.25: [2, 1, 0], 0.5: [2, 1, 0], 1.0: [2, 1, 0]}
    assert [hit.score for hit in by_weight[0.25]] == [1 / 62 + 0.25 / 62, 1 / 61, 0.25 / 61]


def test_weight_zero_fills_the_tail_in_lexical_order(held: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with_lists(held, [0.1, 0.6, 0.9, 0.2, 0.3], [4, 1, 0, 2, 3], monkeypatch)
    found = Recall(held, 1.0, Regime(weight=0.0)).rrf("asked", ASKED, 10)
    assert order(found) == [2, 1, 4, 0, 3]
    assert [hit.score for hit in found] == [1 / 61, 1 / 62, 0.0, 0.0, 0.0]
    assert order(Recall(held, 1.0, Regime(weight=0.0)).do_recall("asked", ASKED, 10)) == [1, 2]


PERMUTED = st.integers(1, 12).flatmap(lambda n: st.tuples(st.permutations(range(n)), st.permutations(range(n))))


@settings(max_examples=120, deadline=None)
@given(PERMUTED, st.integers(0, 12), st.integers(0, 12), st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0]))
def test_fusion_is_the_order_of_score_then_dense_then_lexical_rank(
    lists: tuple[list[int], list[int]], admitted: int, matched: int, weight: float
) -> None:
    dense, lexical = lists
    count, held = len(dense), Store()
    admitted, lexical = min(admitted, count), lexical[:matched]
    cosines = [0.9 - 0.01 * dense.index(row) if dense.index(row) < admitted else 0.1 for row in range(count)]
    with pytest.MonkeyPatch.context() as patch:
        with_lists(held, cosines, lexical, patch)
        found = Recall(held, 1.0, Regime(weight=weight)).rrf("asked", ASKED, count)

    def place(row: int) -> tuple[float, int]:
        of_dense, of_lexical = dense.index(row), lexical.index(row) if row in lexical else -1
        score = 1 / (61 + of_dense) if of_dense < admitted else 0.0
        score += weight / (61 + of_lexical) if of_lexical >= 0 else 0.0
        return -score, of_dense if of_dense < admitted else count + of_lexical

    listed = set(dense[:admitted]) | set(lexical)
    assert order(found) == sorted(listed, key=place)
    held.close()


def test_do_recall_is_the_gated_fusion_with_the_best_last(held: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    cosines = [0.9, 0.2, 0.5, *[0.0] * 28]
    with_lists(held, cosines, [5, 6, 1, 0], monkeypatch)
    live = Recall(held, 0.3)  # floor 0.15; 31 rows: m = 0.3327, so of the lexical-only rows the first alone stays
    assert order(live.rrf("asked", ASKED, 31)) == [0, 1, 5, 2, 6]
    assert order(live.do_recall("asked", ASKED, 31)) == [2, 5, 0]
    assert live.deliver(live.rrf("asked", ASKED, 31), 31) == live.do_recall("asked", ASKED, 31)
    with_lists(held, cosines[:30], [5, 6, 1, 0], monkeypatch)
    assert order(live.do_recall("asked", ASKED, 30)) == [2, 0]


def test_the_limit_cuts_after_the_gate(held: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with_lists(held, [0.2, 0.9, 0.8, 0.7], [0], monkeypatch)
    live = Recall(held, 0.3)
    assert order(live.rrf("asked", ASKED, 4)) == [0, 1, 2, 3]
    assert order(live.do_recall("asked", ASKED, 4)) == [3, 2, 1]
    assert order(live.do_recall("asked", ASKED, 2)) == [2, 1]
    assert live.do_recall("asked", ASKED, 0) == live.do_recall("asked", ASKED, -3) == []


def test_limits_are_clamped_to_the_ceiling(held: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with_lists(held, [0.9, 0.8, 0.7], [2, 1, 0], monkeypatch)
    monkeypatch.setattr(recall, "CEILING", 2)
    live = Recall(held, 0.2)
    assert len(live.dense(ASKED, 999_999)) == 2 == len(live.do_recall("asked", ASKED, 999_999))
    assert order(live.rrf("asked", ASKED, 999_999)) == [1, 0, 2]


def test_a_blank_query_gives_the_newest_rows_past_the_gate(held: Store) -> None:
    held.fill(["a", "b", "c"], ["one", "two", "three"], vectors([0.9, 0.8, 0.0]), "rows")
    found = Recall(held, 0.2).do_recall("  ", ASKED, 2)
    assert found == [Hit(2, "b", None, None), Hit(1, "a", None, None)]


def test_the_arms_meet_over_real_text(held: Store) -> None:
    texts = ["the budget was cut", "we agreed on a budget?", "lunch was late", "who keeps the minutes"]
    held.fill(["a", "b", "c", "d"], texts, vectors([0.4, 0.5, 0.9, 0.1]), "rows")
    found = Recall(held, 0.6).rrf("which budget?", ASKED, 4)
    assert [(hit.key, hit.score) for hit in found] == [("b", 1 / 62 + 1 / 61), ("c", 1 / 61), ("a", 1 / 63)]
    stripped = Recall(held, 0.6, Regime(strip_punct=True)).rrf("which budget?", ASKED, 4)
    assert {hit.key: hit.score for hit in stripped}["a"] > 1 / 63


@pytest.mark.parametrize("switch", ["fused_gate", "autocut", "confidence"])
def test_what_the_regime_turns_off_cannot_be_switched_on(switch: str) -> None:
    assert getattr(Regime(), switch) is False
    with pytest.raises(LossmapError, match=f"{switch} is not part of this regime") as raised:
        Regime(**{switch: True})
    assert raised.value.exit_code == 2


def test_the_regime_is_the_shipped_one() -> None:
    assert (Regime().weight, Regime().strip_punct) == (1.0, False)
    for weight in (-0.1, 1.5):
        with pytest.raises(LossmapError, match="0 to 1"):
            Regime(weight=weight)


def test_a_query_that_does_not_fit_the_rows_is_refused(held: Store) -> None:
    held.fill(["a"], ["one"], vectors([0.5]), "rows")
    live = Recall(held, 0.3)
    with pytest.raises(LossmapError, match="2 dimensions"):
        live.rrf("asked", np.zeros(3, np.float32), 5)
    for wrong in (np.zeros(2), np.zeros((1, 2), np.float32)):
        with pytest.raises(LossmapError, match=r"float32 \(d,\)"):
            live.rrf("asked", wrong, 5)
    held.fill(["a"], ["one"], None, "rows")
    with pytest.raises(LossmapError, match="no vector"):
        live.rrf("asked", ASKED, 5)
