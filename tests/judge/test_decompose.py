"""The decomposition against trec_eval, its identities, and lists worked out by hand."""

from __future__ import annotations

import random

import numpy as np
import pytest

from lossmap.errors import LossmapError
from lossmap.judge import decompose, intervals, measures
from lossmap.judge.decompose import Judged, Stage

LOG3 = float(np.log2(3))


def judged(rng: random.Random, queries: int) -> dict[str, dict[str, int]]:
    """Few and many relevant documents, and grades that earn nothing."""
    made = {}
    for number in range(queries):
        docs = [f"f_{place}" for place in range(40)]
        grades = {doc: rng.choice([-1, 0, 1, 1, 2, 3]) for doc in rng.sample(docs, rng.randint(1, 30))}
        made[f"demo:m{number % 5}:{number:03d}"] = grades
    return made


def ranking(rng: random.Random, qrels: Judged) -> dict[str, list[str]]:
    lists = {q: rng.sample([f"f_{place}" for place in range(60)], rng.randint(0, 30)) for q in qrels}
    return {q: docs for q, docs in lists.items() if rng.random() > 0.1} | {"a stranger": ["f_1"]}


@pytest.fixture
def random_stages() -> tuple[dict[str, dict[str, int]], list[Stage]]:
    rng = random.Random(7)
    qrels = judged(rng, 80)
    return qrels, [(name, ranking(rng, qrels)) for name in ("one", "two", "three")]


@pytest.mark.parametrize(("name", "cut"), [("nDCG@5", 5), ("nDCG@10", 10), ("nDCG@20", 20)])
def test_the_values_are_those_of_trec_eval(random_stages: tuple[Judged, list[Stage]], name: str, cut: int) -> None:
    qrels, stages = random_stages
    for _, lists in stages:
        scored = measures.score(qrels, {q: [(doc, 0.0) for doc in docs] for q, docs in lists.items()})  # type: ignore[arg-type]
        assert np.abs(decompose.ndcg(qrels, lists, cut) - scored.column(name)).max() < 1e-9
        assert scored.column(name).max() > 0


def test_a_query_without_a_relevant_document_has_no_gain() -> None:
    assert decompose.ndcg({"a": {"x": 0, "y": -1}, "b": {"x": 1}}, {"a": ["x", "y"], "b": ["x"]}).tolist() == [0, 1]


def test_gain_minus_harm_is_the_delta_and_the_deltas_add_up(random_stages: tuple[Judged, list[Stage]]) -> None:
    found = decompose.rows(decompose.decompose(*random_stages))
    assert [row["stage"] for row in found] == ["one", "two", "three"]
    assert [row["before"] for row in found] == [None, "one", "two"]
    for row in found[1:]:
        assert row["gain"] - row["harm"] == pytest.approx(row["delta"], abs=1e-12)
        assert row["harm"] > 0 < row["gain"]
        assert row["harmed"] + row["helped"] + row["unchanged"] == row["queries"] == 80
    total = found[-1]["ndcg"] - found[0]["ndcg"]
    assert sum(row["delta"] for row in found[1:]) == pytest.approx(total, abs=1e-12)


def test_every_column_has_the_interval_of_its_own_values(random_stages: tuple[Judged, list[Stage]]) -> None:
    qrels, stages = random_stages
    groups = {query_id: query_id.rsplit(":", 1)[0] for query_id in qrels}
    found = decompose.decompose(qrels, stages)
    row = decompose.rows(found, groups)[2]
    each = [groups[query_id] for query_id in found.query_ids]
    alone = intervals.paired(found.values[:, [2]], found.values[:, [1]], each)
    harm = intervals.means_with_intervals(np.maximum(found.values[:, [1]] - found.values[:, [2]], 0), each)
    for name, estimate in (("delta", alone), ("harm", harm)):
        assert row[name] == pytest.approx(float(estimate.mean[0]), abs=1e-12)
        for unit, ends in estimate.interval(0).items():
            assert row["intervals"][name][unit] == pytest.approx(ends, abs=1e-9)
    assert row["meetings"] == 5 and row["intervals"]["delta"]["meetings"] != row["intervals"]["delta"]["queries"]


def test_relevant_documents_are_followed_at_any_depth() -> None:
    qrels = {"a": {"x": 2, "y": 1, "z": 1, "n": 0}, "b": {"x": 1}}
    filler = [f"f{place}" for place in range(20)]
    stages: list[Stage] = [
        ("pool", {"a": [*filler, "x", "y", "n"], "b": ["x"]}),
        ("cut", {"a": [*filler, "x"], "b": ["z"]}),
        ("refilled", {"a": ["y", "x"]}),
    ]
    pool, cut, refilled = (row["relevant"] for row in decompose.rows(decompose.decompose(qrels, stages)))
    assert (pool["judged"], pool["held"], pool["held_share"]) == (4, 3, 0.75)
    assert pool["lost"] is pool["lost_share"] is pool["entered"] is None
    assert (cut["held"], cut["lost"], cut["entered"], cut["queries_that_lose"]) == (1, 2, 0, 2)
    assert cut["lost_share"] == pytest.approx(2 / 3)
    assert (refilled["held"], refilled["lost"], refilled["entered"]) == (2, 0, 1)
    assert refilled["lost_share"] == 0.0


def test_a_difference_of_rounding_moves_no_query() -> None:
    qrels = {"a": {"x": 1}}
    found = decompose.decompose(qrels, [("one", {"a": ["x"]}), ("two", {"a": ["x"]})])
    found.values[0, 1] -= 1e-13
    row = decompose.rows(found)[1]
    assert (row["unchanged"], row["harm"], row["delta"]) == (1, 0.0, 0.0)


def test_chosen_queries_and_none(random_stages: tuple[Judged, list[Stage]]) -> None:
    found = decompose.decompose(*random_stages)
    keep = np.arange(80) < 20
    assert decompose.rows(found, keep=keep)[0]["ndcg"] == pytest.approx(found.values[:20, 0].mean())
    assert decompose.rows(found, keep=np.zeros(80, bool)) == []


def test_strata_count_alike_whatever_their_size() -> None:
    qrels: Judged = {q: {"x": 1} for q in "abcd"}
    found = decompose.decompose(qrels, [("one", {"a": ["x"], "b": ["x"], "c": ["x"]})])
    strata = {"a": "large", "b": "large", "c": "large", "d": "small"}
    assert decompose.rows(found)[0]["ndcg"] == pytest.approx(0.75)
    assert decompose.rows(found, strata=strata)[0]["ndcg"] == pytest.approx(0.5)


def test_documents_may_be_row_numbers() -> None:
    found = decompose.decompose({"a": {7: 1, 9: 1}}, [("one", {"a": [8, 7]})])
    assert found.values[0, 0] == pytest.approx((1 / LOG3) / (1 + 1 / LOG3))


def test_refusals() -> None:
    with pytest.raises(LossmapError, match="no stage"):
        decompose.decompose({"a": {"x": 1}}, [])
    with pytest.raises(LossmapError, match="twice.*\n.*second, a\n.*x 2 times"):
        decompose.decompose({"a": {"x": 1}}, [("first", {"a": ["x"]}), ("second", {"a": ["x", "y", "x"]})])


def test_gold_groups_are_covered_wholly_partly_or_not() -> None:
    qrels = {"a": {"p_1": 1, "q_1": 1, "r_1": 0}, "b": {"p_1": 1, "q_2": 2}, "c": {"r_1": 1}, "d": {"r_1": 0}}
    lists = {"a": ["p_9", "q_9", "r_1"], "b": ["r_1", "p_2", "p_3"], "c": ["p_1"], "d": ["r_1"]}
    found = decompose.covered(qrels, lists, lambda doc: doc[0])
    assert (found.gold.tolist(), found.present.tolist()) == ([2, 2, 1, 0], [2, 1, 0, 0])
    assert found.shares.tolist() == [[1, 1, 1, 3], [0, 1, 0.5, 2], [0, 0, 0, 1], [0, 0, 0, 1]]
    assert decompose.covered(qrels, lists, lambda doc: doc[0], depth=1).present.tolist() == [1, 0, 0, 0]


def test_the_oracle_takes_the_better_list_of_each_query() -> None:
    values = np.array([[1.0, 0.0], [0.2, 0.6], [0.5, 0.5]])
    found = decompose.oracle(values, ["dense", "fused"])
    assert found["best_constant"] == "dense"
    assert found["oracle"] == pytest.approx(0.7) and found["gap"] == pytest.approx(0.7 - 1.7 / 3)
    assert found["strictly_best"] == {"dense": 1, "fused": 1} and found["tied"] == 1
    low, high = found["intervals"]["gap"]["queries"]
    assert 0 <= low <= found["gap"] <= high
    with pytest.raises(LossmapError, match="nothing to choose"):
        decompose.oracle(values[:, :1], ["dense"])


def test_quartiles_put_a_value_on_a_cut_above_it() -> None:
    signal = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    found = decompose.quartiles(signal, 2 * signal)
    assert found["cuts"] == [1.0, 2.0, 3.0]
    assert found["bins"] == [
        {"queries": 1, "delta": 0.0}, {"queries": 1, "delta": 2.0},
        {"queries": 1, "delta": 4.0}, {"queries": 2, "delta": 7.0},
    ]  # fmt: skip
    assert found["pearson"] == pytest.approx(1.0)
    assert decompose.quartiles(np.ones(3), np.ones(3))["pearson"] is None
    assert decompose.quartiles(np.zeros(0), np.zeros(0))["bins"] == []
