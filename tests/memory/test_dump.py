"""The row-keyed dump: every column by hand, its nulls by plain loops, its ranks by plain sorts."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import math
from pathlib import Path

import numpy as np
import pytest
import replay_crafted

from lossmap.errors import LossmapError
from lossmap.memory import dump
from lossmap.memory.frozen import ABSENT, Frozen

EXPECTED = """\
task,subtask,qid,row,y,chance,v,r_dense,r_dense_elig,admitted,censored,p_v,l,r_lex,lex_present,p_l,r_s1,r_s2,r_s3,gate_branch,survived,reserved
t,s,q,0,0,1.0,0.875,0,0,1,0,0.1111111111111111,7.5,1,1,0.2222222222222222,0,0,0,1,1,1
t,s,q,1,1,1.0,0.75,1,1,1,0,0.2,,,0,,1,2,2,1,1,1
t,s,q,2,0,1.0,0.625,2,2,1,0,0.2222222222222222,8.0,0,1,0.1111111111111111,2,1,1,1,1,1
t,s,q,3,0,1.0,0.5625,3,3,1,0,0.3333333333333333,,,0,,3,4,3,1,1,1
t,s,q,4,0,0.5,0.5,4,4,1,0,0.5,,,0,,4,5,,0,0,1
t,s,q,5,0,0.25,0.125,5,5,0,1,1.0,2.0,2,1,0.5,,3,,3,0,1
"""
"""Weights of the null: 1, 1, 1, 2 and 4 of rows 0, 2, 3, 4 and 5, each of which is left out of its own. Row 4 is below
the gate, row 5 below the floor, and its lexical vote 1/63 below 3 x 0.55 / 61."""


def tiny() -> Frozen:
    """One query over six rows, row 1 relevant; rows 2, 0 and 5 on the lexical list."""
    numbers = dict.fromkeys(("size", "eligible"), 6) | dict.fromkeys(("admitted", "admitted_eligible"), 5)
    numbers |= {"lexical": 3, "lexical_eligible": 3, "relevant": 1, "missing": 0}
    return Frozen(
        query_ids=("q",),
        subtasks=("s",),
        groups=("g",),
        clusters=("q",),
        **{name: np.array([number], np.int64) for name, number in numbers.items()},
        fallback=np.array([False]),
        subset=np.array([False]),
        floor=np.array([0.4], np.float32),
        gate=np.array([0.55]),
        best=np.array([0.875], np.float32),
        best_eligible=np.array([0.875], np.float32),
        bins=np.array([[1, 1, 3, 0, 0, 0, 0, 0]]),
        offsets=np.array([0, 6]),
        row=np.arange(6, dtype=np.int32),
        cosine=np.array([0.875, 0.75, 0.625, 0.5625, 0.5, 0.125], np.float32),
        dense=np.arange(6, dtype=np.int32),
        dense_eligible=np.arange(6, dtype=np.int32),
        lex=np.array([1, ABSENT, 0, ABSENT, ABSENT, 2], np.int32),
        bm25=np.array([7.5, np.nan, 8.0, np.nan, np.nan, 2.0]),
        label=np.array([False, True, False, False, False, False]),
        working=np.ones(6, bool),
        chance=np.array([1.0, 1.0, 1.0, 1.0, 0.5, 0.25]),
        depth=260,
    )


def written(folder: Path, found: Frozen) -> str:
    dump.write(folder / "dump.csv.gz", found, "t")
    return gzip.decompress((folder / "dump.csv.gz").read_bytes()).decode()


def test_every_column_of_a_query_by_hand(tmp_path: Path) -> None:
    assert written(tmp_path, tiny()) == EXPECTED


def test_a_row_that_the_sample_left_out_is_not_written(tmp_path: Path) -> None:
    """It is here for fusion alone, and stands in no null."""
    chance = np.array([1.0, 1.0, 1.0, 1.0, 0.0, 0.25])
    rows = list(csv.DictReader(written(tmp_path, dataclasses.replace(tiny(), chance=chance)).splitlines()))
    assert [row["row"] for row in rows] == ["0", "1", "2", "3", "5"]
    assert [row["p_v"] for row in rows] == [str(n) for n in (1 / 7, 2 / 8, 2 / 7, 3 / 7, 4 / 4)]


def test_a_probability_is_inclusive_weighted_and_never_zero() -> None:
    """(1 + sum of weights at or above) / (1 + sum of all weights) (spec/replay 6.1), of a row that is no reference."""
    scores = np.array([9.0, 3.0, 2.5, 2.0, 2.0, 1.0, -np.inf, 3.0])
    weight = np.array([0.0, 1.0, 0.0, 2.0, 1.0, 4.0, 8.0, 0.0])
    said = dump.exceedance(scores, weight).tolist()
    assert [said[0], said[2], said[7]] == [1 / 17, 2 / 17, 2 / 17]
    assert dump.exceedance(scores, 0 * weight).tolist() == [1.0] * 8


def test_a_reference_is_held_against_the_others() -> None:
    """However many rows it stands for: the best of all has the least p that there is."""
    said = dump.exceedance(np.array([5.0, 4.0, 4.0, 1.0]), np.array([1000.0, 10.0, 20.0, 100.0]))
    assert said.tolist() == [1 / 131, 1021 / 1121, 1011 / 1111, 1.0]


def test_at_weights_of_one_it_is_the_count_of_the_note() -> None:
    generator = np.random.default_rng(3)
    reference, score = generator.integers(0, 9, 40).astype(float).tolist(), generator.integers(0, 9, 25).tolist()
    plain = [(1 + sum(other >= one for other in reference)) / 41 for one in score]
    for one, expected in zip(score, plain):
        assert dump.exceedance(np.array([*reference, one]), np.array([*[1.0] * 40, 0.0]))[-1] == expected


@pytest.mark.parametrize("seed", [0, 1])
def test_probabilities_stand_on_the_querys_own_irrelevant_rows(seed: int) -> None:
    found = replay_crafted.frozen(seed)
    p_v, p_l = dump.probabilities(found)
    for begin, end in zip(found.offsets, found.offsets[1:]):
        rows = range(begin, end)
        null = [i for i in rows if found.chance[i] > 0 and found.dense_eligible[i] >= 0 and not found.label[i]]
        for i in rows:
            others = [j for j in null if j != i]
            whole = 1 + sum(1 / found.chance[j] for j in others)
            above = [j for j in others if found.cosine[j] >= found.cosine[i]]
            assert p_v[i] == pytest.approx((1 + sum(1 / found.chance[j] for j in above)) / whole)
            if math.isnan(found.bm25[i]):  # off the list, or from LIKE
                assert math.isnan(p_l[i])
                continue
            above = [j for j in others if found.bm25[j] >= found.bm25[i]]
            assert p_l[i] == pytest.approx((1 + sum(1 / found.chance[j] for j in above)) / whole)
    assert any(tied(found, i) for i in range(len(found.row))) and found.fallback.any()


def tied(found: Frozen, i: int) -> bool:
    """Another row of the same query has this lexical score, at another rank."""
    return bool(((found.bm25 == found.bm25[i]) & (found.query == found.query[i])).sum() > 1)


def test_more_relevant_rows_change_no_probability_of_the_others() -> None:
    """A relevant row stands in no null: its own score may be anything."""
    other = dataclasses.replace(tiny(), cosine=np.where(tiny().label, 0.99, tiny().cosine).astype(np.float32))
    assert np.array_equal(dump.probabilities(tiny())[0][~tiny().label], dump.probabilities(other)[0][~tiny().label])


@pytest.mark.parametrize("stage", ["s2", "s3"])
def test_ranks_are_places_on_the_list_of_a_stage(stage: str) -> None:
    found = replay_crafted.frozen(4)
    ranks = dump.ranks(found, stage)
    for number, query in enumerate(replay_crafted.queries(4)):
        place = {row: rank for rank, row in enumerate(replay_crafted.lists(query, stage)[: dump.RANKED])}
        part = slice(found.offsets[number], found.offsets[number + 1])
        expected = [place.get(row, ABSENT) for row in found.row[part].tolist()]
        assert ranks[part].tolist() == expected and len(place) == sum(rank != ABSENT for rank in expected)


def test_scores_that_rise_with_the_rank_are_refused(tmp_path: Path) -> None:
    """SQLite's own bm25 falls with quality: its sign must be turned once, and once only."""
    wrong = dataclasses.replace(tiny(), bm25=-tiny().bm25)
    with pytest.raises(LossmapError, match="lexical scores rise with the rank") as error:
        dump.write(tmp_path / "dump.csv.gz", wrong, "t")
    assert "q" in str(error.value) and "rank 1: -7.5" in str(error.value)
    assert not (tmp_path / "dump.csv.gz").exists()


def test_equal_scores_and_hits_without_a_score_pass() -> None:
    dump.require_falling(dataclasses.replace(tiny(), bm25=np.array([8.0, np.nan, 8.0, np.nan, np.nan, 8.0])))
    dump.require_falling(dataclasses.replace(tiny(), bm25=np.full(6, np.nan)))
    dump.require_falling(replay_crafted.frozen(2))


def test_the_bytes_depend_on_the_scores_alone(tmp_path: Path) -> None:
    found = replay_crafted.frozen(5)
    for name in ("a", "b"):
        dump.write(tmp_path / name, found, "t")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
