"""Which arm a call of `lossmap measure` means, and which calls are refused."""

from __future__ import annotations

import argparse

import pytest

from lossmap import layout
from lossmap.errors import LossmapError
from lossmap.search import choose


def called(*words: str) -> tuple[str, dict]:
    verb = argparse.ArgumentParser()
    choose.add_options(verb)
    return choose.arm(layout.load("smoke"), verb.parse_args(words))


def test_a_stanza_by_name_and_with_a_knob_moved() -> None:
    name, arm = called("--arm", "rrf30-exact")
    assert name == "rrf30-exact" and arm["size"] == arm["leg_depth"] == 48
    name, arm = called("--arm", "rrf30-exact", "--size", "12", "--rank-constant", "60")
    assert name == "rrf30-exact-size12-rank_constant60"
    assert (arm["size"], arm["leg_depth"], arm["rank_constant"]) == (12, 12, 60)


def test_an_arm_described_by_its_parts() -> None:
    name, arm = called("--search-mode", "hybrid", "--dense", "hnsw", "--scope", "gold-files", "--filter", "beside")
    assert name == "hybrid-bm25-gold-hnsw-gold-beside" and arm["legs"] == ["bm25-gold", "hnsw-gold-beside"]
    assert called("--search-mode", "keyword")[1]["legs"] == ["bm25"]
    assert called("--search-mode", "semantic")[1]["legs"] == ["exact"]


@pytest.mark.parametrize(
    "words",
    [
        ("--arm", "rrf30-exact", "--scope", "gold-files"),
        ("--arm", "rrf30-exact", "--dense", "hnsw"),
        ("--arm", "bm25", "--rank-constant", "60"),
        ("--search-mode", "keyword", "--leg-depth", "5"),
        ("--arm", "no-such-arm"),
    ],
)
def test_an_option_that_would_be_ignored_is_an_error(words: tuple[str, ...]) -> None:
    with pytest.raises(LossmapError) as refusal:
        called(*words)
    assert refusal.value.exit_code == 2
