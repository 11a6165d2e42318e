"""The chapter's routed block and control over files of a scale, and its overviews over real servers."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import planted
import psycopg
import pytest
from opensearchpy import OpenSearch

from lossmap import canon, layout, transcript
from lossmap.engine import marker
from lossmap.engine import opensearch as search_server
from lossmap.errors import LossmapError
from lossmap.index import build, inject, plane, table
from lossmap.index.vectors import Vectors
from lossmap.layout import Layout
from lossmap.studies import chapter, corpora, stage4
from lossmap.transcript import GoldSpan, Meeting, Query, Turn

STAGE = "stage4"
AGAIN = {"mode": "hybrid", "legs": ["bm25-again", "exact-again"], "size": 48, "leg_depth": 48, "rank_constant": 30}
MEETINGS = ("m1", "m2", "m3")
DIGESTS = {"mode": "hybrid", "legs": ["digest-bm25", "digest-exact"], "size": 6, "leg_depth": 6, "rank_constant": 30}
QUERIES = {
    "real:m1:000": ("Summarise the talk about prices.", "summarize"),
    "real:m1:001": ("What was the price?", "lookup"),
    "real:m3:000": ("Summarise what was said of 'cold start'", "summarize"),
    "real:m3:001": ("What summary was given?", "lookup"),
}
GOLD = {query_id: query_id.split(":")[1] for query_id in QUERIES}


class World:
    """Two corpora of three meetings in one index: two chunks and a digest section a meeting."""

    def __init__(self, patch: pytest.MonkeyPatch, root: Path) -> None:
        spec = {"index": "v6", "corpora": ["real", "made"], "coverage": "made"}
        index = {"documents": ["real", "made"], "scored": ["real", "made"]}
        stages = {STAGE: {"arms": {stage4.AGAIN: AGAIN, stage4.DIGESTS: DIGESTS}}}
        self.at = planted.scale(patch, root, {"v6": index}, {STAGE: spec}, stages)
        for key in ("real", "made"):
            said = [planted.meeting(m, ("A", "hello"), ("B", "yes")) for m in MEETINGS]
            planted.corpus(self.at, key, said, self.texts(key), {self.of(key, q): m for q, m in GOLD.items()})
        chunks = [
            planted.chunk(key, m, i, "AB"[i], "text") for key in ("real", "made") for m in MEETINGS for i in (0, 1)
        ]
        self.rows = planted.table(self.bench("real"), chunks)
        self.digests = [
            plane.DigestRow(planted.uuid_of(key, m), 0, key, m, "demo", "en", m, None, ("A",), ("A",), 0.0, 1.0, m, ())
            for key in ("real", "made") for m in MEETINGS
        ]  # fmt: skip
        canon.write_jsonl(self.bench("real").index_folder / plane.ROWS, map(asdict, self.digests))
        for key in ("real", "made"):
            self.freeze(key, list(self.texts(key)))
            self.score(key, list(self.texts(key)))

    def of(self, key: str, query_id: str) -> str:
        return query_id.replace("real", key)

    def texts(self, key: str) -> dict[str, tuple[str, str]]:
        return {self.of(key, query_id): text for query_id, text in QUERIES.items()}

    def bench(self, key: str) -> Layout:
        return layout.load("tiny", f"v6/{key}")

    def chunks(self, key: str, meeting_id: str) -> list[int]:
        return [i for i, row in enumerate(self.rows) if (row.corpus, row.meeting_id) == (key, meeting_id)]

    def freeze(self, key: str, query_ids: list[str], names: tuple[str, ...] = (), index: str = planted.INDEX) -> None:
        """Chunks of the second meeting alone for the summaries, of all for the others; digests of the first and last.

        The list of the digests' exact leg is longer than what of it is fused.
        """
        everything = [row for m in MEETINGS for row in self.chunks(key, m)]
        asked = {q: self.chunks(key, "m2") if QUERIES[q.replace(key, "real")][1] == "summarize" else everything
                 for q in query_ids}  # fmt: skip
        mine = {m: i for i, row in enumerate(self.digests) if row.corpus == key for m in [row.meeting_id]}
        for name in names or (*AGAIN["legs"], *DIGESTS["legs"]):  # type: ignore[misc]
            digests = [mine["m1"], mine["m3"]] if name == "digest-bm25" else [mine["m3"]]
            hits = {q: digests if name.startswith("digest") else asked[q] for q in query_ids}
            planted.leg(self.bench(key), name, hits, index, depth=6 if name.startswith("digest") else 48)

    def score(self, key: str, query_ids: list[str]) -> None:
        values = dict(zip(query_ids, (0.5, 0.25, 0.75, 1.0)))
        classes = {q: self.texts(key)[q][1] for q in query_ids}
        for stage, name in ((STAGE, stage4.AGAIN), stage4.BEFORE):
            planted.arm(corpora.scored(self.at, f"v6/{key}", stage) / name, name, values, classes)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    return World(monkeypatch, tmp_path)


def test_each_scored_query_is_routed_and_digests_stand_beside_the_list(world: World) -> None:
    document = stage4.routed(world.at, STAGE)
    assert [row["corpus"] for row in document["rows"]] == ["real", "made"]
    for row in document["rows"]:
        assert (row["tier"], row["judged_by"]) == ("A", "human")
        counts = {name: row[name] for name in ("queries_scored", "routed", "returned")}
        assert counts == {"queries_scored": 4, "routed": 2, "returned": 2}, "one summary, and a lookup that leaked"
        assert row["digest_found_gold"] == {"queries": 2, "files": 2}
        assert row["chunk_found_gold"] == {"queries": 1, "files": 1}
        assert row["rescued"]["query_ids"] == [f"{row['corpus']}:m1:000"]
        assert row["reconciliation"] == {
            "of_the_class": 2, "read_as_another_intent": 0, "barred_by_a_quoted_phrase": -1,
            "barred_by_a_speaker_filter": 0, "of_other_classes": 1, "routed": 2,
        }  # fmt: skip
    assert document["digest_leg"]["size"] == document["digest_leg"]["leg_depth"] == 6
    assert canon.dumps(document) == canon.dumps(stage4.routed(world.at, STAGE))


def test_the_corpora_together_are_counts_and_no_rate(world: World) -> None:
    document = stage4.routed(world.at, STAGE)
    pooled, parts = document["together"], document["rows"]
    assert (pooled["corpus"], pooled["corpora"], pooled["tier"]) == ("together", ["real", "made"], "A")
    assert pooled["rescued"] == {"queries": 2, "files": 2}
    for name in ("queries_scored", "routed", "returned"):
        assert pooled[name] == sum(part[name] for part in parts)
    assert pooled["reconciliation"]["of_the_class"] == 4
    assert pooled["intent_by_query_class"]["summarize"]["summarize"] == 4


def test_the_worst_tier_and_every_judge_stand_over_what_is_added() -> None:
    block: dict[str, Any] = {name: 1 for name in stage4.digest_leg.COUNTED}
    block |= {"rescued": {"queries": 1, "files": 2, "rate": 0.5, "query_ids": ["q"]}, "reconciliation": {"routed": 1}}
    parts = [
        {**block, "corpus": "a", "tier": "B", "judged_by": "human"},
        {**block, "corpus": "b", "tier": "A", "judged_by": "constructed", "reconciliation": {"routed": 2, "own": 3}},
    ]
    pooled = stage4.digest_leg.together(parts)
    assert (pooled["tier"], pooled["judged_by"]) == ("B", "constructed + human")
    assert pooled["rescued"] == {"queries": 2, "files": 4} and pooled["reconciliation"] == {"routed": 3, "own": 3}


@pytest.mark.parametrize("names", [tuple(AGAIN["legs"]), tuple(DIGESTS["legs"])])  # type: ignore[arg-type]
def test_a_scored_query_without_a_record_raises(world: World, names: tuple[str, ...]) -> None:
    world.freeze("real", list(world.texts("real"))[1:], names)
    with pytest.raises(LossmapError, match="routes of the scored queries are not there") as absent:
        stage4.routed(world.at, STAGE)
    assert "without a record 1" in str(absent.value)


def test_a_query_that_was_not_scored_is_not_counted(world: World) -> None:
    world.score("real", list(world.texts("real"))[:3])
    real, made = stage4.routed(world.at, STAGE)["rows"]
    assert (real["queries_scored"], made["queries_scored"]) == (3, 4)
    assert real["reconciliation"]["of_other_classes"] == 0


def test_a_digest_leg_of_another_index_is_refused(world: World) -> None:
    world.freeze("made", list(world.texts("made")), tuple(DIGESTS["legs"]), index="other")
    with pytest.raises(LossmapError, match="frozen over another index") as refusal:
        stage4.routed(world.at, STAGE)
    assert refusal.value.exit_code == 3


def test_the_control_is_every_class_of_both_corpora(world: World) -> None:
    document = stage4.control(world.at, STAGE)
    assert [(row["corpus"], row["query_class"], row["queries"]) for row in document["rows"]] == [
        ("real", "lookup", 2), ("real", "summarize", 2), ("real", "all", 4),
        ("made", "lookup", 2), ("made", "summarize", 2), ("made", "all", 4),
    ]  # fmt: skip
    assert (document["per_query_equal"], document["queries"]) == (True, 8)
    chapter.study(world.at, STAGE, "control")
    assert canon.read_json(world.at.stage(STAGE) / "control.json") == document


def test_a_difference_in_the_second_corpus_raises_with_exit_3(world: World) -> None:
    folder = corpora.scored(world.at, "v6/made", STAGE) / stage4.AGAIN
    values = dict(zip(world.texts("made"), (0.5, 0.25, 0.75, 0.9999999)))
    planted.arm(folder, stage4.AGAIN, values, {q: c for q, (_, c) in world.texts("made").items()})
    with pytest.raises(LossmapError, match="query made:m3:001 is not what it was") as moved:
        stage4.control(world.at, STAGE)
    assert moved.value.exit_code == 3


SYNCS = [
    Meeting(f"T0-{i}", f"Team 0 — weekly sync #{i}", "synthetic", "en", None,
            (Turn(0, "Chair", f"The matter of this week is the budget of item {i}, once more.", 0.0, 30.0),
             Turn(1, f"Guest {i}", "Then we should raise that budget before the next week.", 30.0, 60.0 + i)))
    for i in range(6)
]  # fmt: skip
DIMENSION = 8
KEY: dict[str, Any] = {"encoder": {"name": "model-a", "dimension": DIMENSION}, "chunks_sha256": "x", "header": "none",
                       "graph": False}  # fmt: skip


def vectors_of(count: int) -> Vectors:
    values = np.random.default_rng(count).normal(size=(count, DIMENSION)).astype(np.float32)
    return Vectors(values / np.linalg.norm(values, axis=1, keepdims=True), np.arange(count, dtype=np.int32))


@pytest.fixture
def live(
    monkeypatch: pytest.MonkeyPatch, opensearch: OpenSearch, postgres: Any, tmp_path: Path
) -> Iterator[tuple[Layout, psycopg.Connection]]:
    """One corpus injected, chunked, digested and built with both planes, under an index name of its own."""
    name = f"v{uuid.uuid4().hex[:8]}"
    spec = {"index": name, "corpora": ["synthetic"], "coverage": "synthetic"}
    at = planted.scale(monkeypatch, tmp_path, {name: {"documents": ["synthetic"], "scored": []}}, {STAGE: spec}, {})
    held, conn = layout.load("tiny", name), postgres()
    card = {"key": "synthetic", "version": "1", "tier": "A", "judged_by": "constructed"}
    gold = [GoldSpan("q", SYNCS[0].meeting_id, 0, 0)]
    transcript.write_corpus(at.corpus("synthetic"), SYNCS, [Query("q", "?", "lookup", "s")], gold, card)
    inject.inject(conn, held.schema, at.corpus("synthetic"), held.injection("synthetic"))
    table.build(conn, held.schema, held.documents, held.index_folder)
    digesting = plane.build(conn, held.schema, held.documents, held.index_folder)
    conn.commit()
    rows, digests = table.load(held.index_folder), plane.load(held.index_folder)
    of_digests = vectors_of(len(digests))
    key = build.with_digests(KEY, digesting, "none", of_digests)
    report = build.build(
        opensearch, held.index_name, rows, vectors_of(len(rows)), key, timing=(20, 0.05), digests=(digests, of_digests)
    )
    chunking, engine = canon.read_json(held.index_folder / "chunking.json"), search_server.describe(opensearch)
    build.manifest(held.index_folder / "manifest.json", key, chunking, report, engine)
    question = {"query_id": "sm-1", "rule": "R8", "surface": "exact", "text": "Sum up the budget.",
                "gold_files": [m.meeting_id for m in SYNCS]}  # fmt: skip
    canon.write_jsonl(at.generated / "queries.jsonl", [question])
    yield at, conn
    marker.delete_index(opensearch, held.index_name)
    conn.rollback()
    marker.drop_schema(conn, held.schema)
    conn.commit()
    conn.close()


def test_an_overview_of_digests_covers_the_scope_beside_the_digest_plane(
    live: tuple[Layout, psycopg.Connection],
) -> None:
    """The claims come from chunks: the six digest documents of the index add no recording, no second and no name."""
    document = stage4.covered(live[0], STAGE)
    assert document["sections"] == 6
    (whole,) = [row for row in document["scopes"] if (row["scope"], row["arm"]) == ("sm-1", "mapping")]
    assert (whole["recordings"], whole["without_text"], whole["claims_verified"]) == (6, 0, True)
    assert whole["claims"]["speakers"]["truth"] == 7
    assert (whole["corpus"], whole["tier"], whole["judged_by"]) == ("synthetic", "A", "constructed")
