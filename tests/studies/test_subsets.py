"""Random quarters of the queries and of the meetings, and the first queries by id, against the whole set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import families_of
import numpy as np
import planted
import pytest
from families_of import BENCH, CONTROL, QUERIES, score, values

from lossmap import canon
from lossmap.studies import scores, subsets


def rows_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arms: dict[str, dict[str, float]]) -> dict[str, Any]:
    at = families_of.root(tmp_path, monkeypatch)
    return subsets.study(at, [score(at, arms)])


def row_of(document: dict[str, Any], arm: str, query_class: str = "all") -> dict[str, Any]:
    (row,) = [r for r in document["rows"] if (r["arm"], r["query_class"]) == (arm, query_class)]
    return row


def test_a_draw_is_a_quarter_without_replacement_and_every_unit_has_its_turn() -> None:
    drawn = subsets.draws(41)
    assert drawn.shape == (subsets.DRAWS, 41) and set(drawn.sum(axis=1)) == {10}
    assert np.abs(drawn.mean(axis=0) - 10 / 41).max() < 0.05
    assert set(subsets.draws(3).sum(axis=1)) == {1}
    assert len({row.tobytes() for row in subsets.draws(41)}) == subsets.DRAWS


def test_a_certain_effect_never_flips_and_noise_often_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arms = {"certain": values(1, 0.1, 0.02), "noise": values(2), "same": values(0, spread=0.0)}
    document = rows_of(tmp_path, monkeypatch, arms)
    certain, noise, same = (row_of(document, arm) for arm in arms)
    for kind in ("queries_drawn", "meetings_drawn"):
        assert certain[kind]["flips"] == certain[kind]["zero"] == 0.0
        assert noise[kind]["flips"] > 0.1
        assert same[kind]["flips"] is None and same[kind]["range"] == [0.0, 0.0]
    low, high = certain["queries_drawn"]["range"]
    assert 0 < low < certain["delta"] < high
    assert certain["queries_drawn"]["units"] == 30 and certain["meetings_drawn"]["units"] == 7
    (summary,) = [row for row in document["summary"] if row["query_class"] == "all"]
    assert summary["arms"] == 2
    assert summary["queries_drawn"]["greatest"] == noise["queries_drawn"]["flips"]


def test_shares_are_those_of_a_plain_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = values(2)
    found = rows_of(tmp_path, monkeypatch, {"noise": noise})
    control, ids = values(0, spread=0.0), sorted(QUERIES)
    for query_class in ("all", "lookup"):
        deltas = np.array([noise[q] - control[q] if query_class in ("all", QUERIES[q]) else 0.0 for q in ids])
        opposite = [np.sign(deltas[row == 1].sum()) == -np.sign(deltas.sum()) for row in subsets.draws(len(ids))]
        assert row_of(found, "noise", query_class)["queries_drawn"]["flips"] == pytest.approx(np.mean(opposite))
        meetings = np.array([int(q.split(":")[1][1:]) for q in ids])
        opposite = [
            np.sign(deltas[np.isin(meetings, np.flatnonzero(row))].sum()) == -np.sign(deltas.sum())
            for row in subsets.draws(30)
        ]
        assert row_of(found, "noise", query_class)["meetings_drawn"]["flips"] == pytest.approx(np.mean(opposite))


def test_the_first_queries_by_id_may_say_the_opposite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it happened: the first quarter gains, the rest loses more."""
    monkeypatch.setattr(subsets, "FIRST", 40)
    control = values(0, spread=0.0)
    moved = {q: control[q] + (0.1 if place < 30 else -0.05) for place, q in enumerate(sorted(QUERIES))}
    row = row_of(rows_of(tmp_path, monkeypatch, {"moved": moved}), "moved")
    assert row["delta"] == pytest.approx(-0.0125)
    assert [(f["limit"], f["queries"], f["flips"]) for f in row["first"]] == [(30, 30, True), (40, 40, True)]
    assert row["first"][0]["delta"] == pytest.approx(0.1) and row["first"][1]["delta"] == pytest.approx(0.0625)


def test_a_handful_of_queries_survives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = families_of.root(tmp_path, monkeypatch)
    family = score(at, {"better": values(1, 0.1)})
    tiny = list(QUERIES)[:2]
    for name, value in (("better", 0.5), (CONTROL, 0.2)):
        planted.arm(scores.scored(at, BENCH, "stage5") / name, name, dict.fromkeys(tiny, value), QUERIES)
    document = subsets.study(at, [family])
    row = row_of(document, "better", "lookup")
    assert row["queries_drawn"]["flips"] == 0.0 and 0 < row["queries_drawn"]["draws"] < subsets.DRAWS
    assert canon.dumps(document)
