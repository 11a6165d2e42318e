"""The gate of the pool's size: how many lexical ranks pass, what it drops, and which group pays."""

from __future__ import annotations

import pytest
import replay_crafted
from replay_crafted import macro

from lossmap.memory.frozen import GATE_FACTOR, K
from lossmap.studies.replay import gate

FOUND = replay_crafted.chapter()


@pytest.fixture(autouse=True)
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    replay_crafted.serve(monkeypatch, FOUND)


@pytest.mark.parametrize(
    ("pool", "rows"),
    [(19, 0), (30, 0), (31, 1), (43, 4), (55, 6), (96, 12), (110, 14), (196, 22), (218, 24), (499, 41), (10**6, 41)],
)
def test_lexical_ranks_that_pass_are_those_of_the_spec(pool: int, rows: int) -> None:
    """spec/replay 4.2, from the rounded m(P)."""
    assert gate.lexical_rows(replay_crafted.gate(pool)) == rows


@pytest.mark.parametrize("place", range(len(FOUND)))
def test_contributions_of_groups_add_up_to_what_the_gate_costs_the_task(place: int) -> None:
    found = FOUND[place]
    rows = [
        r for r in gate.study(replay_crafted.layout())["rows"] if (r["model"], r["task"]) == (found.model, found.task)
    ]
    whole = macro(found, found.table["s3"]) - macro(found, found.table["s2"])
    assert sum(row["contribution"] for row in rows) == pytest.approx(whole)
    assert sum(row["loss_share"] for row in rows) == pytest.approx(1)
    losing = {row["name"] for row in rows if row["deltas"]["gate"] < 0}
    assert losing and losing == {row["name"] for row in rows if row["loss_share"] > 0}


@pytest.mark.parametrize("place", range(len(FOUND)))
def test_dropped_rows_are_counted_by_the_branch_that_drops_them(place: int) -> None:
    found = FOUND[place]
    rows = [
        r for r in gate.study(replay_crafted.layout())["rows"] if (r["model"], r["task"]) == (found.model, found.task)
    ]
    for row in rows:
        mine = [query for query in found.asked if query.pool.name == row["name"]]
        expected = {"dropped_by_cosine": 0, "kept_by_cosine": 0, "kept_by_rank": 0, "dropped_by_rank": 0}
        gold = {"dropped_by_cosine": 0, "dropped_by_rank": 0}
        for query in mine:
            fused = replay_crafted.lists(query, "s2")
            kept = set(replay_crafted.lists(query, "s3"))
            for rank, listed in enumerate(fused):
                branch = "cosine" if query.cosine[listed] >= query.floor else "rank"
                name = f"{'kept' if listed in kept else 'dropped'}_by_{branch}"
                expected[name] += rank < 10
                if listed in query.gold and listed not in kept:
                    gold[name] += 1
        assert {name: row[f"top10_{name}"] for name in expected} == expected
        assert {name: row[f"relevant_{name}"] for name in gold} == gold
        assert row["emptied"] == sum(not replay_crafted.lists(query, "s3") for query in mine)


def test_no_lexical_row_survives_the_smallest_pool() -> None:
    for row in gate.study(replay_crafted.layout())["rows"]:
        if row["pool"] == 19:
            assert row["lexical_rank_cut"] is None and row["top100_kept_by_rank"] == 0
            assert row["gate"] * GATE_FACTOR / (K + 1) > 1 / (K + 1)
