"""Reversed pairs: the condition on votes against the order of plain sorts."""

from __future__ import annotations

import dataclasses
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import replay_crafted

from lossmap.errors import LossmapError
from lossmap.memory import frozen
from lossmap.memory.frozen import ABSENT, K
from lossmap.studies.replay import reversal, run
from lossmap.studies.replay.reversal import DEPTH, KINDS, WEIGHTS

FOUND = replay_crafted.chapter()


@pytest.fixture(autouse=True)
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    replay_crafted.serve(monkeypatch, FOUND)


def counted(found: replay_crafted.Crafted, weight: float) -> Counter[str]:
    """The counts of a row, by loops over the whole lists and in fractions."""
    total: Counter[str] = Counter()
    for query in found.asked:
        fused = replay_crafted.lists(query, "s2", weight)
        place = {row: rank for rank, row in enumerate(fused[:DEPTH])}
        ranked = [row for row in query.dense if row in query.eligible]
        for g in query.gold & query.eligible:
            for b in place.keys() - query.gold:
                if ranked.index(b) > ranked.index(g):
                    total.update(names(query, g, b, weight, place[b] < place.get(g, DEPTH)))
    return total


def names(query: replay_crafted.Query, g: int, b: int, weight: float, turned: bool) -> list[str]:
    def vote(row: int, order: list[int], counts: bool) -> Fraction:
        return Fraction(1, K + order.index(row) + 1) if counts else Fraction(0)

    v_g, v_b = (vote(row, query.dense, bool(query.cosine[row] >= query.floor)) for row in (g, b))
    l_g, l_b = (vote(row, query.lex, row in query.lex) for row in (g, b))
    margin = Fraction(weight) * (l_b - l_g) - (v_g - v_b)
    marks = {"pairs": True, "predicted": margin > 0, "observed": turned, "both": margin > 0 and turned}
    marks["ties"] = abs(margin) <= Fraction(1, 10**12)
    kinds = ["lexical_only" if not v_b else "boosted", "gold_voted" if l_g else "gold_unvoted"]
    return [name for mark, so in marks.items() if so for name in (mark, *(f"{kind}_{mark}" for kind in kinds))]


def test_counts_are_those_of_plain_sorts() -> None:
    rows = reversal.study(replay_crafted.layout())["rows"]
    assert [(row["model"], row["task"], row["weight"]) for row in rows] == [
        (found.model, found.task, weight) for found in FOUND for weight in WEIGHTS
    ]
    for row, (found, weight) in zip(rows, [(found, weight) for found in FOUND for weight in WEIGHTS]):
        expected = counted(found, weight)
        marks = ("pairs", "predicted", "observed", "both", "ties")
        for name in (*marks, *(f"{kind}_{mark}" for kind in KINDS for mark in marks)):
            assert row[name] == expected[name], name
        assert row["disagreements"] == 0
        assert row["reversed_share"] == pytest.approx(row["observed"] / row["pairs"])


def test_every_kind_of_reversal_occurs_here() -> None:
    rows = reversal.study(replay_crafted.layout())["rows"]
    assert all(sum(row[f"{kind}_observed"] for row in rows) > 0 for kind in KINDS)
    assert all(
        sum(row[f"{kind}_observed"] for row in rows) < sum(row[f"{kind}_pairs"] for row in rows) for kind in KINDS
    )


def test_kinds_split_the_pairs_twice() -> None:
    for row in reversal.study(replay_crafted.layout())["rows"]:
        for mark in ("pairs", "predicted", "observed", "both", "ties"):
            assert row[mark] == row[f"lexical_only_{mark}"] + row[f"boosted_{mark}"]
            assert row[mark] == row[f"gold_voted_{mark}"] + row[f"gold_unvoted_{mark}"]


def test_a_swap_of_ranks_is_a_tie_that_the_dense_order_decides() -> None:
    """Rows (0, 1) and (1, 0): sums of the same two votes (spec/replay 3)."""
    found = replay_crafted.frozen(pools=(replay_crafted.Pool("four", 4, -1.0, 1),))
    swapped = np.where(found.dense < 2, 1 - found.dense, ABSENT).astype(np.int32)
    found = dataclasses.replace(found, lex=swapped, label=found.dense == 0)
    (pairs,) = reversal.compared(found, 1.0)
    said = reversal.counted(pairs)
    assert (said["pairs"], said["ties"], said["tied_reversed"], said["predicted"]) == (3, 1, 0, 0)


def test_relevant_rows_are_taken_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = reversal.study(replay_crafted.layout())
    monkeypatch.setattr(reversal, "BLOCK", 3)
    assert reversal.study(replay_crafted.layout()) == whole


@pytest.mark.parametrize("stage", ["s2nf", "s3"])
def test_the_order_of_another_stage_is_refused(monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    order = frozen.order
    monkeypatch.setattr(frozen, "order", lambda found, _, weight, depth: order(found, stage, weight, depth))
    with pytest.raises(LossmapError, match="a fused order is not the one that its votes ask for"):
        reversal.study(replay_crafted.layout())


def test_the_order_of_another_weight_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    order = frozen.order
    monkeypatch.setattr(frozen, "order", lambda found, stage, weight, depth: order(found, stage, weight * 0.9, depth))
    with pytest.raises(LossmapError, match="m0, t0, weight"):
        reversal.study(replay_crafted.layout())


def test_a_task_without_relevant_rows_has_no_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    found = replay_crafted.Crafted()
    none = np.zeros(len(found.frozen.row), bool)
    found.__dict__["frozen"] = dataclasses.replace(found.frozen, label=none)
    monkeypatch.setattr(run, "replayed", lambda at: [found])
    row = reversal.study(replay_crafted.layout())["rows"][0]
    assert row["pairs"] == row["observed"] == 0 and row["reversed_share"] is None
