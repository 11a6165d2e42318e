"""The study of answers over real servers: who is asked what, what is dropped and why, and which index is refused."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
import yaml
from opensearchpy import OpenSearch
from psycopg import sql

from lossmap import canon, transcript
from lossmap.engine import marker
from lossmap.engine import opensearch as search_server
from lossmap.errors import LossmapError
from lossmap.index import build, inject, table
from lossmap.index.vectors import Vectors
from lossmap.judge import answers
from lossmap.judge.answers import Policy
from lossmap.layout import Layout
from lossmap.search import intent
from lossmap.studies import answering
from lossmap.transcript import GoldSpan, Meeting, Query, Turn

DIMENSION = 8
KEY = {"encoder": {"name": "model-a", "dimension": DIMENSION}, "header": "none", "chunks_sha256": "x", "graph": True}
QUICK = (1.0, 0.05)
PHRASE, DEFERRED = "Amber Heron safety review", "put the Amber Heron rollout on hold"
TEAM, KIND = "the retail billing team", "weekly sync"
EXACT = yaml.safe_load(intent.FRAMES.read_text(encoding="utf-8"))["exact"]
DATES = ["2024-02-01", "2024-02-29", "2024-03-01", "2024-03-02"]
MEETINGS = [
    Meeting(f"T001-S1-{i:04}", f"The Retail Billing Team — weekly sync #{i}", "synthetic", "en", date,
            (Turn(0, "Ada Low", f"the {PHRASE} is due", 0.0, 1.0), Turn(1, f"Guest {i}", f"we {DEFERRED}", 1.0, 2.0)))
    for i, date in enumerate(DATES, 1)
]  # fmt: skip
KEYS = [m.meeting_id for m in MEETINGS]
TALK = [Meeting("talk1", "Talk", "talk", "en", None, (Turn(0, "A", f"no {PHRASE} here, and {DEFERRED}", 0.0, 1.0),))]


def query(number: int, rule: str, answer: Any, gold: Sequence[str], related: Sequence[str] = (), kind: str = "") -> Any:
    slots = {"marker": PHRASE, "deferral": DEFERRED, "team": TEAM, "kind": KIND, "month": "February", "year": "2024"}
    kinds = {"R4": "file_set", "R6": "speaker_count"}
    row = {
        "query_id": f"ag-{number:05}", "query_class": "aggregation", "surface": "exact", "rule": rule,
        "text": EXACT[rule][0]["text"].format(**slots), "gold_files": list(gold), "related_files": list(related),
        "answer": answer, "answer_kind": kind or kinds.get(rule, "integer"), "scored_on": "answer",
    }  # fmt: skip
    other = {**row, "query_id": f"{row['query_id']}-r1", "surface": "reworded-1", "text": f"Remind me of rule {rule}."}
    return [row, other]


QUERIES = [
    *query(1, "R3", 4, KEYS),
    *query(2, "R4", KEYS, KEYS),
    *query(3, "R5", 4, KEYS),
    *query(4, "R6", {"speaker": "ada  LOW", "sessions": 4}, KEYS),
    *query(5, "R7", 2, KEYS[:2], KEYS[2:]),
    *query(6, "R3", 5, [*KEYS, "T009-S1-0001"]),
    *query(7, "R7", 2, KEYS[:2], ["T009-S1-0001"]),
    *query(8, "R3", {"a": "b"}, KEYS, kind="component_map"),
    {**query(9, "R3", 1, KEYS)[0], "scored_on": "retrieval"},
]


@dataclass
class Bench:
    """A layout of its own with two injected corpora, its chunk table, and the generated queries beside."""

    at: Layout
    client: OpenSearch
    conn: psycopg.Connection

    @property
    def rows(self) -> list[table.Row]:
        return table.load(self.at.index_folder)

    def inject(self) -> None:
        for key, meetings in (("synthetic", MEETINGS), ("talk", TALK)):
            card = {"key": key, "version": "1", "tier": "A", "judged_by": "constructed"}
            span = GoldSpan("q", meetings[0].meeting_id, 0, 0)
            transcript.write_corpus(self.at.corpus(key), meetings, [Query("q", "?", "lookup", key)], [span], card)
            inject.inject(self.conn, self.at.schema, self.at.corpus(key), self.at.injection(key))
        table.build(self.conn, self.at.schema, self.at.documents, self.at.index_folder)
        self.conn.commit()
        canon.write_jsonl(self.at.build / "synthetic" / "queries.jsonl", reversed(QUERIES))

    def write(self, keep: Callable[[table.Row], bool]) -> None:
        """Some chunks of an index, as a build that is not done leaves it, beside the manifest that it would write."""
        build._ensure(self.client, self.at.index_name, KEY, False)
        rows = self.rows
        todo = [i for i, row in enumerate(rows) if keep(row)]
        build._write(self.client, self.at.index_name, {"encoder": {"name": "model-a"}}, rows, vectors_of(rows), todo)
        self.client.indices.refresh(index=self.at.index_name)
        self._manifest({})

    def build(self) -> None:
        rows = self.rows
        self._manifest(build.build(self.client, self.at.index_name, rows, vectors_of(rows), KEY, timing=(20, 0.05)))

    def _manifest(self, report: dict[str, Any]) -> None:
        chunking = canon.read_json(self.at.index_folder / "chunking.json")
        engine = search_server.describe(self.client)
        build.manifest(self.at.index_folder / "manifest.json", KEY, chunking, report, engine)

    def study(self, **options: Any) -> dict[str, Any]:
        return answering.study(self.at, "synthetic", self.at.build / "synthetic", timing=QUICK, **options)

    def drop(self) -> None:
        marker.delete_index(self.client, self.at.index_name)
        self.conn.rollback()
        marker.drop_schema(self.conn, self.at.schema)
        self.conn.commit()
        self.conn.close()


def vectors_of(rows: Sequence[table.Row]) -> Vectors:
    values = np.random.default_rng(0).normal(size=(len(rows), DIMENSION)).astype(np.float32)
    return Vectors(values / np.linalg.norm(values, axis=1, keepdims=True), np.arange(len(rows), dtype=np.int32))


@pytest.fixture
def unbuilt(opensearch: OpenSearch, postgres: Any, tmp_path: Path) -> Iterator[Bench]:
    scale = f"t{uuid.uuid4().hex[:10]}"
    config = {"scales": {scale: {"indexes": {"main": {"documents": ["synthetic", "talk"], "scored": []}}}}}
    made = Bench(Layout(tmp_path, scale, config), opensearch, postgres())
    made.inject()
    yield made
    made.drop()


@pytest.fixture
def bench(unbuilt: Bench) -> Bench:
    unbuilt.build()
    return unbuilt


ANSWERERS = ["none", "product-before-dates", "product", "reference"]


def test_each_answerer_is_scored_by_rule_and_wording_and_none_is_the_floor(bench: Bench) -> None:
    document = bench.study()
    figures = {(r["answerer"], r["surface"], r["rule"]): (r["n"], r["declined"], r["EM"], r["partial"], r["answered"])
               for r in document["rows"]}  # fmt: skip
    rules = ["all", "R3", "R4", "R5", "R6", "R7"]
    sizes = [5, 1, 1, 1, 1, 1]
    surfaces = ("exact", "reworded-1")
    assert list(figures) == [(a, s, rule) for a in ANSWERERS for s in surfaces for rule in rules]
    for rule, n in zip(rules, sizes, strict=True):
        for answerer in ("product", "reference"):
            assert figures[answerer, "exact", rule] == (n, 0, 1.0, 1.0, 1.0)
        for row in (("none", "exact", rule), *((answerer, "reworded-1", rule) for answerer in ANSWERERS)):
            assert figures[row] == (n, n, 0.0, 0.0, 0.0)
    assert all(tuple(sorted(row)) == tuple(sorted(answers.COLUMNS)) for row in document["rows"])
    assert {(r["corpus"], r["tier"], r["judged_by"]) for r in document["rows"]} == {("synthetic", "A", "constructed")}
    assert [card["answerer"] for card in document["answerers"]] == ANSWERERS
    assert (document["asked"], document["scored"], len(document["details"])) == (16, 10, 40)
    assert document["injected"] == {"files": 4, "undated": 0}


def test_before_dates_were_recorded_the_product_answers_every_rule_but_that_of_a_month(bench: Bench) -> None:
    document = bench.study()
    exact = {r["rule"]: (r["EM"], r["answered"]) for r in document["rows"]
             if (r["answerer"], r["surface"]) == ("product-before-dates", "exact")}  # fmt: skip
    assert exact.pop("all") == (0.8, 1.0) and exact.pop("R7") == (0.0, 1.0)
    assert set(exact.values()) == {(1.0, 1.0)}
    before, product = document["answerers"][1:3]
    assert before["dates"]["injected_on"] == "2024-04-02", "31 days after the last recording"
    assert product["shapes_used"] == {"count_files": 2, "list_files": 1, "speaker_facet": 1, "count_events": 1}
    assert product["declined"] == {"no_shape": 5}
    notes = {(d["answerer"], d["rule"]): d for d in document["details"] if d["surface"] == "exact"}
    assert notes["product", "R7"]["coverage"]["date_sources"] == {"recorded_date": 2}
    assert "coverage" not in notes["reference", "R7"]


def test_the_product_asks_the_router_it_is_given(bench: Bench) -> None:
    document = bench.study(routed=lambda text: text.startswith("Who"))
    product = document["answerers"][2]
    assert product["router"] and product["declined"] == {"not_aggregate": 9}
    assert product["shapes_used"]["speaker_facet"] == 1


def test_a_back_catalogue_is_injected_in_a_month_after_all_of_it() -> None:
    assert answering.after_the_last(["2024-01-31", None, "2023-01-01"]).isoformat() == "2024-03-02"
    assert answering.after_the_last([None]).year == 1


def test_every_drop_is_counted_with_its_reason(bench: Bench) -> None:
    dropped = bench.study()["dropped"]
    expected = [("gold_not_injected", "R3"), ("related_not_injected", "R7"), ("unknown_kind", "R3")]
    assert [(c["reason"], c["surface"], c["rule"], c["n"]) for c in dropped["counts"]] == [
        (reason, surface, rule, 1) for reason, rule in expected for surface in ("exact", "reworded-1")
    ]
    assert dropped["n"] == 6 and {c["reason"] for c in dropped["counts"]} == set(dropped["reasons"])
    first = dropped["queries"][0]
    assert (first["query_id"], first["files_missing"], first["files_needed"]) == ("ag-00006", 1, 5)


def test_two_runs_have_the_same_bytes_and_a_policy_is_written_down(bench: Bench) -> None:
    first = canon.dumps(bench.study())
    assert canon.dumps(bench.study()) == first
    assert bench.study(policy=Policy(1, "exact"))["policy"]["count_tolerance"] == 1


def test_where_no_question_is_left_there_are_no_rows_and_the_drops_say_why(bench: Bench) -> None:
    folder = bench.at.build / "synthetic"
    canon.write_jsonl(folder / "queries.jsonl", [q for q in QUERIES if q["query_id"].startswith("ag-00006")])
    document = bench.study()
    assert (document["rows"], document["details"], document["scored"], document["dropped"]["n"]) == ([], [], 0, 2)


def refused(bench: Bench, words: str) -> None:
    with pytest.raises(LossmapError, match=words) as refusal:
        bench.study()
    assert refusal.value.exit_code == 3


def test_an_index_that_is_not_whole_is_refused_and_asked_nothing(
    unbuilt: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    answer = answering.Reference.answer
    monkeypatch.setattr(answering.Reference, "answer", lambda self, text: asked.append(text) or answer(self, text))
    unbuilt.write(lambda row: row.meeting_id in KEYS[:2])
    refused(unbuilt, "2 of 5 files carry chunks")
    # Every file is there and one of its chunks is not: files alone would let it pass.
    unbuilt.write(lambda row: row.meeting_id not in KEYS[:2] and row.chunk_index == 0)
    refused(unbuilt, "chunks are not those")
    assert asked == []
    unbuilt.build()
    assert unbuilt.study()["rows"][-1]["n"] and len(asked) == 10


def test_a_database_that_lost_a_file_and_an_index_of_another_build_are_refused(bench: Bench) -> None:
    cut = sql.SQL("DELETE FROM {}.file WHERE meeting_id = %s").format(sql.Identifier(bench.at.schema))
    bench.conn.execute(cut, (KEYS[0],))
    bench.conn.commit()
    refused(bench, "files and segments are not those")
    manifest = bench.at.index_folder / "manifest.json"
    canon.write_json(manifest, {**canon.read_json(manifest), "identity": {**KEY, "chunks_sha256": "y"}})
    refused(bench, "not the one of this manifest")


def test_a_question_counts_only_its_own_corpus(bench: Bench) -> None:
    """The other corpus holds the phrase and the deferral, in the same index and the same schema."""
    submitted = {d["rule"]: d["submitted"]["value"] for d in bench.study()["details"] if d["submitted"]}
    assert (submitted["R3"], submitted["R5"], submitted["R4"]) == (4, 4, KEYS)
