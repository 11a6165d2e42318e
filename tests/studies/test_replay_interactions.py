"""Sign flips of fusion: models differ query by query, and the tests pay for the tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import replay_crafted
from replay_crafted import Crafted, macro

from lossmap.errors import LossmapError
from lossmap.judge import multiplicity
from lossmap.studies.replay import interactions

FOUND = replay_crafted.chapter(models=3)


def study(monkeypatch: pytest.MonkeyPatch, found: list[Crafted]) -> dict[str, Any]:
    replay_crafted.serve(monkeypatch, found)
    return interactions.study(replay_crafted.layout())


def pushed(model: str, task: str, by: float) -> Crafted:
    """A replay in which fusion moves every query by ``by``, give or take a little."""
    made = Crafted(model, task)
    made.table["s1"] = np.full(len(made.asked), 0.5)
    made.table["s2"] = 0.5 + by + np.linspace(-0.01, 0.01, len(made.asked))
    return made


def test_an_interaction_is_the_difference_of_two_effects_query_by_query(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = study(monkeypatch, FOUND)["rows"]
    pairs = [(task, a, b) for task in ("t0", "t1") for a, b in (("m0", "m1"), ("m0", "m2"), ("m1", "m2"))]
    assert [(row["task"], row["a"], row["b"]) for row in rows] == pairs
    by_name = {(each.task, each.model): each for each in FOUND}
    for row in rows:
        first, second = (by_name[row["task"], row[side]] for side in "ab")
        difference = macro(first, interactions.fusion(first) - interactions.fusion(second))
        assert row["deltas"]["fus"] == pytest.approx(difference) == pytest.approx(row["fus_a"] - row["fus_b"])
        assert "model" not in row and row["mean"] == "macro"


def test_a_model_does_not_differ_from_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    twin = Crafted("twin", "t0")
    row = study(monkeypatch, [Crafted("m0", "t0"), twin])["rows"][0]
    assert row["deltas"]["fus"] == 0 and row["p_values"] == {"meetings": 1.0, "queries": 1.0}
    assert not row["differ"] and not row["turns"] and row["detectable"] == 0


def test_a_sign_that_turns_is_seen_and_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [pushed("weak", "t0", 0.2), pushed("weak", "t1", 0.1), pushed("strong", "t0", -0.2)]
    found.append(pushed("strong", "t1", 0.1))
    document = study(monkeypatch, found)
    turning, steady = document["signs"]
    assert turning["turns"] and turning["turns_clearly"] and turning["differ"] and turning["differ_holm"]
    assert not steady["turns"] and not steady["differ"]
    assert [sign["sign"] for sign in turning["models"]] == [1, -1]
    row = document["rows"][0]
    assert row["turns"] and row["p_values"]["queries"] == pytest.approx(1 / 10_001)


def test_holm_pays_for_the_tasks_of_a_pair_and_of_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    document = study(monkeypatch, FOUND)
    families = [[row for row in document["effects"] if row["model"] == f"m{i}"] for i in range(3)]
    families += [
        [row for row in document["rows"] if (row["a"], row["b"]) == pair] for pair in (("m0", "m1"), ("m1", "m2"))
    ]
    for family in families:
        assert len(family) == 2
        p = np.array([[row["p_values"]["meetings"]] for row in family])
        assert [row["holm"]["meetings"] for row in family] == multiplicity.holm(p)[:, 0].tolist()


def test_models_over_other_queries_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LossmapError, match="other queries") as refused:
        study(monkeypatch, [Crafted("m0", "t0", seed=0), Crafted("m1", "t0", seed=1)])
    assert refused.value.exit_code == 3
