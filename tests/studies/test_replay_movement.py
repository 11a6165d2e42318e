"""The taxonomy of the top ten against plain sets."""

from __future__ import annotations

import pytest
import replay_crafted

from lossmap.judge.decompose import BAND
from lossmap.studies.replay import movement

FOUND = replay_crafted.chapter()


@pytest.fixture(autouse=True)
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    replay_crafted.serve(monkeypatch, FOUND)


@pytest.mark.parametrize("place", range(len(FOUND)))
def test_counts_are_those_of_the_definition(place: int) -> None:
    """spec/replay 5.4, query by query."""
    found = FOUND[place]
    names = ("intruder_lexical_only", "intruder_dense_boosted", "gold_in_lexical_only", "gold_in_dense_boosted")
    expected = dict.fromkeys((*names, "gold_out_had_lex_vote", "gold_out_no_lex_vote", "harm_reorder"), 0)
    lost, stayed = 0.0, 0.0
    changes = (found.table["s2"] - found.table["s1"]).tolist()
    for query, change in zip(found.asked, changes, strict=True):
        before, after = (set(replay_crafted.lists(query, stage)[:10]) for stage in ("s1", "s2"))
        for row in after - before:
            kind = "gold_in" if row in query.gold else "intruder"
            expected[f"{kind}_{'dense_boosted' if query.cosine[row] >= query.floor else 'lexical_only'}"] += 1
        out = (before - after) & query.gold
        for row in out:
            expected["gold_out_had_lex_vote" if row in query.lex else "gold_out_no_lex_vote"] += 1
        if change < -BAND:
            expected["harm_reorder"] += not out
            lost, stayed = lost - change, stayed - (0 if out else change)
    row = movement.study(replay_crafted.layout())["rows"][place]
    assert {name: row[name] for name in expected} == expected
    assert sum(expected.values()) > 0 and row["mean"] == "pooled"
    assert row["loss"] == pytest.approx(lost)
    assert row["moved_down_only_share"] == (pytest.approx(stayed / lost) if lost else None)


def test_shares_are_of_their_kind() -> None:
    for row in movement.study(replay_crafted.layout())["rows"]:
        assert row["intruder"] == row["intruder_lexical_only"] + row["intruder_dense_boosted"] > 0
        assert row["intruder_dense_boosted_share"] == pytest.approx(row["intruder_dense_boosted"] / row["intruder"])
        out = row["gold_out"]
        assert row["gold_out_had_lex_vote_share"] == (
            pytest.approx(row["gold_out_had_lex_vote"] / out) if out else None
        )
