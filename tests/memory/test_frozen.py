"""The orders of a replay from the rows that are kept, held against plain code over the whole lists."""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from whole import Whole

from lossmap.errors import LossmapError
from lossmap.memory import cut, frozen

WEIGHTS = (0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
Named = namedtuple("Named", "query_id subtask group cluster")


def asked(query: Whole, gold: tuple[int, ...] = ()) -> cut.Asked:
    eligible = None if query.eligible is None else np.array(sorted(query.eligible), np.int64)
    return cut.Asked(
        cosine=np.array(query.cosine, np.float32),
        listed=np.array(query.listed, np.int32),
        bm25=-np.arange(len(query.listed), dtype=np.float64),
        fallback=False,
        eligible=eligible,
        gold=np.array(sorted(gold), np.int64),
        relevant=len(gold) + 1,
        name="s|q",
    )


def frozen_of(*queries: Whole, depth: int = frozen.DEPTH) -> frozen.Frozen:
    names = [Named(f"q{i:03}", "s", "g", f"q{i:03}") for i in range(len(queries))]
    found = {
        name.query_id: cut.scores(asked(query, (0,)), query.floor, query.gate, depth)
        for name, query in zip(names, queries, strict=True)
    }
    return cut.together(names, found, depth)


def check(*queries: Whole, weights: tuple[float, ...] = WEIGHTS, depths: tuple[int, ...] = (10, 100)) -> None:
    """Every stage and weight, to the first ten and the first hundred rows."""
    found = frozen_of(*queries)
    for stage in frozen.STAGES:
        for weight in weights if stage not in ("s0", "s1") else (1.0,):
            wholes = [query.stage(stage, weight) for query in queries]
            for depth in depths:
                got = frozen.ranking(found, frozen.order(found, stage, weight, depth))
                assert list(got.values()) == [whole[:depth] for whole in wholes], (stage, weight, depth)


def random_query(
    seed: int,
    size: int,
    lexical: int,
    admitted: int,
    gate: float | None = None,
    subset: int | None = None,
    ties: bool = False,
    shape: str = "random",
) -> Whole:
    """A pool in which exactly ``admitted`` rows reach the floor (more where cosines tie at it)."""
    random = np.random.default_rng(seed)
    cosine = random.uniform(0, 1, size).astype(np.float32)
    if ties:
        cosine = np.round(cosine * 20).astype(np.float32) / np.float32(20)
    by_rank = np.lexsort((np.arange(size), -cosine))
    floor = np.float32(2.0) if admitted == 0 else cosine[by_rank[min(admitted, size) - 1]]
    listed = random.permutation(size)[:lexical]
    if shape == "swapped":  # dense rank r has lexical rank r ^ 1: pairs of equal sums
        listed = by_rank[np.arange(size - size % 2) ^ 1][:lexical]
    if shape == "reversed":
        listed = by_rank[::-1][:lexical]
    if shape == "agreed":
        listed = by_rank[:lexical]
    eligible = None if subset is None else set(random.permutation(size)[:subset].tolist())
    return Whole(cosine.tolist(), listed.tolist(), eligible, floor, cut.pool_gate(size) if gate is None else gate)


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_the_kept_rows_give_the_order_of_the_whole_lists(data: st.DataObject) -> None:
    size = data.draw(st.one_of(st.integers(1, 60), st.integers(255, 265), st.integers(300, 900)), "size")
    query = random_query(
        seed=data.draw(st.integers(0, 2**32), "seed"),
        size=size,
        lexical=data.draw(st.one_of(st.sampled_from([0, size]), st.integers(0, size)), "lexical"),
        admitted=data.draw(st.one_of(st.sampled_from([0, size]), st.integers(0, min(size, 300))), "admitted"),
        gate=data.draw(st.one_of(st.none(), st.sampled_from([0.2, 0.5, 0.97, 2.0])), "gate"),
        subset=data.draw(st.one_of(st.none(), st.integers(0, min(size, 50))), "subset"),
        ties=data.draw(st.booleans(), "ties"),
        shape=data.draw(st.sampled_from(["random", "swapped", "reversed", "agreed"]), "shape"),
    )
    check(query, weights=(data.draw(st.sampled_from(WEIGHTS), "weight"),))


CASES = {
    "nothing admitted": {"admitted": 0},
    "nothing admitted, nothing lexical": {"admitted": 0, "lexical": 0},
    "as many admitted as are kept": {"admitted": 260},
    "one more admitted than are kept": {"admitted": 261},
    "starved": {"admitted": 7},
    "all admitted": {"admitted": 700},
    "swapped ranks": {"admitted": 700, "shape": "swapped"},
    "swapped ranks, starved": {"admitted": 9, "shape": "swapped"},
    "lexical list upside down": {"admitted": 700, "shape": "reversed"},
    "lexical list upside down, starved": {"admitted": 5, "shape": "reversed"},
    "gate above all": {"admitted": 700, "gate": 2.0, "shape": "agreed"},
    "gate above most, lexical-only rows deep": {"admitted": 400, "gate": 0.995, "shape": "agreed"},
    "gate above the floor": {"admitted": 500, "gate": 0.6},
    "subset": {"admitted": 300, "subset": 40},
    "subset of fewer than ten": {"admitted": 300, "subset": 6},
    "subset, nothing admitted": {"admitted": 0, "subset": 30, "gate": 0.4},
    "subset of nothing": {"admitted": 100, "subset": 0},
    "equal cosines": {"admitted": 350, "ties": True},
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_adversarial_queries(case: dict[str, object]) -> None:
    check(random_query(**{"seed": 5, "size": 700, "lexical": 700, **case}))  # type: ignore[arg-type]


def test_pools_on_which_the_gate_bites() -> None:
    sizes = (1, 9, 19, 20, 30, 31, 43, 55, 96, 196, 218)
    check(*(random_query(n, n, n, n // 2, shape="reversed") for n in sizes))


def test_a_lexical_only_row_at_the_depth_is_below_all_that_are_kept() -> None:
    """Two rows are admitted; the row of lexical rank 260 is the first that is not kept."""
    cosine = np.linspace(1, 0, 700, dtype=np.float32)
    query = Whole(cosine.tolist(), list(range(699, -1, -1)), None, cosine[1], 0.2)
    found = frozen_of(query)
    assert 699 - 260 not in found.row[found.working] and 699 - 259 in found.row[found.working]
    check(query)


def test_equal_sums_stand_in_order_of_insertion() -> None:
    """Rows 0 and 1 have swapped ranks; row 2, dense alone at rank 2, ties with row 9, lexical alone at rank 2."""
    cosine = np.array([0.9, 0.8, 0.7, 0.1, 0, 0, 0, 0, 0, 0], np.float32)
    found = frozen_of(Whole(cosine.tolist(), [1, 0, 9], None, np.float32(0.5), 0.2))
    assert frozen.ranking(found, frozen.order(found, "s2")) == {"q000": [0, 1, 2, 9]}


def test_no_weight_fills_the_tail_with_lexical_only_rows() -> None:
    cosine = np.array([0.1, 0.9, 0.2, 0.8], np.float32)
    found = frozen_of(Whole(cosine.tolist(), [2, 3, 0], None, np.float32(0.5), 0.2))
    assert frozen.ranking(found, frozen.order(found, "s2", 0.0)) == {"q000": [1, 3, 2, 0]}


@pytest.mark.parametrize(
    ("depth", "weight", "ranks"), [(3000, 1.0, 1470), (260, 1.0, 100), (80, 1.0, 10), (260, 0.0, 260), (5, 1.0, 0)]
)
def test_exact_ranks_of_a_depth(depth: int, weight: float, ranks: int) -> None:
    assert frozen.exact_to(depth, weight) == ranks


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("count", [1, 10, 100])
def test_the_least_depth_of_a_count_is_the_least(count: int, weight: float) -> None:
    depth = frozen.depth_for(count, weight)
    assert frozen.exact_to(depth, weight) >= count > frozen.exact_to(depth - 1, weight)


def test_a_depth_that_is_not_determined_is_refused() -> None:
    found = frozen_of(random_query(1, 700, 700, 700))
    frozen.order(found, "s2", depth=100)
    frozen.order(found, "s0", depth=260)
    with pytest.raises(LossmapError, match="do not determine"):
        frozen.order(found, "s2", depth=101)
    small = frozen_of(random_query(1, 200, 200, 200))
    assert frozen.order(small, "s2", depth=200).shape == (1, 200)


@pytest.mark.parametrize(("stage", "weight"), [("s4", 1.0), ("s2", 1.5), ("s2", -0.1)])
def test_unknown_stages_and_weights_are_refused(stage: str, weight: float) -> None:
    with pytest.raises(LossmapError, match="no such stage"):
        frozen.order(frozen_of(random_query(1, 20, 20, 20)), stage, weight)


def test_extents_are_those_of_the_whole_lists_or_absent() -> None:
    queries = [
        random_query(seed, size, lexical, admitted, gate, subset)
        for seed, (size, lexical, admitted, gate, subset) in enumerate(
            [
                (40, 20, 10, None, None),
                (700, 700, 300, 0.2, None),
                (700, 90, 500, 0.9, None),
                (700, 600, 20, 0.99, None),
            ]
            + [(700, 600, 300, 0.7, 40), (700, 500, 5, 0.5, 5), (30, 30, 0, None, None), (700, 0, 0, 0.2, None)]
        )
    ]
    found = frozen_of(*queries)
    for stage in frozen.STAGES:
        got = frozen.extent(found, stage)
        whole = np.array([len(query.stage(stage)) for query in queries])
        assert np.array_equal(got[got >= 0], whole[got >= 0]), stage
        assert (got >= 0).sum() >= 7, stage


def test_branches_of_the_gate() -> None:
    """Pool of 55: m = .3057, so lexical-only rows pass to rank 5."""
    cosine = np.zeros(55, np.float32)
    cosine[[0, 1]] = 0.5, 0.2
    found = frozen_of(Whole(cosine.tolist(), list(range(1, 10)), None, np.float32(0.1), cut.pool_gate(55)))
    branch = dict(zip(found.row.tolist(), frozen.branch(found).tolist()))
    assert branch == {0: 1, 1: 0} | dict.fromkeys(range(2, 7), 2) | dict.fromkeys(range(7, 10), 3) | dict.fromkeys(
        range(10, 55), -1
    )


def test_pool_gate_of_the_printed_sizes() -> None:
    printed = {0: 0.5, 19: 0.3554, 20: 0.3530, 30: 0.3342, 31: 0.3327, 43: 0.3173, 55: 0.3057, 96: 0.2792, 110: 0.2727}
    printed |= {196: 0.2450, 218: 0.2399, 499: 0.2, 129_062: 0.2}
    assert {size: cut.pool_gate(size) for size in printed} == printed


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    found = frozen_of(random_query(1, 300, 200, 100), random_query(2, 300, 200, 100, subset=20))
    frozen.save(tmp_path / "frozen.npz", found)
    again = frozen.load(tmp_path / "frozen.npz")
    for field in dataclasses.fields(found):
        one, two = getattr(found, field.name), getattr(again, field.name)
        assert type(one) is type(two), field.name
        if isinstance(one, np.ndarray):
            assert one.dtype == two.dtype, field.name
        assert np.array_equal(one, two, equal_nan=field.name == "bm25"), field.name
    first = (tmp_path / "frozen.npz").read_bytes()
    frozen.save(tmp_path / "frozen.npz", again)
    assert (tmp_path / "frozen.npz").read_bytes() == first


def test_a_file_that_is_no_frozen_scores_is_refused(tmp_path: Path) -> None:
    (tmp_path / "frozen.npz").write_bytes(b"PK nothing")
    for name in ("frozen.npz", "absent.npz"):
        with pytest.raises(LossmapError, match="no frozen scores"):
            frozen.load(tmp_path / name)
