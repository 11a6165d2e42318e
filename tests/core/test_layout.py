"""Which scale may be published, which index has a graph, and what a bench asks of which index."""

from __future__ import annotations

from pathlib import Path

import pytest

from lossmap import layout
from lossmap.errors import LossmapError
from lossmap.layout import Layout

INDEXES = {
    "main": {"documents": ["a"], "scored": ["a", "b"]},
    "flat": {"documents": ["a"], "scored": ["a"], "graph": False},
}


def at(scale: str = "small", bench: str = "main") -> Layout:
    return Layout(Path("/x"), scale, {"scales": {scale: {"indexes": INDEXES}}}, bench)


def test_every_scale_but_the_internal_one_is_public_and_writes_elsewhere() -> None:
    assert all(at(scale).public for scale in ("smoke", "small", "full", "shipped"))
    internal = at(layout.INTERNAL)
    assert not internal.public and internal.results == Path("/x/build/internal/results")
    assert at("full").results == Path("/x/results")


def test_an_index_has_a_graph_unless_it_says_not() -> None:
    assert at().graph and at(bench="main/b").graph
    assert not at(bench="flat").graph and not at(bench="flat/a").graph
    assert Layout(Path("/x"), "shipped", {"scales": {}}).graph


def test_a_bench_of_one_corpus_shares_the_index_and_asks_its_queries_alone() -> None:
    one = at(bench="main/b")
    assert (one.index, one.documents, one.scored) == ("main", ["a"], ["b"]) and at().scored == ["a", "b"]
    assert one.index_folder == at().index_folder and one.leg("bm25") != at().leg("bm25")


def test_the_configured_scales_mix_no_tier_b_into_what_is_public() -> None:
    config = layout.load().config
    registered = layout._yaml(layout.load().root, "corpora.yaml")["corpora"]
    for scale, stanza in config["scales"].items():
        named = {key for index in stanza["indexes"].values() for key in (*index["documents"], *index["scored"])}
        named |= {config["timings"][rule] for index in stanza["indexes"].values() for rule in index.get("timings", [])}
        named |= {config["timings"][rule] for rule in stanza["chapters"]["corpora"].get("timings", {}).get("rules", [])}
        tiers = {registered[key.partition(".")[0]]["tier"] for key in named}
        assert tiers == {"A"} if scale != layout.INTERNAL else tiers <= {"A", "B"}, scale


def test_an_unknown_scale_is_refused() -> None:
    with pytest.raises(LossmapError, match="unknown scale") as refused:
        layout.load("huge")
    assert refused.value.exit_code == 2


def test_a_key_that_stands_twice_is_refused_and_a_merged_one_is_not(tmp_path: Path) -> None:
    folder = tmp_path / "workflow" / "config"
    folder.mkdir(parents=True)
    (folder / "twice.yaml").write_text("scales:\n  a: {x: 1}\n  b: {x: 1}\n  a: {x: 2}\n")
    with pytest.raises(LossmapError, match=r"stands twice[\s\S]*twice.yaml[\s\S]*'a'") as refused:
        layout._yaml(tmp_path, "twice.yaml")
    assert refused.value.exit_code == 2
    (folder / "merged.yaml").write_text("a: &a {x: 1, y: 1}\nb: {<<: *a, x: 2}\n")
    assert layout._yaml(tmp_path, "merged.yaml")["b"] == {"x": 2, "y": 1}
