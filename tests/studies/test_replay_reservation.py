"""The reservation invariant: what comes back, and that no list is left short."""

from __future__ import annotations

import pytest
import replay_crafted
from replay_crafted import macro

from lossmap.memory import frozen
from lossmap.studies.replay import reservation

FOUND = replay_crafted.chapter()


@pytest.fixture(autouse=True)
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    replay_crafted.serve(monkeypatch, FOUND)


def test_every_variant_is_held_against_the_gated_the_fused_and_the_dense_list() -> None:
    rows = reservation.study(replay_crafted.layout())["rows"]
    for found, row in zip(FOUND, rows, strict=True):
        means = {stage: macro(found, found.table[stage]) for stage in reservation.STAGES}
        for stage in reservation.VARIANTS:
            for before in ("s3", "s2", "s0"):
                assert row["deltas"][f"{stage}_over_{before}"] == pytest.approx(means[stage] - means[before])
        lost, back = means["s2"] - means["s3"], means["s3r"] - means["s3"]
        assert lost > 0 and row["s3r_recovered"] == pytest.approx(back / lost)
        whole = means["s0"] - means["s3"]
        assert row["s3r_recovered_of_all"] == (pytest.approx(back / whole) if whole > 0 else None)


def test_short_lists_are_those_below_ten_or_the_universe() -> None:
    rows = reservation.study(replay_crafted.layout())["rows"]
    for found, row in zip(FOUND, rows, strict=True):
        for stage in ("s1", "s2", "s3"):
            lengths = [len(replay_crafted.lists(query, stage)) for query in found.asked]
            short = sum(length < min(10, len(query.eligible)) for length, query in zip(lengths, found.asked))
            assert row[f"{stage}_short"] == short
        assert row["s1_short"] > 0 and row["s3_short"] >= row["s2_short"]


def test_no_reserved_list_is_short() -> None:
    for found in FOUND:
        for stage in reservation.VARIANTS:
            lengths = (frozen.order(found.frozen, stage) >= 0).sum(axis=1)
            assert (lengths == [min(10, len(query.eligible)) for query in found.asked]).all()


def test_refilling_never_costs_a_query() -> None:
    """Rows are appended below what the gate kept."""
    for found in FOUND:
        assert (found.table["s3r"] >= found.table["s3"]).all()
