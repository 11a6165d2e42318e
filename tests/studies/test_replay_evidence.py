"""Rows of evidence.json: ratios of sums with their intervals, and the grid of ranks."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
import replay_crafted

from lossmap import canon
from lossmap.judge import intervals
from lossmap.memory.frozen import ABSENT
from lossmap.studies.replay import evidence, run
from lossmap.studies.replay.evidence import RESAMPLES

FOUND = replay_crafted.chapter()
WIDE = 0.5
"""A block so wide that the crafted queries have several rows in it."""


@pytest.fixture(autouse=True)
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    replay_crafted.serve(monkeypatch, FOUND)
    monkeypatch.setattr(evidence, "DELTAS", (WIDE, 0.02))


def sums(found: replay_crafted.Crafted, name: str, weighting: str) -> dict[str, list[float]]:
    """Query id to the weight of won pairs and of all pairs, by loops."""
    frozen, out = found.frozen, {}
    for number, query_id in enumerate(frozen.query_ids):
        rows = range(frozen.offsets[number], frozen.offsets[number + 1])
        end = 100 if weighting == "near" else math.inf
        kept = [i for i in rows if frozen.chance[i] > 0 and 0 <= frozen.dense_eligible[i] < end]
        won = whole = 0.0
        for g, b in itertools.product(kept, kept):
            if frozen.fallback[number] or not frozen.label[g] or frozen.label[b]:
                continue
            blocks = [math.floor(float(frozen.cosine[i]) / WIDE) for i in (g, b)]
            l_g, l_b = (-math.inf if frozen.lex[i] == ABSENT else frozen.bm25[i] for i in (g, b))
            first, second = (l_g, l_b) if name == "auc" else (frozen.cosine[g], frozen.cosine[b])
            weight = (1.0 if weighting == "sample" else 1 / frozen.chance[b]) * (blocks[0] == blocks[1])
            won, whole = won + weight * ((first > second) + (first == second) / 2), whole + weight
        out[query_id] = [won, whole]
    return out


@pytest.mark.parametrize("name", ["auc", "control"])
@pytest.mark.parametrize("weighting", ["population", "near", "sample"])
def test_ratios_are_those_of_plain_loops(name: str, weighting: str) -> None:
    rows = evidence.study(replay_crafted.layout())["rows"]
    assert len(rows) == len(FOUND) * 2 * 3
    for found in FOUND:
        (row,) = [
            r
            for r in rows
            if (r["model"], r["task"], r["delta"], r["weighting"]) == (found.model, found.task, WIDE, weighting)
        ]
        each = sums(found, name, weighting)
        won, whole = (sum(column) for column in zip(*each.values()))
        assert row[name] == pytest.approx(won / whole) and row["pairs"] == pytest.approx(whole)
        assert row["queries"] == sum(pairs > 0 for _, pairs in each.values())
        assert row["like_left_out"] == found.frozen.fallback.sum() > 0


@pytest.mark.parametrize("weighting", ["population", "near", "sample"])
def test_intervals_resample_queries_and_clusters_whole(weighting: str) -> None:
    found = FOUND[0]
    row = next(r for r in evidence.study(replay_crafted.layout())["rows"] if r["weighting"] == weighting)
    each = sums(found, "auc", weighting)
    clusters = run.clusters(found)
    assert clusters is not None
    by_meeting = {name: np.zeros(2) for name in sorted(set(clusters))}
    for name, pair in zip(clusters, each.values()):
        by_meeting[name] += pair
    for unit, units in (("queries", list(each.values())), ("meetings", list(by_meeting.values()))):
        drawn = intervals.counts(len(units))[:RESAMPLES]
        totals = [[sum(n * u[c] for n, u in zip(some, units)) for c in (0, 1)] for some in drawn.tolist()]
        ratios = [won / whole for won, whole in totals if whole]
        assert row["intervals"]["auc"][unit] == pytest.approx(np.quantile(ratios, (0.025, 0.975)).tolist())


def test_a_resample_without_pairs_is_left_out() -> None:
    ends = evidence._ends(np.array([[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]]))
    assert ends.tolist() == [[0.5, 0.5]]


def test_the_grid_is_compact_and_its_spread_is_of_its_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lossmap.memory.evidence.LEAST", 1)
    document = evidence.study(replay_crafted.layout())
    assert len(document["grid"]) == len(document["spread"]) == len(FOUND)
    names = [*document["edges"], None]
    for cells, said in zip(document["grid"], document["spread"]):
        kept = [[value for value in row if value is not None] for row in cells["j"]]
        assert (
            said["spread"] == pytest.approx(max(max(row) - min(row) for row in kept if len(row) > 1))
            and said["spread"] > 0
        )
        row = cells["j"][document["edges"].index(said["dense"])]
        assert (
            row[names.index(said["lex_high"])] == said["j_high"] and row[names.index(said["lex_low"])] == said["j_low"]
        )
        assert said["gold"] == sum(map(sum, cells["gold"])) and said["interpretable"] == sum(map(len, kept))


def test_nothing_to_measure_is_none_and_not_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every list from LIKE: no lexical score stands anywhere."""
    found = replay_crafted.Crafted()
    like = np.ones(len(found.frozen.query_ids), bool)
    found.__dict__["frozen"] = dataclasses.replace(found.frozen, fallback=like)
    replay_crafted.serve(monkeypatch, [found])
    document = evidence.study(replay_crafted.layout())
    row = document["rows"][0]
    assert row["auc"] is row["z"] is row["control"] is row["intervals"]["auc"] is None
    assert row["pairs"] == row["queries"] == 0 and row["like_left_out"] == len(like)
    assert document["spread"][0]["spread"] is None
    canon.dumps(document)
