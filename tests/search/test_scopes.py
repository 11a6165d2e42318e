"""A leg of the queries' own corpus, in an index that holds another corpus beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from opensearchpy import OpenSearch

from lossmap import transcript
from lossmap.engine import marker
from lossmap.errors import LossmapError
from lossmap.index import build
from lossmap.index.table import Row
from lossmap.index.vectors import Vectors
from lossmap.layout import Layout
from lossmap.search import bodies, freeze, legs, speakers
from lossmap.transcript import GoldSpan, Meeting, Query, Turn

DIMENSION, CHUNKS, DEPTH = 8, 60, 12
INDEX = "lossmap_test_scopes"


def rows() -> list[Row]:
    """Files of two corpora in turn; every fifth text stands in both."""
    return [
        Row(f"{i // 10:08d}-0000-0000-0000-000000000000", i % 10, ("ours", "theirs")[i // 10 % 2], f"m{i // 10}", "D",
            "en", "Demo", None, "AB"[i % 2], ("A", "B"), 0.0, 1.0, f"word{i % 7} shared" if i % 5 else "shared")
        for i in range(CHUNKS)
    ]  # fmt: skip


def passages() -> Vectors:
    order = {text: i for i, text in enumerate(dict.fromkeys(row.text for row in rows()))}
    values = np.random.default_rng(3).normal(size=(len(order), DIMENSION)).astype(np.float32)
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    return Vectors(values, np.array([order[row.text] for row in rows()], np.int32))


def asked() -> np.ndarray:
    return np.random.default_rng(5).normal(size=(4, DIMENSION)).astype(np.float32)


def stub(own: str) -> Any:
    return SimpleNamespace(rows=rows(), own=own, passages=passages(), query_vectors=asked())


@pytest.mark.parametrize("own", ["ours", "theirs"])
def test_the_exact_leg_of_a_corpus_is_the_whole_leg_without_the_others(own: str) -> None:
    whole = freeze._whole(stub(own), CHUNKS)
    scoped = freeze._own_corpus(stub(own), DEPTH)
    for (all_rows, all_scores), (found, scores) in zip(whole, scoped, strict=True):
        mine = [i for i, row in enumerate(all_rows) if rows()[row].corpus == own][:DEPTH]
        assert found.tolist() == all_rows[mine].tolist() and scores.tolist() == all_scores[mine].tolist()


@pytest.fixture(scope="module")
def live(opensearch: OpenSearch) -> Iterator[legs.Live]:
    key = {"encoder": {"name": "model-a", "dimension": DIMENSION}, "graph": False}
    build.build(opensearch, INDEX, rows(), passages(), key, timing=(20, 0.05))
    yield legs.Live(opensearch, INDEX, {row.doc_id: i for i, row in enumerate(rows())})
    marker.delete_index(opensearch, INDEX)


def test_the_engine_keeps_to_the_corpus_in_both_legs(live: legs.Live) -> None:
    exact = freeze._own_corpus(stub("theirs"), DEPTH)
    dense = [bodies.request(bodies.exact_leg(vector.tolist(), corpus="theirs"), DEPTH) for vector in asked()]
    for (expected, _), (found, _) in zip(exact, legs._search(live, dense), strict=True):
        assert expected.tolist() == found
    ((whole, _), (scoped, _)) = legs._search(
        live, [bodies.request(bodies.text_leg("shared", corpus=corpus), CHUNKS) for corpus in (None, "theirs")]
    )
    assert len(whole) == CHUNKS and sorted(scoped) == [i for i, r in enumerate(rows()) if r.corpus == "theirs"]
    assert scoped == [row for row in whole if row in set(scoped)], "statistics are the index's, not the corpus's"


def test_a_leg_of_the_named_speakers_is_the_whole_leg_without_the_others(live: legs.Live) -> None:
    named = [("A",), (), ("A", "B"), ("B",)]
    spoken = freeze._speaker(SimpleNamespace(**vars(stub("ours")), named=named), CHUNKS)  # type: ignore[arg-type]
    for (whole, _), (found, _), names in zip(freeze._whole(stub("ours"), CHUNKS), spoken, named, strict=True):
        assert found.tolist() == [i for i in whole if not names or rows()[i].speaker in names]
    scoped = [{"speakers": names} if names else {} for names in named]
    dense = [bodies.exact_leg(vector.tolist(), **scope) for vector, scope in zip(asked(), scoped, strict=True)]
    live_hits = legs._search(live, [bodies.request(body, CHUNKS) for body in dense])
    assert [hits for hits, _ in live_hits] == [found.tolist() for found, _ in spoken]


def test_speakers_that_a_query_names() -> None:
    names = {"Grad A", "Grad AB", "Marketing", "Industrial Designer", "Designer"}
    assert speakers.named("What did Grad AB and the Industrial Designer say?", names) == (
        "Grad AB",
        "Industrial Designer",
    )
    assert speakers.named("What is the marketing plan of Grad Ax?", names) == ()
    assert speakers.named("anything", set()) == ()


@pytest.fixture
def at(tmp_path: Path) -> Layout:
    """Corpus a, corpus b, and a.set whose gold points into a, over one index."""
    for key, owner in (("a", None), ("b", None), ("a.set", "a")):
        card = {"key": key, "tier": "A", "judged_by": "human", "documents": owner}
        meeting = Meeting("m", "m", "D", "en", None, (Turn(0, "A", "x"),))
        gold = [GoldSpan(f"{key}:m:000", "m", 0, 0)]
        folder = Layout(tmp_path, "smoke", {"scales": {}}).corpus(key)
        transcript.write_corpus(
            folder, [] if owner else [meeting], [Query(f"{key}:m:000", "x", "lookup", "D")], gold, card
        )
    index = {"documents": ["a", "b"], "scored": ["a", "b"]}
    return Layout(tmp_path, "smoke", {"scales": {"smoke": {"indexes": {"main": index}}}})


def bench(at: Layout, name: str) -> freeze.Bench:
    return freeze.Bench(Layout(at.root, at.scale, at.config, name))


def test_the_own_corpus_is_the_one_whose_meetings_the_gold_points_into(at: Layout) -> None:
    spec = {"scope": "own-corpus", "kind": "text"}
    assert [bench(at, f"main/{key}").own for key in ("a", "b", "a.set")] == ["a", "b", "a"]
    clause = bench(at, "main/a.set").clause(spec, 0)
    assert {"term": {"corpus": "a"}} in clause["bool"]["filter"]
    assert bench(at, "main").scope({"scope": "corpus"}, 0) == {}


def test_queries_about_several_corpora_have_no_own_corpus(at: Layout) -> None:
    with pytest.raises(LossmapError, match=r"queries about several[\s\S]*INDEX/CORPUS") as refused:
        bench(at, "main").scope({"scope": "own-corpus"}, 0)
    assert refused.value.exit_code == 2
