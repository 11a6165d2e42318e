"""Lists before and after re-ranking: the same documents, judged alike, and whose training corpus a row stands on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import planted
import pytest

from lossmap import canon, layout, settings
from lossmap.encode import pairs, rerankers
from lossmap.encode.cross import Pair
from lossmap.errors import LossmapError
from lossmap.judge.qrels import Coverage
from lossmap.layout import Layout
from lossmap.studies import judging, reranker_quality

CHUNKS, QUERIES = 12, 4
FIXTURE = "fixture-qmsum"


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Layout]:
    """One bench of four queries over twelve chunks; the gold of each stands last of its list."""
    registry = {name: _stanza(name) for name in rerankers.registry()}
    config = tmp_path / rerankers.CONFIG
    config.parent.mkdir(parents=True)
    canon.write_json(config, registry)
    monkeypatch.setenv("LOSSMAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LOSSMAP_OFFLINE", "1")
    index = {"documents": ["fixture"], "scored": ["fixture"]}
    found = planted.scale(monkeypatch, tmp_path, {"main": index}, {}, {})
    rerankers.registry.cache_clear()
    found.config["scales"]["tiny"]["quality"] = {"rerankers": [FIXTURE], "benches": {"main": 10}}
    queries = {f"fixture:m{i}:000": (f"what about topic {i}", "lookup") for i in range(QUERIES)}
    planted.corpus(found, "fixture", [], queries, {})
    rows = planted.table(
        found, [planted.chunk("fixture", "m", i, "A", "about the topic" + " we" * i + f" {i}") for i in range(CHUNKS)]
    )
    lists = {query: [row for row in range(10) if row != i] + [i] for i, query in enumerate(queries)}
    planted.leg(found, "bm25", lists)
    canon.write_json(found.injection("fixture") / "manifest.json", {"corpus": {"tier": "A"}, "counts": {"files": 1}})
    judging._save(found, "fixture", _coverage(list(queries), [row.doc_id for row in rows]))
    yield found
    rerankers.registry.cache_clear()


def _stanza(name: str) -> dict[str, Any]:
    """The stanza as it stands, with its folder where the files are."""
    stanza = dict(rerankers.get(name).stanza)
    if "folder" in stanza:
        stanza["folder"] = str(settings.load().root / stanza["folder"])
    return stanza


def _coverage(query_ids: list[str], doc_ids: list[str]) -> Coverage:
    rows = np.arange(len(query_ids))
    ones = np.ones(len(rows))
    start = np.arange(len(rows) + 1)
    return Coverage(
        tuple(query_ids), np.array(doc_ids, object), start, rows, ones, np.zeros(len(rows), np.int64), {}, 0
    )


def test_lists_are_judged_before_and_after(at: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    def oracle(_: rerankers.Reranker, asked: list[Pair]) -> tuple[np.ndarray, int]:
        return np.array([float(query[-1] == text[-1]) for query, text in asked], np.float32), len(asked)

    monkeypatch.setattr(pairs, "pair_scores", oracle)
    found = reranker_quality.study(at)
    before, after = found["rows"]
    assert (before["reranker"], after["reranker"]) == ("bm25", FIXTURE)
    assert before["metrics"]["RR"] == pytest.approx(0.1) and after["metrics"]["RR"] == 1.0
    (delta,) = found["deltas"]
    assert delta["deltas"]["RR"] == pytest.approx(0.9) and delta["control"] == "bm25"
    assert delta["intervals"]["RR"]["meetings"] == pytest.approx([0.9, 0.9])
    assert after["queries"] == delta["queries"] == QUERIES and after["label"] == "fixture cross-encoder"


def test_the_real_fixture_keeps_every_document(at: Layout) -> None:
    held = reranker_quality.lists(at, 10)
    moved = held.reordered(rerankers.get(FIXTURE))
    assert {q: [doc for doc, _ in hits] for q, hits in moved.items()} == {
        q: [doc for doc, _ in hits] for q, hits in held.run.items()
    }
    assert len({score for hits in moved.values() for _, score in hits}) >= 10


def test_a_row_says_whether_its_corpus_taught_the_re_ranker(at: Layout) -> None:
    assert [row["in_domain"] for row in reranker_quality.study(at)["rows"]] == [False, True]
    trained, bi = rerankers.get("minilm-foolmetwice"), rerankers.get("bge-small-cosine")
    assert reranker_quality.in_domain(trained, "foolmetwice.test") and not reranker_quality.in_domain(
        bi, "foolmetwice.test"
    )
    assert not reranker_quality.in_domain(trained, "xquad.en")


def test_a_model_of_the_hub_is_a_record_and_any_other_absence_raises(at: Layout) -> None:
    quality = at.config["scales"]["tiny"]["quality"]
    quality["rerankers"] = ["ms-marco-MiniLM-L-6-v2", FIXTURE]
    found = reranker_quality.study(at)
    assert [source["obtained"] for source in found["sources"]] == [False, True] and found["sources"][0]["reason"]
    assert {row["reranker"] for row in found["rows"]} == {"bm25", FIXTURE}
    quality["rerankers"] = ["minilm-foolmetwice"]
    with pytest.raises(LossmapError, match="a trained re-ranker is absent"):
        reranker_quality.study(at)


def test_the_study_asks_the_benches_of_the_scale(at: Layout) -> None:
    at.config["scales"]["tiny"]["quality"]["benches"] = {}
    found = reranker_quality.study(at)
    assert found["rows"] == [] and found["depths"] == {} and layout.load().scale == "tiny"


def test_a_corpus_without_judged_queries_has_no_row(at: Layout) -> None:
    planted.corpus(at, "fixture", [], {}, {})
    planted.leg(at, "bm25", {})
    judging._save(at, "fixture", _coverage([], []))
    found = reranker_quality.study(at)
    assert found["rows"] == found["deltas"] == []
