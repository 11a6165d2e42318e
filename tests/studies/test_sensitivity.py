"""Policies that can differ, and a verdict that a policy turns round."""

from __future__ import annotations

import pytest

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.judge import qrels, runs
from lossmap.judge.qrels import ChunkDoc, RelevancePolicy, TurnRow
from lossmap.studies import sensitivity
from lossmap.transcript import GoldSpan

QUERIES = [f"qmsum:m{place}:000" for place in range(8)]
CLASSES = dict.fromkeys(QUERIES, "lookup")
GROUPS = {query_id: query_id.split(":")[1] for query_id in QUERIES}


def edge_case() -> qrels.Coverage:
    """Per meeting one chunk with coverage .05 and one with 1.0."""
    turns, chunks, gold = [], [], []
    for place, query_id in enumerate(QUERIES):
        name = f"f{place}"
        times = ((0, 95, 95), (95, 100, 5), (100, 110, 9))
        turns += [TurnRow(name, index, "A", *row) for index, row in enumerate(times)]
        chunks += [ChunkDoc(name, 0, "A", 0, 100), ChunkDoc(name, 1, "A", 100, 110)]
        gold.append(GoldSpan(query_id, f"m{place}", 1, 2))
    files = {f"m{place}": f"f{place}" for place in range(len(QUERIES))}
    return qrels.coverage(qrels.overlaps(turns, chunks), QUERIES, gold, files)


def run_of(*order: int) -> runs.Run:
    return {
        query_id: runs.normalise([(f"f{place}_{index}", 0.0) for index in order], preserve_order=True)
        for place, query_id in enumerate(QUERIES)
    }


def test_binary_policies_are_not_repeated_per_high() -> None:
    labels = [(policy.high, policy.low, policy.binary) for policy in sensitivity.policies()]
    assert len(labels) == len(set(labels)) == 8
    assert sum(policy.binary for policy in sensitivity.policies()) == 2
    assert RelevancePolicy() in sensitivity.policies()


def test_a_verdict_that_turns_is_found_and_one_that_holds_is_not() -> None:
    arms = {"edge": run_of(0), "middle": run_of(9, 0), "core": run_of(8, 9, 1)}
    document = sensitivity.sensitivity(
        edge_case(), arms, CLASSES, GROUPS, [("edge", "core"), ("edge", "middle"), ("core", "core")]
    )
    found = {(row["arm"], row["control"], row["query_class"], row["measure"]): row for row in document["contrasts"]}
    turned = found["edge", "core", "all", "RR"]
    assert turned["sign_flips"] and turned["verdict_changes"]
    verdicts = {row["policy"]: row["verdict"] for row in turned["by_policy"]}
    lows = {row["policy"]: row["low"] for row in document["policies"]}
    assert all(verdicts[policy] == ("gain" if low == 0 else "loss") for policy, low in lows.items())
    assert not found["edge", "middle", "all", "RR"]["sign_flips"], "a gain or nothing, never a loss"
    still = found["core", "core", "lookup", "nDCG@10"]
    assert not still["sign_flips"] and {row["verdict"] for row in still["by_policy"]} == {"open"}
    canon.dumps(document)


def test_means_name_every_policy_class_and_arm() -> None:
    document = sensitivity.sensitivity(edge_case(), {"a": run_of(0), "b": run_of(1)}, CLASSES, None, [])
    keys = {(row["policy"], row["arm"], row["query_class"]) for row in document["means"]}
    assert len(keys) == len(document["means"]) == 8 * 2 * 2
    assert document["contrasts"] == []
    assert {row["high"] for row in document["policies"] if row["binary"]} == {None}


def test_a_contrast_without_a_run_is_refused() -> None:
    with pytest.raises(LossmapError, match="without a run"):
        sensitivity.sensitivity(edge_case(), {"a": run_of(0)}, CLASSES, None, [("a", "b")])
