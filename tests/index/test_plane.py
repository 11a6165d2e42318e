"""The digest plane beside the chunk plane, in real engines: additive, counted apart, and taken up again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opensearchpy import OpenSearch

from lossmap import canon, transcript
from lossmap.engine import marker
from lossmap.errors import LossmapError
from lossmap.index import build, digest, inject, plane, settle, survey, table, terms
from lossmap.index.plane import DigestRow
from lossmap.index.table import Row
from lossmap.index.vectors import Vectors
from lossmap.search import bodies
from lossmap.transcript import Meeting, Turn

DIMENSION = 8
QUICK = (20, 0.05)


def meeting(meeting_id: str, said: list[tuple[str, str]]) -> Meeting:
    turns = tuple(Turn(i, speaker, text, float(i), i + 0.5) for i, (speaker, text) in enumerate(said))
    return Meeting(meeting_id, f"Demo {meeting_id}", "Demo", "en", "2024-05-06", turns)


TALK = meeting(
    "m1",
    [
        ("Ada", "The budget of the remote is small. We all know that the budget is small."),
        ("Unknown", "Yes."),
        ("Bo", "Then we should raise the budget of the remote."),
    ],
)
SILENT = meeting("m2", [("Ada", "Hello there."), ("Bo", "Hello.")])


def test_rows_of_a_digest_and_of_a_file_without_one(postgres, unique_name, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    schema, out = unique_name("plane"), tmp_path / "index"
    card = {"key": "demo", "version": "1", "tier": "A", "judged_by": "constructed"}
    transcript.write_corpus(tmp_path / "c", [TALK, SILENT], [], [], card)
    with postgres() as conn:
        inject.inject(conn, schema, tmp_path / "c", tmp_path / "out")
        table.build(conn, schema, ["demo"], out)
        before = {path.name: path.read_bytes() for path in out.iterdir()}
        report = plane.build(conn, schema, ["demo"], out)
        again = plane.build(conn, schema, ["demo"], tmp_path / "again")
        marker.drop_schema(conn, schema)
    assert {name: (out / name).read_bytes() for name in before} == before, "the chunk table knows nothing of digests"
    assert (report["files"], report["files_without"], report["digests"]) == (2, 1, 1)
    assert report["rule"] == digest.RULE and report["terms"] == terms.provenance() and report == again
    (row,) = plane.load(out)
    assert (row.doc_id, row.chunk_index, row.section) == (f"{row.file_uuid}_digest_0", -1, 0)
    assert (row.title, row.recorded_date, row.corpus) == ("Demo m1", "2024-05-06", "demo")
    assert row.speakers == row.roster == ("Ada", "Bo")
    assert (row.start, row.end) == (0.0, 2.5)
    assert [sorted(s) for s in row.sentences] == [["order", "provenance", "rank", "speaker", "text"]] * 3
    assert [s["provenance"] for s in row.sentences] == [[0], [0], [2]]
    assert row.text == " ".join(s["text"] for s in row.sentences)


def rows(files: int = 3, each: int = 4) -> list[Row]:
    return [
        Row(f"{f:08d}-0000-0000-0000-000000000000", i, "demo", f"m{f}", "Demo", "en", f"Demo m{f}", None, "A",
            ("A", "B"), float(i), i + 1.0, f"text {f} {i}")
        for f in range(files) for i in range(each)
    ]  # fmt: skip


def digests() -> list[DigestRow]:
    return [
        DigestRow(f"{f:08d}-0000-0000-0000-000000000000", n, "demo", f"m{f}", "Demo", "en", f"Demo m{f}", None, ("A",),
                  ("A", "B"), 0.0, 3.0, f"text of file {f} section {n}", ({"text": "text", "rank": 0.5},))
        for f in (0, 2) for n in (0, 1)
    ]  # fmt: skip


def vectors_of(count: int, seed: int) -> Vectors:
    values = np.random.default_rng(seed).normal(size=(count, DIMENSION)).astype(np.float32)
    return Vectors(values / np.linalg.norm(values, axis=1, keepdims=True), np.arange(count, dtype=np.int32))


PASSAGES, OF_DIGESTS = vectors_of(12, 0), vectors_of(4, 1)
PLAIN: dict[str, Any] = {"encoder": {"name": "model-a", "dimension": DIMENSION}, "chunks_sha256": "x", "graph": False}
BOTH = build.with_digests(PLAIN, {"digests_sha256": "y", "rule": digest.RULE, "terms": {}}, "none", OF_DIGESTS)


@pytest.fixture
def index(opensearch: OpenSearch, unique_name) -> Iterator[str]:  # type: ignore[no-untyped-def]
    name = unique_name("planes")
    yield name
    marker.delete_index(opensearch, name)


def write(client: OpenSearch, index: str) -> dict[str, Any]:
    return build.build(client, index, rows(), PASSAGES, BOTH, timing=QUICK, digests=(digests(), OF_DIGESTS))


def found(client: OpenSearch, index: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    return client.search(index=index, body={**body, "_source": True})["hits"]["hits"]


def test_planes_are_counted_apart_and_a_second_build_writes_nothing(opensearch: OpenSearch, index: str) -> None:
    first = write(opensearch, index)
    assert (first["docs_count"], first["docs_deleted"], first["segments"]) == (16, 0, 1)
    assert first["planes"] == {"chunk": 12, "digest": 4}
    assert sum(settle.chunk_counts(opensearch, index).values()) == 12
    second = write(opensearch, index)
    assert second["resumed_chunks"] == 12 and second["indexing_total"] == first["indexing_total"] == 16


def test_a_build_that_was_killed_within_the_digests_goes_on_with_those_missing(
    opensearch: OpenSearch, index: str
) -> None:
    build._ensure(opensearch, index, BOTH, False)
    build._write(opensearch, index, {"encoder": {"name": "model-a"}}, rows(), PASSAGES, range(6))
    build._write(opensearch, index, {"encoder": {"name": "model-a"}}, digests(), OF_DIGESTS, range(3))
    opensearch.indices.refresh(index=index)
    report = write(opensearch, index)
    assert report["resumed_chunks"] == 6 and report["planes"] == {"chunk": 12, "digest": 4}
    assert report["indexing_total"] == 16


def test_the_chunk_plane_is_the_same_with_and_without_digests(opensearch: OpenSearch, index: str, unique_name) -> None:  # type: ignore[no-untyped-def]
    alone = unique_name("alone")
    build.build(opensearch, alone, rows(), PASSAGES, PLAIN, timing=QUICK)
    write(opensearch, index)
    question = PASSAGES.distinct[5].tolist()
    everything = bodies.request({"bool": {"filter": bodies.plane()}}, 20)
    try:
        for body in (everything, bodies.request(bodies.exact_leg(question), 20)):
            hits = [found(opensearch, name, body) for name in (alone, index)]
            for hit in (hit for some in hits for hit in some):
                del hit["_index"], hit["_source"]["indexed_at"]
            assert hits[0] == hits[1] and len(hits[0]) == 12
    finally:
        marker.delete_index(opensearch, alone)


def test_a_digest_document_to_the_letter(opensearch: OpenSearch, index: str) -> None:
    write(opensearch, index)
    hit = opensearch.get(index=index, id="00000002-0000-0000-0000-000000000000_digest_1")["_source"]
    assert hit.pop("indexed_at") > 0 and len(hit.pop("embedding")) == DIMENSION
    assert hit == {
        "file_uuid": "00000002-0000-0000-0000-000000000000", "chunk_index": -2, "doc_type": "digest",
        "digest_section": 1, "corpus": "demo", "meeting_id": "m2", "domain": "Demo", "language": "en",
        "title": "Demo m2", "content": "text of file 2 section 1", "speakers": ["A"], "start_time": 0.0,
        "end_time": 3.0, "recorded_date": None, "embedding_model": "model-a",
    }  # fmt: skip


def test_each_leg_stays_on_its_plane(opensearch: OpenSearch, index: str) -> None:
    write(opensearch, index)
    question = OF_DIGESTS.distinct[2].tolist()
    for leg in (bodies.text_leg("text section file"), bodies.exact_leg(question)):
        chunks = found(opensearch, index, bodies.request(leg, 20))
        beside = found(opensearch, index, bodies.request(bodies.on_digests(leg), 20))
        assert {hit["_source"]["doc_type"] for hit in chunks} == {"chunk"}
        assert {hit["_source"]["doc_type"] for hit in beside} == {"digest"} and len(beside) == 4
    assert beside[0]["_id"] == digests()[2].doc_id
    scoped = bodies.on_digests(bodies.exact_leg(question, files=[rows()[0].file_uuid]))
    assert len(found(opensearch, index, bodies.request(scoped, 20))) == 2


def test_a_request_on_digests_is_the_chat_request_with_the_other_plane() -> None:
    legs = [bodies.text_leg("budget"), bodies.knn_leg([0.5], 100, inside=True)]
    chunk_body, digest_body = bodies.hybrid(legs, 6), bodies.on_digests(bodies.hybrid(legs, 6))
    assert canon.line(digest_body) == canon.line(chunk_body).replace('"doc_type":"chunk"', '"doc_type":"digest"')
    assert canon.line(chunk_body).count('"doc_type":"chunk"') == 3, "the legs themselves are left as they were"


def test_a_digest_of_another_model_makes_the_index_mixed(opensearch: OpenSearch, index: str) -> None:
    write(opensearch, index)
    build._write(opensearch, index, {"encoder": {"name": "model-b"}}, digests(), OF_DIGESTS, [0])
    opensearch.indices.refresh(index=index)
    assert survey.survey(opensearch, index)["embedding_verdict"] == "mixed"


def test_a_digest_does_not_stand_in_for_a_chunk(opensearch: OpenSearch, index: str) -> None:
    """Sixteen documents, as meant, but five of them digests: a chunk is missing and its file is not."""
    strange = replace(digests()[0], section=7)
    build._ensure(opensearch, index, BOTH, False)
    build._write(opensearch, index, {"encoder": {"name": "model-a"}}, rows()[:-1], PASSAGES, range(11))
    build._write(opensearch, index, {"encoder": {"name": "model-a"}}, [*digests(), strange], vectors_of(5, 1), range(5))
    opensearch.indices.refresh(index=index)
    assert opensearch.count(index=index)["count"] == 16
    with pytest.raises(LossmapError, match="planes") as refusal:
        build._require_planes(opensearch, index, {"chunk": 12, "digest": 4})
    assert refusal.value.exit_code == 3
