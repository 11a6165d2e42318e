"""Lexical evidence given the cosine: pair counts and their variance by brute force, the grid by plain loops."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
import replay_crafted

from lossmap.memory import evidence
from lossmap.memory.evidence import Grid, Sample
from lossmap.memory.frozen import ABSENT, Frozen

Row = tuple[int, float, bool, float]
"""Stratum, score, relevant, weight."""


def stratified(rows: list[Row]) -> evidence.Stratified:
    stratum, score, gold, weight = zip(*rows)
    return evidence.stratified(np.array(score), np.array(gold), np.array(weight, float), np.array(stratum))


def above(rows: list[Row]) -> float:
    """Weight of the pairs of one stratum in which the relevant row is higher, ties 1/2."""
    good = [score for _, score, gold, _ in rows if gold]
    others = [(score, weight) for _, score, gold, weight in rows if not gold]
    return sum(w * ((g > b) + (g == b) / 2) for g in good for b, w in others)


def random_rows(seed: int, strata: int, rows: int) -> list[Row]:
    """Scores of few values (many ties, some absent), strata in no order, one of relevant rows alone."""
    g = np.random.default_rng(seed)
    return [
        (s, float(g.choice([-np.inf, 0, 1, 2, 3])), bool(g.random() < 0.4 or s == 0), float(g.integers(1, 9)))
        for s in g.integers(0, strata, rows).tolist()
    ]


@pytest.mark.parametrize("seed", range(4))
def test_pairs_are_counted_inside_a_stratum(seed: int) -> None:
    rows = random_rows(seed, 7, 60)
    said = stratified(rows)
    split = [[row for row in rows if row[0] == s] for s in range(7)]
    mixed = [some for some in split if len({row[2] for row in some}) == 2]
    assert said.above.tolist() == [above(some) for some in mixed]
    totals = [sum(r[2] for r in some) * sum(r[3] for r in some if not r[2]) for some in mixed]
    assert said.pairs.tolist() == totals and said.auc == pytest.approx(said.above.sum() / sum(totals))
    assert [rows[first][0] for first in said.first] == [some[0][0] for some in mixed]


@pytest.mark.parametrize("seed", range(6))
def test_the_variance_is_that_of_every_way_to_deal_the_scores(seed: int) -> None:
    rows = random_rows(seed, 1, 5 + seed % 2)
    rows = [(0, score, place < 1 + seed % 3, weight) for place, (_, score, _, weight) in enumerate(rows)]
    dealt = [
        above([(0, score, gold, weight) for score, (_, _, gold, weight) in zip(order, rows)])
        for order in itertools.permutations([row[1] for row in rows])
    ]
    said = stratified(rows)
    assert said.variance.tolist() == pytest.approx([np.var(dealt)])
    assert np.mean(dealt) == pytest.approx(said.pairs[0] / 2)
    if np.var(dealt):
        assert said.z == pytest.approx((above(rows) - np.mean(dealt)) / np.std(dealt))


def test_at_weights_of_one_the_variance_is_the_formula_of_the_spec() -> None:
    """n1 n2 / 12 ((N + 1) - sum(t^3 - t) / (N (N - 1))) (spec/replay 6.4)."""
    rows = [(row[0], row[1], row[2], 1.0) for row in random_rows(9, 4, 50)]
    expected = []
    for s in range(4):
        some = [row for row in rows if row[0] == s]
        n, good = len(some), sum(row[2] for row in some)
        scores = [row[1] for row in some]
        cubes = sum(scores.count(t) ** 3 - scores.count(t) for t in set(scores))
        if 0 < good < n:
            expected.append(good * (n - good) / 12 * ((n + 1) - cubes / (n * (n - 1))))
    assert stratified(rows).variance.tolist() == pytest.approx(expected)


def test_two_rows_and_rows_that_all_tie() -> None:
    two = stratified([(0, 1.0, True, 1.0), (0, 0.0, False, 3.0)])
    assert (two.auc, two.z, two.variance.tolist()) == (1.0, 1.0, [2.25])
    tied = stratified([(0, -np.inf, gold, 1.0) for gold in (True, False, False)])
    assert (tied.auc, tied.z) == (0.5, None)


def test_strata_of_one_kind_leave_nothing() -> None:
    alone = stratified([(0, 1.0, True, 1.0), (1, 1.0, False, 1.0)])
    assert (alone.auc, alone.z, len(alone.first)) == (None, None, 0)


def test_blocks_are_of_one_query_and_of_cosines() -> None:
    query = np.array([0, 0, 0, 0, 1, 1])
    cosine = np.array([0.031, 0.039, -0.001, 0.001, 0.035, -0.019])
    found = Sample(query, query > 5, np.ones(6), cosine, cosine, query, query)
    blocks = evidence.strata(found, 0.02)
    same = [[int(a == b) for b in blocks] for a in blocks]
    assert same == [[1, 1, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0], *np.eye(6, dtype=int).tolist()[2:]]


def plain(found: Frozen) -> list[int]:
    """Positions of the rows that are measured."""
    return [
        i
        for i in range(len(found.row))
        if found.chance[i] > 0 and found.dense_eligible[i] >= 0 and not found.fallback[found.query[i]]
    ]


def test_a_sample_is_the_dump_without_like_lists() -> None:
    found = replay_crafted.frozen(1)
    mine, at = evidence.sample(found), plain(found)
    assert found.fallback.any() and mine.query.tolist() == found.query[at].tolist()
    assert mine.gold.tolist() == found.label[at].tolist() and mine.gold.any()
    assert (mine.weight / 20).tolist() == pytest.approx((1 / found.chance[at]).tolist())
    assert (mine.weight == np.rint(mine.weight)).all() and mine.weight.max() > 20
    absent = found.lex[at] == ABSENT
    assert np.isneginf(mine.lexical[absent]).all()
    assert mine.lexical[~absent].tolist() == found.bm25[at][~absent].tolist()


def test_near_rows_are_the_first_of_the_dense_order() -> None:
    mine = evidence.sample(replay_crafted.frozen(1))
    some = evidence.near(mine, 7)
    kept = [i for i, rank in enumerate(mine.dense.tolist()) if rank < 7]
    assert some.query.tolist() == mine.query[kept].tolist() and some.lex.tolist() == mine.lex[kept].tolist()
    assert 0 < len(kept) < len(mine.dense) and (some.weight == 20).all()


def test_what_holds_far_below_does_not_stand_for_the_first_rows() -> None:
    """Lexical scores tell relevant rows near the top and mislead below, where one row stands for a thousand."""
    deep = np.array([0, 0, 1, 1], bool)
    mine = Sample(
        query=np.zeros(4, np.int64),
        gold=np.array([True, False, True, False]),
        weight=np.array([20.0, 20.0, 20.0, 20_000.0]),
        cosine=np.where(deep, 0.1, 0.9),
        lexical=np.array([5.0, 1.0, 1.0, 5.0]),
        dense=np.array([0, 1, 500, 501]),
        lex=np.array([0, 2, 3, 1]),
    )
    whole, first = (
        evidence.stratified(some.lexical, some.gold, some.weight, evidence.strata(some, 0.01)).auc
        for some in (mine, evidence.near(mine))
    )
    assert first == 1.0 and whole == pytest.approx(0.001, abs=1e-5)


def test_absence_is_one_category_below_every_score() -> None:
    """A relevant row that is off the list loses against every row that is on it, and ties with the rest."""
    found = replay_crafted.frozen(1)
    mine = evidence.sample(dataclasses.replace(found, cosine=np.full_like(found.cosine, 0.5)))
    said = evidence.stratified(mine.lexical, mine.gold, np.ones(len(mine.gold)), evidence.strata(mine, 0.01))
    for first, counted in zip(said.first, said.above):
        inside = np.flatnonzero(mine.query == mine.query[first])
        rank = [math.inf if mine.lex[i] == ABSENT else -mine.lexical[i] for i in inside]
        good = [r for r, i in zip(rank, inside) if mine.gold[i]]
        others = [r for r, i in zip(rank, inside) if not mine.gold[i]]
        assert counted == sum((g < b) + (g == b) / 2 for g in good for b in others)


def test_cells_hold_the_rows_of_their_bins() -> None:
    found = replay_crafted.frozen(1)
    mine, at = evidence.grid(evidence.sample(found)), plain(found)
    edges = [*evidence.EDGES, math.inf]
    gold, population = np.zeros((6, 7)), np.zeros((6, 7))
    for i in at:
        dense = next(n for n in range(6) if edges[n] <= found.dense_eligible[i] < edges[n + 1])
        lex = 6 if found.lex[i] == ABSENT else next(n for n in range(6) if edges[n] <= found.lex[i] < edges[n + 1])
        (gold if found.label[i] else population)[dense, lex] += 1 if found.label[i] else 1 / found.chance[i]
    assert mine.gold.tolist() == gold.tolist() and mine.other.sum() + gold.sum() == len(at)
    assert mine.population == pytest.approx(population) and (mine.other <= mine.population + 1e-9).all()


def test_j_is_smoothed_by_one_and_spread_where_both_sides_have_thirty() -> None:
    gold, other = (np.full((2, 3), 40) for _ in range(2))
    gold[1] = [90, 30, 29]
    grid = Grid(gold, other, other * 2.0)
    assert grid.j[1].tolist() == pytest.approx([math.log((c + 1) / 152 * 243 / 81) for c in (90, 30, 29)])
    assert grid.interpretable.tolist() == [[True] * 3, [True, True, False]]
    assert grid.spread() == (1, 0, 1)
    assert grid.j[1, 0] - grid.j[1, 1] == pytest.approx(math.log(91 / 31))
    other[1, 0] = 29
    assert Grid(gold, other, other * 2.0).spread() == (0, 0, 0)


def test_nothing_to_interpret_has_no_spread() -> None:
    few = np.full((6, 7), 29)
    assert Grid(few, few, few * 1.0).spread() is None
    one = few + np.eye(6, 7, dtype=int)
    assert Grid(one, one, one * 1.0).spread() is None


def test_a_law_that_is_the_same_for_both_has_no_evidence() -> None:
    g = np.random.default_rng(0)
    query, gold = np.repeat(np.arange(300), 40), g.random(12_000) < 0.1
    cosine, lexical = g.random(12_000), g.normal(size=12_000)
    found = Sample(query, gold, np.ones(12_000), cosine, lexical, query, query)
    for score, low, high in ((lexical, -3, 3), (lexical + gold, 5, math.inf)):
        z = evidence.stratified(score, gold, found.weight, evidence.strata(found, 0.1)).z
        assert z is not None and low < z < high
