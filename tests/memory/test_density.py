"""The joint density ratio: nothing from nothing, a planted ratio found again, and an order that reads no label."""

from __future__ import annotations

import numpy as np
import pytest
import replay_crafted
from replay_crafted import POOLS, Pool

from lossmap.memory import density, frozen
from lossmap.memory.density import READINGS, Sample

FOUND = replay_crafted.frozen()
ALL = np.ones(len(FOUND.query_ids), bool)


def drawn(seed: int, size: int, shift: float = 0.0, listed: float = 0.7) -> Sample:
    """Rows with a normal v around ``shift``, and a normal l around it on a share ``listed`` of them."""
    generator = np.random.Generator(np.random.PCG64(seed))
    lexical = np.where(generator.random(size) < listed, generator.normal(shift, 1, size), np.nan)
    return Sample(generator.normal(shift, 1, size), lexical, np.ones(size))


@pytest.mark.parametrize("reading", READINGS)
def test_a_null_that_is_the_population_says_nothing_and_leaves_the_dense_order(reading: str) -> None:
    """The trap of spec/replay 6.5: random pairs against all pairs are one law, and their ratio is 1 everywhere."""
    null = density.null(FOUND, ALL, reading)
    ratio = density.fit(null, null)
    assert ratio.log.size > 50 and (ratio.log == 0).all()
    score = ratio.of(*density.read(FOUND, reading))
    assert (density.order(FOUND, score) == frozen.order(FOUND, "s0")).all()


def test_random_rows_against_other_random_rows_say_next_to_nothing() -> None:
    first, second = drawn(1, 20_000), drawn(2, 20_000)
    flat = density.fit(first, second)
    told = np.abs(flat.of(first.dense, first.lexical)).mean()
    assert told < 0.1
    shifted = density.fit(drawn(3, 20_000, 1.0), second)
    assert np.abs(shifted.of(first.dense, first.lexical)).mean() > 10 * told


def test_a_planted_ratio_is_found_again() -> None:
    """Normals of variance 1 whose means are apart by 1 have log ratio v - 1/2; .9 and .3 of the rows are listed."""
    ratio = density.fit(drawn(4, 200_000, 1.0, 0.9), drawn(5, 200_000, 0.0, 0.3))
    v, l = np.array([-0.5, 0.0, 0.5, 1.0, 1.5]), np.array([1.0, 0.0, 0.5, 0.2, 1.5])  # noqa: E741
    assert ratio.of(v, l) == pytest.approx(v + l - 1 + np.log(3), abs=0.35)
    assert ratio.of(v, np.full(5, np.nan)) == pytest.approx(v - 0.5 - np.log(7), abs=0.25)


def test_the_table_falls_along_neither_axis_and_a_monotone_one_comes_back() -> None:
    generator = np.random.Generator(np.random.PCG64(6))
    values, weight = generator.normal(size=(9, 6)), generator.exponential(size=(9, 6))
    made = density.monotone(values, weight)
    assert (np.diff(made, axis=0) >= 0).all() and (np.diff(made, axis=1) >= 0).all()
    assert (density.monotone(made, weight) == made).all()
    assert np.average(made, weights=weight) == pytest.approx(np.average(values, weights=weight), abs=1e-6)


def test_a_cell_without_rows_takes_what_the_cells_below_it_have() -> None:
    values = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 5.0]])
    weight = np.array([[4.0, 4.0], [4.0, density.NEXT_TO_NOTHING], [4.0, 4.0]])
    assert density.monotone(values, weight) == pytest.approx(np.array([[0, 0], [1, 1], [2, 5]]), abs=1e-6)


def test_cuts_are_quantiles_of_weighted_rows_then_halves_of_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    score = np.arange(1024.0)
    assert density.cuts(score, np.ones(1024), 4).tolist() == [256, 512, 768, 896, 960]
    monkeypatch.setattr(density, "LEAST", 256)
    heavy = np.where(score < 512, 3.0, 1.0)
    assert density.cuts(score, heavy, 4).tolist() == pytest.approx([512 / 3, 1024 / 3, 512, 768], abs=1)
    assert density.cuts(np.zeros(1024), heavy, 4).tolist() == density.cuts(np.empty(0), np.empty(0), 4).tolist() == []


def test_a_sampled_row_stands_for_as_many_as_its_chance_says() -> None:
    """Each bin of the dump was drawn from so many rows; the weights of its null rows add up to them."""
    null = density.null(FOUND, ALL, "scores")
    assert null.weight.max() > 1 and null.weight.sum() == pytest.approx(FOUND.bins.sum())
    some = np.arange(len(ALL)) % 2 == 0
    assert density.null(FOUND, some, "scores").weight.sum() == pytest.approx(FOUND.bins[some].sum())
    eligible = FOUND.label & (FOUND.dense_eligible >= 0)
    assert len(density.relevant(FOUND, ALL, "ranks").dense) == eligible.sum() < FOUND.label.sum()


def test_the_readings_are_scores_ranks_and_one_of_each() -> None:
    v, l = density.read(FOUND, "scores")  # noqa: E741
    assert (v == FOUND.cosine).all() and (np.isnan(l) == (FOUND.lex < 0)).all()
    like = (FOUND.lex >= 0) & np.isnan(FOUND.bm25)
    assert like.any() and np.isneginf(l[like]).all() and (l[FOUND.lex >= 0][~like[FOUND.lex >= 0]] >= 0).all()
    v, l = density.read(FOUND, "ranks")  # noqa: E741
    assert (v == -FOUND.dense_eligible).all() and (l[FOUND.lex >= 0] == -FOUND.lex[FOUND.lex >= 0]).all()
    mixed = density.read(FOUND, "mixed")
    assert (mixed[0] == FOUND.cosine).all() and np.array_equal(mixed[1], l, equal_nan=True)


def test_a_row_off_the_list_is_in_a_bin_of_its_own_below_those_on_it() -> None:
    ratio = density.fit(density.relevant(FOUND, ALL, "ranks"), density.null(FOUND, ALL, "ranks"))
    v = -np.arange(10.0)
    off, deep, first = (ratio.of(v, np.full(10, l)) for l in (np.nan, -1e9, 0.0))  # noqa: E741
    assert (off <= deep).all() and (deep <= first).all() and (off < first).any()


def test_rows_are_ordered_by_ratio_then_cosine_then_row() -> None:
    generator = np.random.Generator(np.random.PCG64(7))
    score = generator.integers(3, size=len(FOUND.row)).astype(float)
    top = density.order(FOUND, score)
    for query in range(len(FOUND.query_ids)):
        at = [i for i in range(FOUND.offsets[query], FOUND.offsets[query + 1]) if FOUND.working[i]]
        at.sort(key=lambda i: (-score[i], -FOUND.cosine[i], FOUND.row[i]))
        assert [i for i in top[query].tolist() if i != frozen.ABSENT] == at[:10]


@pytest.mark.parametrize("reading", READINGS)
def test_what_no_unkept_row_can_reach_is_the_order_over_all_rows(reading: str) -> None:
    pools = (Pool("large", 400, 0.05, 30), *POOLS[3:4])
    whole, some = (replay_crafted.frozen(1, pools, depth=depth) for depth in (400, 60))
    asked = np.ones(len(whole.query_ids), bool)
    ratio = density.fit(density.relevant(whole, asked, reading), density.null(whole, asked, reading))
    bound = density.unkept(some, ratio, reading)
    tops = []
    for found in (whole, some):
        score = ratio.of(*density.read(found, reading))
        tops.append((density.order(found, score), score))
    tenth = tops[1][1][tops[1][0][:, -1]]
    sure = (tenth > bound) | np.isneginf(bound)
    rows = [frozen.ranking(found, top) for found, (top, _) in zip((whole, some), tops)]
    same = np.array([rows[0][query] == rows[1][query] for query in some.query_ids])
    assert same[sure].all() and sure[~some.subset].any() and np.isneginf(bound[some.subset]).all()


def test_without_relevant_rows_there_is_nothing_to_say() -> None:
    nobody = np.zeros(len(ALL), bool)
    ratio = density.fit(density.relevant(FOUND, nobody, "scores"), density.null(FOUND, ALL, "scores"))
    assert (ratio.log == 0).all()
