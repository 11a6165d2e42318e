"""The witnesses of a replay: nothing differs where nothing was changed, and each change on one side shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from side_by_side import random_task

from lossmap.errors import LossmapError
from lossmap.index.vectors import Vectors
from lossmap.judge import decompose
from lossmap.layout import Layout
from lossmap.memory import freeze, frozen, lexical, recall
from lossmap.memory import store as storing
from lossmap.memory.store import Store
from lossmap.studies.replay import identities, run, witness

THRESHOLD = 0.6


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A task of 300 lines, its frozen scores, the vectors of its questions, and its matrix."""
    task, vectors, queries = random_task(3, 300, "rows")
    at = Layout(tmp_path_factory.mktemp("replay"), "smoke", {"scales": {"smoke": {}}})
    lexical.freeze(task, at)
    lists = lexical.load(lexical.folder(at, task))
    found = freeze.freeze(task, lists, {"g": vectors}, {"g": THRESHOLD}, queries)
    asked = {question.query_id: queries[i] for i, question in enumerate(task.questions)}
    return task, found, vectors, asked


def live(given: Any) -> dict[str, Any]:
    task, found, vectors, asked = given
    group, store = task.groups[0], Store()
    store.fill(group.keys, group.texts, vectors.distinct[vectors.inverse], task.keyed)
    return witness.live(task, found, iter([(group, store)]), asked, {"g": THRESHOLD})


def dense(given: Any, vectors: Vectors) -> dict[str, Any]:
    task, found, _, asked = given
    matrix = vectors.distinct[vectors.inverse]
    ranking = dict(witness.by_cosine(task.questions, matrix, np.array(list(asked.values())), {}))
    qrels = {query: {str(row): 1 for row in gold} for query, gold in found.qrels().items()}
    return witness.dense(qrels, ranking, run.scored(found)["s0"])


def test_nothing_differs(given: Any) -> None:
    said = live(given)
    assert (said["checked"], said["s2_mismatches"], said["s3_mismatches"]) == (12, 0, 0)
    assert said["largest_difference"] == 0 and said["recall_mean"] == said["replay_mean"]
    assert dense(given, given[2])["mismatches"] == 0


@pytest.mark.parametrize(("name", "value"), [("K", 10), ("FLOOR_FACTOR", 1.2)])
def test_another_constant_of_the_live_side_shows(
    given: Any, monkeypatch: pytest.MonkeyPatch, name: str, value: float
) -> None:
    monkeypatch.setattr(recall, name, value)
    said = live(given)
    assert said["s2_mismatches"] > 0 and said["s3_mismatches"] > 0 and len(said["first"]) == 3


def test_another_order_of_ties_of_the_live_side_shows(given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storing, "NEWEST", "created_at DESC, id DESC")
    said = live(given)
    assert said["s2_mismatches"] > 0 and said["s3_mismatches"] > 0


def test_another_gate_shows_after_the_fusion_alone(given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall, "gate", lambda pool: 0.9)
    said = live(given)
    assert said["s2_mismatches"] == 0 and said["s3_mismatches"] > 0 and said["largest_difference"] > 0


def test_other_vectors_show_in_the_dense_order(given: Any) -> None:
    vectors = given[2]
    assert dense(given, Vectors(-vectors.distinct, vectors.inverse))["mismatches"] > 0


@pytest.mark.parametrize(
    ("side", "name"), [("dense", "mismatches"), ("live", "s2_mismatches"), ("live", "s3_mismatches")]
)
def test_one_mismatch_stops_the_study(side: str, name: str) -> None:
    row: dict[str, Any] = {
        "task": "t",
        "model": "m",
        "dense": {"queries": 3, "mismatches": 0, "largest_difference": 0.0},
        "live": {"checked": 3, "s2_mismatches": 0, "s3_mismatches": 0, "first": [], "largest_difference": 0.0},
    }
    identities.require(row)
    row[side][name] = 1
    with pytest.raises(LossmapError, match="differ"):
        identities.require(row)


def test_no_query_checked_is_no_identity() -> None:
    row: dict[str, Any] = {
        "task": "t",
        "model": "m",
        "dense": {"queries": 3, "mismatches": 0, "largest_difference": 0.0},
        "live": {"checked": 0, "s2_mismatches": 0, "s3_mismatches": 0, "first": [], "largest_difference": 0.0},
    }
    with pytest.raises(LossmapError, match="held against a witness"):
        identities.require(row)


def test_scores_are_those_of_the_generic_instrument_to_the_last_bit(given: Any) -> None:
    found = given[1]
    for name, (stage, weight) in run.columns().items():
        ranking = frozen.ranking(found, frozen.order(found, stage, weight))
        assert (run.scored(found)[name] == decompose.ndcg(found.qrels(), ranking)).all(), name
