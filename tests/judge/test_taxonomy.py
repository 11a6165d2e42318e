"""Top-ten movement by hand: every mechanism once, and the three readings of a loss by order alone."""

from __future__ import annotations

import numpy as np
import pytest

from lossmap.errors import LossmapError
from lossmap.judge import taxonomy

DENSE, BM25 = "dense", "bm25"
OLD = [f"o{place}" for place in range(10)]


def test_documents_by_mechanism() -> None:
    """Six come and six go; of the old ones o0 to o2 are relevant, o1 with a vote."""
    came = ["broke", "lifted", "moved", "nowhere", "gold-broke", "gold-lifted"]
    qrels = {"q": {"o0": 1, "o1": 2, "o2": 1, "gold-broke": 1, "gold-lifted": 1, "o3": 0}}
    legs = {
        DENSE: {"q": [*OLD, "lifted", "moved", "gold-lifted"]},
        BM25: {"q": ["broke", "lifted", "gold-broke", "gold-lifted", "o1"]},
    }
    kept = ["o2", "o6", "o7", "o8"]
    found = taxonomy.table(taxonomy.moves(qrels, {"q": OLD}, {"q": [*came, *kept]}, legs))
    assert found["legs"] == [DENSE, BM25]
    intruders = {name: found["intruders"][name] for name in ("total", *taxonomy.MECHANISMS)}
    assert intruders == {"total": 4, "second_only": 1, "both": 1, "first_only": 1, "neither": 1}
    assert found["intruders"]["on_first_share"] == 0.5 and found["intruders"]["second_only_share"] == 0.25
    assert found["relevant_in"]["total"] == 2 and found["relevant_in"]["both"] == 1
    out = found["relevant_out"]
    assert (out["total"], out["both"], out["first_only"], out["with_vote_share"]) == (2, 1, 1, 0.5)


def test_what_stands_below_the_tenth_place_does_not_move() -> None:
    found = taxonomy.table(
        taxonomy.moves({"q": {"x": 1}}, {"q": [*OLD, "x"]}, {"q": [*OLD, "y", "x"]}, {}.fromkeys("ab", {}))
    )
    assert found["intruders"]["total"] == found["relevant_out"]["total"] == 0
    assert found["intruders"]["second_only_share"] is None
    nothing = {"queries": 0, "share": None}
    assert found["loss"] == {
        "queries": 0, "total": 0.0, "stay": nothing, "same_relevant": nothing, "same_rows": nothing
    }  # fmt: skip


@pytest.fixture
def losses() -> taxonomy.Moves:
    """Four queries that lose one place each, and one that wins: by order alone, by a stranger, by a relevant one that
    comes in low while another falls, and by a relevant one that leaves."""
    qrels = {q: {"x": 1} for q in "abde"} | {"c": {"x": 2, "y": 1}}
    before = {q: ["x", "n"] for q in "abd"} | {"c": ["x", "n"], "e": ["n", "x"]}
    after = {"a": ["n", "x"], "b": ["m", "x"], "c": ["n", "m", "k", "l", "x", "y"], "d": ["n", "m"], "e": ["x", "n"]}
    return taxonomy.moves(qrels, before, after)


def test_the_loss_by_order_alone_is_read_three_ways(losses: taxonomy.Moves) -> None:
    found = taxonomy.table(losses)
    loss = found["loss"]
    falls = -losses.change[:4]
    assert (falls > 0).all() and losses.change[4] > 0
    assert loss["queries"] == 4 and loss["total"] == pytest.approx(falls.sum())
    assert [loss[name]["queries"] for name in ("stay", "same_relevant", "same_rows")] == [3, 2, 1]
    assert loss["stay"]["share"] == pytest.approx(falls[:3].sum() / falls.sum())
    assert loss["same_rows"]["share"] == pytest.approx(falls[0] / falls.sum())


def test_without_membership_there_is_no_mechanism(losses: taxonomy.Moves) -> None:
    found = taxonomy.table(losses)
    assert found["legs"] is None and found["relevant_out"] == {"total": 1} and found["relevant_in"] == {"total": 1}


def test_chosen_queries(losses: taxonomy.Moves) -> None:
    found = taxonomy.table(losses, np.array([True, False, False, False, True]))
    assert found["queries"] == 2 and found["loss"]["same_rows"]["share"] == 1.0


def test_a_third_leg_is_refused() -> None:
    with pytest.raises(LossmapError, match="two legs"):
        taxonomy.moves({"q": {"x": 1}}, {}, {}, {"a": {}, "b": {}, "c": {}})
