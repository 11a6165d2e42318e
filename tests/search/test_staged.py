"""Re-rank, diversity and cuts over frozen legs written by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lossmap.errors import LossmapError
from lossmap.search import legs, rerank, staged
from lossmap.search.legs import Leg

QUERIES = ["demo:m:0", "demo:m:1"]
ARM: dict[str, Any] = {"mode": "semantic", "legs": ["exact"], "size": 6}
ROWS = [[5, 4, 3, 2, 1, 0], [0, 1, 2, 3, 4, 5]]
# Of query 0, row 3 is best, 5 and 4 are equal; of query 1 the order stays. Rows stand in no order of any kind.
SCORES = [{0: 9.0, 3: 2.0, 5: -1.0, 4: -1.0, 2: 8.0, 1: 7.0}, {5: 9.0, 0: 3.0, 1: 2.0, 2: 1.0}]


def leg(name: str, hits: list[tuple[list[int], list[float]]], queries: list[str] = QUERIES) -> Leg:
    rows, scores = legs.pad(hits, 8)
    return Leg(queries, rows, scores, {"leg": name, "index_sha256": "i"})


@pytest.fixture
def frozen() -> dict[str, Leg]:
    return {"exact": leg("exact", [(rows, [float(-n) for n in range(6)]) for rows in ROWS])}


@pytest.fixture
def cross() -> Leg:
    return leg("cross", [(list(each), list(each.values())) for each in SCORES])


def file_of(row: int) -> int:
    return row // 2


def test_every_stage_of_the_stanza_and_no_other(frozen: dict[str, Leg], cross: Leg) -> None:
    arm = {**ARM, "pool": 5, "rerank": {"by": "cross", "pairs": 3}, "per_file": 1, "final": 2}
    stages = dict(staged.rank(arm, frozen, cross, file_of))
    assert list(stages) == ["retrieve", "pool", "rerank", "diversity", "final"]
    assert stages["retrieve"] == dict(zip(QUERIES, ROWS))
    assert stages["pool"][QUERIES[0]] == [5, 4, 3, 2, 1]
    assert stages["rerank"] == {QUERIES[0]: [3, 5, 4, 2, 1], QUERIES[1]: [0, 1, 2, 3, 4]}
    assert stages["diversity"] == {QUERIES[0]: [3, 5, 1], QUERIES[1]: [0, 2, 4]}
    assert stages["final"] == {QUERIES[0]: [3, 5], QUERIES[1]: [0, 2]}
    assert staged.of(arm) == ("pool", "rerank", "per_file", "final") and staged.of(ARM) == ()
    assert [name for name, _ in staged.rank(ARM, frozen, None, file_of)] == ["retrieve"]
    assert [name for name, _ in staged.rank({**ARM, "per_file": 2}, frozen, None, file_of)] == ["retrieve", "diversity"]


def test_a_pair_without_a_score_stops_the_arm(frozen: dict[str, Leg], cross: Leg) -> None:
    arm = {**ARM, "rerank": {"by": "cross", "pairs": 4}}
    with pytest.raises(LossmapError, match="no score\n.*demo:m:1\n.*1 of 4 rows, the first 3"):
        staged.rank(arm, frozen, cross, file_of)
    with pytest.raises(LossmapError, match="demo:m:1"):
        staged.rank(arm, frozen, leg("cross", [(list(SCORES[0]), list(SCORES[0].values()))], QUERIES[:1]), file_of)
    with pytest.raises(LossmapError, match="given no scores"):
        staged.rank(arm, frozen, None, file_of)


def test_a_score_that_is_no_number_is_no_score() -> None:
    with pytest.raises(LossmapError, match="1 of 2 rows, the first 7"):
        rerank.reordered([3, 7], {3: 1.0, 7: float("nan")}, 50)


def test_the_tail_keeps_its_place_whatever_its_scores() -> None:
    scores = {0: -9.0, 1: -4.0, 2: 100.0, 3: 200.0}
    assert rerank.reordered([0, 1, 2, 3], scores, 2) == [1, 0, 2, 3]
    assert rerank.reordered([0, 1, 2, 3], scores, 50) == [3, 2, 1, 0]
    assert rerank.reordered([], {}, 50) == []


def test_equal_scores_keep_the_order_of_before() -> None:
    assert rerank.reordered([9, 2, 5], dict.fromkeys((9, 2, 5), 0.5), 3) == [9, 2, 5]


def test_scores_of_a_position_say_the_position() -> None:
    assert rerank.positional([7, 3, 9]) == [(7, 3.0), (3, 2.0), (9, 1.0)]


def test_padding_of_a_leg_is_no_row(cross: Leg) -> None:
    found = dict(staged.scored(cross))
    assert found[QUERIES[1]] == SCORES[1]
    assert np.count_nonzero(cross.rows < 0) == 6
