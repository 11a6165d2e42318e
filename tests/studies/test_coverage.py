"""The study of coverage over real servers: scopes, both arms, the tombstone, and which index is refused."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from opensearchpy import OpenSearch

from lossmap import canon, transcript
from lossmap.engine import marker
from lossmap.engine import opensearch as search_server
from lossmap.errors import LossmapError
from lossmap.index import build, inject, table
from lossmap.index.vectors import Vectors
from lossmap.layout import Layout
from lossmap.studies import coverage
from lossmap.studies.coverage import Asked
from lossmap.transcript import GoldSpan, Meeting, Query, Turn

DIMENSION = 8
KEY = {"encoder": {"name": "model-a", "dimension": DIMENSION}, "header": "none", "chunks_sha256": "x", "graph": True}
QUICK = (1.0, 0.05)
MEETINGS = [
    Meeting(f"T{t}-{i:02}", f"Team {t} — weekly sync #{i}", "synthetic", "en", None,
            (Turn(0, f"Chair {t}", f"matter {i}", 0.0, 30.0), Turn(1, f"Guest {i}", "yes", 30.0, 60.0 + i)))
    for t in range(2) for i in range(6)
]  # fmt: skip
IDS = [m.meeting_id for m in MEETINGS]


def question(name: str, text: str, gold: list[str], surface: str = "exact", rule: str = "R8") -> dict[str, Any]:
    return {"query_id": name, "rule": rule, "surface": surface, "text": text, "gold_files": gold}


QUERIES = [
    question("sm-2", "Sum up the syncs of Team 1.", IDS[6:]),
    question("sm-1", "Sum up the syncs of Team 0.", IDS[:6][::-1]),
    question("sm-3", "Sum up the syncs of Team 9.", ["T9-00"]),
    question("sm-1-r1", "Team 0?", IDS[:6], "reworded-1"),
    question("ag-1", "How many?", IDS[:6], rule="R3"),
]


class Bench:
    """A layout of its own: one corpus injected and indexed, and the generated queries beside."""

    def __init__(self, at: Layout, client: OpenSearch, conn: psycopg.Connection) -> None:
        self.at, self.client, self.conn = at, client, conn
        card = {"key": "synthetic", "version": "1", "tier": "A", "judged_by": "constructed"}
        queries, gold = [Query("q", "?", "lookup", "synthetic")], [GoldSpan("q", IDS[0], 0, 0)]
        transcript.write_corpus(at.corpus("synthetic"), MEETINGS, queries, gold, card)
        inject.inject(conn, at.schema, at.corpus("synthetic"), at.injection("synthetic"))
        table.build(conn, at.schema, at.documents, at.index_folder)
        conn.commit()
        canon.write_jsonl(at.build / "synthetic" / "queries.jsonl", QUERIES)
        rows = table.load(at.index_folder)
        values = np.random.default_rng(0).normal(size=(len(rows), DIMENSION)).astype(np.float32)
        vectors = Vectors(values / np.linalg.norm(values, axis=1, keepdims=True), np.arange(len(rows), dtype=np.int32))
        report = build.build(client, at.index_name, rows, vectors, KEY, timing=(20, 0.05))
        chunking, engine = canon.read_json(at.index_folder / "chunking.json"), search_server.describe(client)
        build.manifest(at.index_folder / "manifest.json", KEY, chunking, report, engine)
        self.uuids = {row.meeting_id: row.file_uuid for row in rows}

    @property
    def sections(self) -> list[dict[str, Any]]:
        """Twelve a recording, and those of three recordings alone answer to the words of the questions."""
        loud = {self.uuids[meeting] for meeting in IDS[:3]}
        return [
            {"file_uuid": file, "section": n, "text": f"{'cover taken together ' * 9 if file in loud else ''}part {n}",
             "start": 0.0, "end": 1.0, "speakers": []}
            for file in self.uuids.values() for n in range(20)
        ]  # fmt: skip

    def study(self, **options: Any) -> dict[str, Any]:
        folder, sizes = self.at.build / "synthetic", (3, 12, 50)
        return coverage.study(self.at, "synthetic", folder, self.sections, QUICK, sizes=sizes, **options)


@pytest.fixture(scope="module")
def bench(opensearch: OpenSearch, postgres: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    scale = f"t{uuid.uuid4().hex[:10]}"
    config = {"scales": {scale: {"indexes": {"main": {"documents": ["synthetic"], "scored": []}}}}}
    made = Bench(Layout(tmp_path_factory.mktemp("coverage"), scale, config), opensearch, postgres())
    yield made
    marker.delete_index(opensearch, made.at.index_name)
    made.conn.rollback()
    marker.drop_schema(made.conn, made.at.schema)
    made.conn.commit()
    made.conn.close()


def test_scopes_are_whole_series_of_exact_questions_and_the_first_meetings(bench: Bench) -> None:
    found = coverage.scopes(QUERIES, bench.uuids, (3, 12, 50))
    assert [(one.name, one.kind, len(one.files)) for one in found] == [
        ("sm-1", "series", 6), ("sm-2", "series", 6), ("first-3", "first", 3), ("first-12", "first", 12),
    ]  # fmt: skip
    assert found[0] == Asked("sm-1", "series", "Sum up the syncs of Team 0.", tuple(bench.uuids[i] for i in IDS[:6]))


def test_mapping_covers_and_is_verified_where_ranking_returns_the_loud_recordings(bench: Bench) -> None:
    document = bench.study()
    rows = {(row["scope"], row["arm"]): row for row in document["scopes"]}
    whole, ranked = rows["first-12", "mapping"], rows["first-12", "ranking"]
    assert (whole["recordings"], whole["recordings_share"], whole["claims_verified"]) == (12, 1.0, True)
    assert (ranked["recordings"], ranked["sections"], ranked["claims_verified"]) == (3, 50, False)
    assert ranked["claims"]["recordings"] == {"claimed": 3, "truth": 12, "verified": False}
    assert whole["claims"]["speakers"] == {"claimed": 8, "truth": 8, "verified": True}
    assert whole["claims"]["duration"]["truth"] == sum(60.0 + i for _ in range(2) for i in range(6))
    assert all(row["words"] <= document["policy"]["words"] for row in rows.values())
    assert {(r["corpus"], r["tier"], r["judged_by"]) for r in (*document["rows"], *document["scopes"])} == {
        ("synthetic", "A", "constructed")
    }
    means = {(row["kind"], row["arm"]): row for row in document["rows"]}
    assert (means["series", "mapping"]["n"], means["series", "mapping"]["recordings_share"]) == (2, 1.0)
    assert means["series", "mapping"]["claims_verified_interval"] == [1.0, 1.0]
    assert means["first-12", "ranking"]["recordings_share"] == 0.25


def test_the_tombstone_has_the_metric_its_reason_and_the_measurement(bench: Bench) -> None:
    (stone,) = bench.study()["tombstones"]
    assert {"metric", "retired_because", "measurement"} <= set(stone)
    ours = stone["measurement"]
    assert (ours["scopes"], ours["list_of_titles"], ours["overview_without_titles"]) == (4, 1.0, 0.0)
    assert ours["cited"]["named_after"] < ours["cited"]["named_before"] <= ours["cited"]["recordings"]
    assert coverage.named("Team 0 — WEEKLY sync #1", ["Team 0 — weekly sync #1", "Team 1 — weekly sync #1"]) == 0.5


def test_a_title_that_begins_another_is_not_named_by_it() -> None:
    assert coverage.named("Sync #12 was long", ["Sync #1", "Sync #12"]) == 0.5


def test_two_runs_have_the_same_bytes_whatever_the_order_of_the_sections(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = canon.dumps(bench.study())
    backwards = bench.sections[::-1]
    monkeypatch.setattr(Bench, "sections", backwards)
    assert canon.dumps(bench.study()) == first


def test_without_sections_the_scope_is_covered_by_titles_and_a_ranking_is_empty(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Bench, "sections", [])
    rows = {(row["scope"], row["arm"]): row for row in bench.study()["scopes"]}
    assert (rows["sm-1", "mapping"]["recordings"], rows["sm-1", "mapping"]["without_text"]) == (6, 6)
    assert (rows["sm-1", "ranking"]["recordings"], rows["sm-1", "ranking"]["words"]) == (0, 0)


def test_an_index_that_is_not_whole_is_refused(bench: Bench, tmp_path: Path) -> None:
    manifest = bench.at.index_folder / "manifest.json"
    good = canon.read_json(manifest)
    canon.write_json(manifest, {**good, "identity": {**KEY, "chunks_sha256": "y"}})
    try:
        with pytest.raises(LossmapError, match="not the one of this manifest") as refusal:
            bench.study()
        assert refusal.value.exit_code == 3
    finally:
        canon.write_json(manifest, good)
