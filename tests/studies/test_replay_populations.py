"""What is stored, judged and visible, counted by plain loops."""

from __future__ import annotations

import pytest
import replay_crafted

from lossmap.studies.replay import populations

FOUND = replay_crafted.chapter()


@pytest.fixture(autouse=True)
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    replay_crafted.serve(monkeypatch, FOUND)


def test_a_task_and_its_groups_are_counted_once_whatever_the_models() -> None:
    rows = populations.study(replay_crafted.layout())["rows"]
    assert [row["name"] for row in rows if row["part"] == "task"] == ["t0", "t1"]
    asked = FOUND[0].asked
    mine = {row["name"]: row for row in rows if row["task"] == "t0"}
    for pool in replay_crafted.POOLS:
        row, of_pool = mine[pool.name], [query for query in asked if query.pool.name == pool.name]
        assert (row["lines"], row["stored"], row["collapsed"]) == (pool.rows + 2, pool.rows, 2)
        assert row["queries"] == pool.queries
        assert row["gold_missing"] == sum(query.missing for query in of_pool)
        assert row["relevant"] == sum(len(query.gold) + query.missing for query in of_pool)
        assert (row["fallback"], row["unmatched"]) == (1, 1)
    whole = mine["t0"]
    for name in ("lines", "stored", "collapsed", "queries", "relevant", "gold_missing", "fallback", "unmatched"):
        assert whole[name] == sum(mine[pool.name][name] for pool in replay_crafted.POOLS)
    assert whole["gold_missing"] == whole["queries_with_missing"] == 2


@pytest.mark.parametrize("place", range(len(FOUND)))
def test_visibility_looks_at_every_relevant_row(place: int) -> None:
    row, asked = populations.study(replay_crafted.layout())["visibility"][place], FOUND[place].asked
    size = len(asked)
    assert row["no_gold_on_lexical"] == pytest.approx(sum(not query.gold & set(query.lex) for query in asked) / size)
    below = sum(any(query.cosine[gold] < query.floor for gold in query.gold) for query in asked)
    assert row["any_gold_below_floor"] == pytest.approx(below / size)
    assert row["any_gold_missing"] == pytest.approx(sum(query.missing > 0 for query in asked) / size)
    assert row["lexical"] == pytest.approx(sum(len(query.lex) for query in asked) / size)
    admitted = sum(int((query.cosine >= query.floor).sum()) for query in asked)
    assert row["admitted"] == pytest.approx(admitted / size)
    assert row["eligible_median"] == sorted(len(query.eligible) for query in asked)[size // 2]


def test_a_calibration_stands_with_the_band_of_other_samples() -> None:
    rows = populations.study(replay_crafted.layout())["calibration"]
    assert len(rows) == len(FOUND) * len(replay_crafted.POOLS)
    row = next(row for row in rows if row["name"] == "small")
    assert (row["threshold"], row["pool"], row["youden_j"], row["band_seeds"]) == (0.2, 19, 0.5, 5)
    assert (row["band_low"], row["band_high"]) == (0.18, 0.22) and row["band_width"] == pytest.approx(0.04)
    assert row["gate"] == 0.3554 and row["gate_above_floor"]
