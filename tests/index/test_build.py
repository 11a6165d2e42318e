"""A real OpenSearch: the mapping, an index that settles, a build that is killed and goes on."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opensearchpy import OpenSearch
from tiny import DIMENSION, QUICK, key, rows, vectors_of

from lossmap.engine import marker, process
from lossmap.engine import opensearch as search_server
from lossmap.errors import LossmapError
from lossmap.index import build, mapping, settle, survey
from lossmap.search import bodies


@pytest.fixture
def index(opensearch: OpenSearch, unique_name) -> Iterator[str]:  # type: ignore[no-untyped-def]
    name = unique_name("build")
    yield name
    marker.delete_index(opensearch, name)


def write(client: OpenSearch, index: str, **kwargs: Any) -> dict[str, Any]:
    return build.build(client, index, rows(), vectors_of(rows()), key(), timing=QUICK, **kwargs)


def test_every_vector_field_names_the_lucene_engine() -> None:
    fields = mapping.body(DIMENSION, {})["mappings"]["properties"]
    vector_fields = [f for f in fields.values() if f["type"] == "knn_vector"]
    assert vector_fields and all(f["method"]["engine"] == "lucene" for f in vector_fields)


def test_the_mapping_hash_sees_a_changed_knob_and_not_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    before = mapping.sha256(DIMENSION)
    assert before == mapping.sha256(DIMENSION)
    monkeypatch.setitem(mapping.HNSW, "parameters", {**mapping.HNSW["parameters"], "m": 8})
    assert mapping.sha256(DIMENSION) != before
    assert mapping.sha256(DIMENSION, graph=False) != before


def test_a_built_index_is_whole_in_one_segment_and_a_second_build_writes_nothing(
    opensearch: OpenSearch, index: str
) -> None:
    first = write(opensearch, index)
    assert (first["docs_count"], first["docs_deleted"], first["segments"]) == (12, 0, 1)
    assert (first["embedding_verdict"], first["embedding_models"]) == ("uniform", ["model-a"])
    second = write(opensearch, index)
    assert second["resumed_chunks"] == 12 and second["indexing_total"] == first["indexing_total"] == 12


def test_a_killed_build_goes_on_with_the_chunks_that_are_missing(opensearch: OpenSearch, index: str) -> None:
    table = rows()
    build._ensure(opensearch, index, key(), False)
    build._write(
        opensearch, index, {"encoder": {"name": "model-a"}}, table, vectors_of(table), range(6)
    )  # one file and a half
    opensearch.indices.refresh(index=index)
    report = write(opensearch, index)
    assert report["resumed_chunks"] == 6 and report["docs_count"] == 12 and report["docs_deleted"] == 0
    assert report["indexing_total"] == 12


def test_an_index_of_another_identity_is_replaced_and_a_foreign_one_refused(opensearch: OpenSearch, index: str) -> None:
    write(opensearch, index)
    build.require(opensearch, index, key())
    with pytest.raises(LossmapError) as refusal:
        build.require(opensearch, index, key("model-b"))
    assert refusal.value.exit_code == 3
    marker.delete_index(opensearch, index)
    opensearch.indices.create(index=index, body={})
    try:
        with pytest.raises(LossmapError) as refusal:
            write(opensearch, index)
        assert refusal.value.exit_code == 2
        assert opensearch.indices.exists(index=index)
    finally:
        opensearch.indices.delete(index=index)


def test_an_index_without_a_graph_still_scores_exactly_and_takes_a_very_long_question(
    opensearch: OpenSearch, index: str
) -> None:
    table, long = rows(), " ".join(f"word{i}" for i in range(2_000))
    build.build(opensearch, index, table, vectors_of(table), {**key(), "graph": False}, timing=QUICK)
    vector = vectors_of(table)
    wanted = vector.distinct[vector.inverse[3]].tolist()
    hits = opensearch.search(index=index, body={"query": bodies.exact_leg(wanted), "size": 1})["hits"]["hits"]
    assert hits[0]["_score"] == pytest.approx(1.0)
    question = bodies.text_leg(f"{long} {table[3].text}")
    assert opensearch.search(index=index, body={"query": question})["hits"]["hits"]


def test_settling_names_the_unmet_condition(opensearch: OpenSearch, index: str) -> None:
    write(opensearch, index)
    for expected, words in ((settle.Expected(4), "3 of 4 files"), (settle.Expected(3, 2**42), "older than")):
        with pytest.raises(LossmapError, match=words) as refusal:
            settle.await_settled(opensearch, index, expected, timeout=0.2, interval=0.05)
        assert refusal.value.exit_code == 3


def test_a_file_with_a_digest_alone_does_not_count_as_indexed(opensearch: OpenSearch, index: str) -> None:
    write(opensearch, index)
    digest = {"file_uuid": "ffffffff-0000-0000-0000-000000000000", "chunk_index": -1, "doc_type": "digest"}
    opensearch.index(index=index, id="d", body=digest, refresh=True)
    assert len(settle.chunk_counts(opensearch, index)) == 3


def test_more_files_than_one_page_are_counted_exactly(
    opensearch: OpenSearch, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(opensearch, index)
    monkeypatch.setattr(settle, "PAGE", 2)
    assert sorted(settle.chunk_counts(opensearch, index).values()) == [4, 4, 4]


def test_two_models_in_one_index_are_refused(opensearch: OpenSearch, index: str) -> None:
    write(opensearch, index)
    table = rows()
    build._write(opensearch, index, {"encoder": {"name": "model-b"}}, table, vectors_of(table), range(2))
    opensearch.indices.refresh(index=index)
    report = survey.survey(opensearch, index)
    assert report["embedding_verdict"] == "mixed"
    with pytest.raises(LossmapError) as refusal:
        survey.require_one_space(report, index)
    assert refusal.value.exit_code == 3


@pytest.mark.parametrize(
    ("buckets", "expected"),
    [
        ({}, "empty"),
        ({survey.ABSENT: 4}, "empty"),
        ({"neural": 4}, "unattributed"),
        ({"a": 4}, "uniform"),
        ({"a": 4, survey.ABSENT: 1}, "uniform"),
        ({"a": 4, "neural": 1}, "partially_unattributed"),
        ({"a": 4, "b": 1, "neural": 1}, "mixed"),
    ],
)
def test_verdicts(buckets: dict[str, int], expected: str) -> None:
    assert survey.verdict(buckets) == expected


@pytest.fixture
def own_engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A server of this test alone: it will be killed."""
    folder = Path("/var/tmp") / f"lossmap-killed-{os.getpid()}"
    monkeypatch.setenv("LOSSMAP_RUNTIME", str(folder))
    search_server.up()
    yield search_server
    search_server.down()
    shutil.rmtree(folder, ignore_errors=True)


def test_a_killed_server_is_an_error_that_says_so_and_a_rerun_continues(own_engine: Any, monkeypatch: Any) -> None:
    table = rows(files=6, each=10)
    actions, victim = build._actions, process.live("opensearch")
    assert victim is not None

    def dying(*arguments: Any) -> Iterator[dict[str, Any]]:
        for count, action in enumerate(actions(*arguments)):
            if count == 25:
                os.kill(victim.pid, signal.SIGKILL)
            yield action

    small = {**key(), "writing": {"bulk": 10}}
    monkeypatch.setattr(build, "_actions", dying)
    with pytest.raises(LossmapError, match="indexing was interrupted"):
        build.build(search_server.client(), "lossmap-killed", table, vectors_of(table), small, timing=QUICK)
    monkeypatch.setattr(build, "_actions", actions)
    search_server.up()
    client = search_server.client()
    report = build.build(client, "lossmap-killed", table, vectors_of(table), small, timing=QUICK)
    assert report["resumed_chunks"] == 20 and report["docs_count"] == 60 and report["docs_deleted"] == 0
    marker.delete_index(client, "lossmap-killed")


def test_fuzzy_scores_survive_a_restart(own_engine: Any) -> None:
    """Equal terms of one query are merged in hash order: without a fixed order scores move with every start."""
    words = ["prize", "price", "priced", "prices", "pricing", "pride", "printed", "printer", "prince", "principal"]
    words += ["private", "probe", "problem"]
    table = [replace(row, text=f"{words[i % 13]} {words[i * 5 % 13]} {words[i * 7 % 13]}", title=words[i % 3])
             for i, row in enumerate(rows(files=8, each=25))]  # fmt: skip
    queries = ["price prices of the printer", "private problem", "principal printing prize", "pricing prince pride"]

    def scores() -> list[list[tuple[str, float]]]:
        client = own_engine.client()
        bodies_of = [bodies.request(bodies.text_leg(text), 100) for text in queries]
        hits = [client.search(index="lossmap-restart", body=body)["hits"]["hits"] for body in bodies_of]
        return [[(hit["_id"], hit["_score"]) for hit in found] for found in hits]

    build.build(own_engine.client(), "lossmap-restart", table, vectors_of(table), key(), timing=QUICK)
    before = scores()
    assert own_engine.describe(own_engine.client())["term_order_fixed"]
    for _ in range(2):
        own_engine.down()
        own_engine.up()
        assert scores() == before
