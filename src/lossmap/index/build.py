"""Chunk table and vectors to a settled OpenSearch index; an interrupted build goes on where it stopped."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from opensearchpy import OpenSearch, OpenSearchException, helpers

from lossmap import canon, progress
from lossmap.encode import models
from lossmap.engine import marker, opensearch
from lossmap.errors import LossmapError
from lossmap.index import carriers, mapping, plane, settle, survey, table, vectors
from lossmap.index.plane import DigestRow
from lossmap.index.table import Row
from lossmap.index.vectors import Vectors
from lossmap.layout import Layout


@dataclass(frozen=True)
class Writing:
    """How documents reach the engine: ``bulk`` a request, in row order or one drawn from ``shuffle``, searchable after
    each request (``refresh``) or at the end, and merged to one segment or left as they come."""

    bulk: int = 500
    refresh: bool = False
    shuffle: int | None = None
    merge: bool = True

    @classmethod
    def of(cls, key: Mapping[str, Any]) -> Writing:
        """As an identity says; one that says nothing is written as every chapter's index."""
        return cls(**key.get("writing", {}))

    def order(self, todo: list[int]) -> list[int]:
        return todo if self.shuffle is None else np.random.default_rng(self.shuffle).permutation(todo).tolist()


VARIED = ("writing", "vectors")
"""What only the study of stability varies: an identity names it where it does."""

Digests = tuple[Sequence[DigestRow], Vectors]
"""The digest plane: its rows and the vectors of their texts."""


def run(at: Layout, force: bool = False) -> dict[str, Any]:
    """The rule: the live index of this scale, as its stanza says, and its manifest.json."""
    folder = at.index_folder
    rows, passages = table.load(folder), vectors.load(folder / vectors.CHUNKS)
    chunking = canon.read_json(folder / "chunking.json")
    key = identity(chunking, at.model, at.header, passages, at.graph, at.window)
    key |= {name: at.stanza[name] for name in VARIED if name in at.stanza}
    beside = None
    if at.digests is not None:
        beside = plane.load(folder), vectors.load(folder / vectors.DIGESTS)
        key = with_digests(key, canon.read_json(folder / plane.REPORT), at.digests, beside[1])
    client = opensearch.client()
    report = build(client, at.index_name, rows, passages, key, force, digests=beside)
    at.note_reuse("index", report["resumed_chunks"])
    return manifest(folder / "manifest.json", key, chunking, report, opensearch.describe(client))


def identity(
    chunking: dict[str, Any],
    model: str,
    header: str,
    passages: Vectors,
    graph: bool = True,
    window: int | None = None,
) -> dict[str, Any]:
    """What makes two indexes the same for a delta: everything that shapes a ranking and nothing that a clock does."""
    encoder = models.get(model, window).provenance()
    return {
        "chunks_sha256": chunking["chunks_sha256"],
        "splitter": chunking["splitter"],
        "chunk_rule": chunking["rule"],
        "encoder": encoder,
        "header": header,
        "mapping_sha256": mapping.sha256(encoder["dimension"], graph=graph),  # type: ignore[arg-type]
        "graph": graph,
        "vectors_sha256": passages.sha256(),
    }


def with_digests(key: dict[str, Any], digesting: dict[str, Any], header: str, passages: Vectors) -> dict[str, Any]:
    """The identity of an index that holds the digest plane too; that of one without has no word of it."""
    digests = {
        "digests_sha256": digesting["digests_sha256"],
        "digest_rule": digesting["rule"],
        "terms": digesting["terms"],
        "header": header,
        "vectors_sha256": passages.sha256(),
    }
    mapped = mapping.sha256(key["encoder"]["dimension"], graph=key["graph"], digests=True)
    return {**key, "mapping_sha256": mapped, "digests": digests}


def build(
    client: OpenSearch,
    index: str,
    rows: Sequence[Row],
    passages: Vectors,
    key: dict[str, Any],
    force: bool = False,
    timing: tuple[float, float] = (1_800, 5),
    digests: Digests | None = None,
) -> dict[str, Any]:
    """The settled, merged index and its state (settle.state, survey); documents already there are not rewritten.

    ``timing``: seconds to wait for the index to settle, and between two polls. ``digests`` are written after the chunks
    and stand beside them: files, settling and ``resumed_chunks`` count chunks alone, ``docs_count`` and the survey
    every document, and ``planes`` says how many of each there are.
    """
    since, writing = _ensure(client, index, key, force), Writing.of(key)
    counts = Counter(row.file_uuid for row in rows)
    present = _present(client, index, counts)
    _write(client, index, key, rows, passages, writing.order(_missing(rows, present)))
    if digests is not None:
        _write(client, index, key, *digests, _missing(digests[0], _present_digests(client, index)))
    settle.await_settled(client, index, settle.Expected(len(counts), since), *timing)
    settle.prepare(client, index, merge=writing.merge)
    report = {**settle.state(client, index), **survey.survey(client, index), "resumed_chunks": len(present)}
    _require_whole(index, report, len(rows) + len(digests[0] if digests else ()), writing.merge)
    if digests is not None:
        report["planes"] = _require_planes(client, index, {"chunk": len(rows), "digest": len(digests[0])})
    survey.require_one_space(report, index)
    return report


def _missing(rows: Sequence[Row | DigestRow], present: Collection[str]) -> list[int]:
    return [i for i, row in enumerate(rows) if row.doc_id not in present]


def _ensure(client: OpenSearch, index: str, key: dict[str, Any], force: bool) -> int:
    """Create the index, or take the one of the same identity; the time of its creation in epoch milliseconds."""
    if client.indices.exists(index=index):
        marker.require_index(client, index)
        meta = client.indices.get_mapping(index=index)[index]["mappings"]["_meta"]
        if meta.get("identity") == canon.digest(key) and not force:
            return meta["since"]
        marker.delete_index(client, index)
    since = int(time.time() * 1000) - 1
    meta = {"identity": canon.digest(key), "since": since}
    planes = {"graph": key["graph"], "digests": "digests" in key}
    client.indices.create(index=index, body=mapping.body(key["encoder"]["dimension"], meta, **planes))
    return since


def _present(client: OpenSearch, index: str, counts: Mapping[str, int]) -> set[str]:
    """Ids of the chunks that an earlier build of this identity wrote.

    They are kept rather than written again: an overwritten document stays in its segment for as long as a retention
    lease holds it, merged or not, and would shift document frequencies and doc ids.
    """
    client.indices.refresh(index=index)
    found = settle.chunk_counts(client, index)
    partial = [f for f, n in found.items() if counts[f] != n]
    query = {"bool": {"filter": [settle.CHUNKS, {"terms": {"file_uuid": partial}}]}}
    hits = helpers.scan(client, index=index, query={"query": query, "_source": False}) if partial else ()
    whole = (f"{f}_{i}" for f, n in found.items() if counts[f] == n for i in range(n))
    return {*whole, *(hit["_id"] for hit in hits)}


def _present_digests(client: OpenSearch, index: str) -> set[str]:
    """Ids of the digests that are there: a few thousand, so that all are asked for."""
    client.indices.refresh(index=index)
    query = {"query": {"term": {"doc_type": "digest"}}, "_source": False}
    return {hit["_id"] for hit in helpers.scan(client, index=index, query=query)}


def _write(
    client: OpenSearch,
    index: str,
    key: Mapping[str, Any],
    rows: Sequence[Row | DigestRow],
    passages: Vectors,
    todo: Sequence[int],
) -> None:
    if not todo:
        return
    writing = Writing.of(key)
    client.indices.put_settings(index=index, body={"index": {"refresh_interval": "-1"}})
    actions = progress.bar(_actions(index, key, rows, passages, todo), "index", len(todo), "documents")
    try:
        options = {"chunk_size": writing.bulk, "refresh": writing.refresh}
        helpers.bulk(client, actions, request_timeout=300, max_retries=2, **options)
    except (OpenSearchException, OSError) as error:
        raise LossmapError(
            "indexing was interrupted",
            where=index,
            observed=str(error)[:300],
            expected="every document indexed",
            next_command="run again: what is written is kept",
        ) from error
    finally:
        actions.close()
    client.indices.put_settings(index=index, body={"index": {"refresh_interval": "1s"}})


def _actions(
    index: str,
    key: Mapping[str, Any],
    rows: Sequence[Row | DigestRow],
    passages: Vectors,
    todo: Sequence[int],
) -> Iterator[dict[str, Any]]:
    carried = carriers.CARRIERS[key.get("vectors", "own")](passages)
    for i in todo:
        row, vector = rows[i], carried(i)
        yield {
            "_index": index,
            "_id": row.doc_id,
            "file_uuid": row.file_uuid,
            "chunk_index": row.chunk_index,
            "corpus": row.corpus,
            "meeting_id": row.meeting_id,
            "domain": row.domain,
            "language": row.language,
            "title": row.title,
            "content": row.text,
            "speakers": list(row.speakers),
            "start_time": row.start,
            "end_time": row.end,
            "recorded_date": row.recorded_date,
            **_of_plane(row),
            "indexed_at": int(time.time() * 1000),
            "embedding_model": key["encoder"]["name"],
            **({} if vector is None else {"embedding": vector}),
        }


def _of_plane(row: Row | DigestRow) -> dict[str, Any]:
    """What sets a document's plane apart: a digest has no one speaker."""
    if isinstance(row, DigestRow):
        return {"doc_type": "digest", "digest_section": row.section}
    return {"doc_type": "chunk", "speaker": row.speaker}


def _require_planes(client: OpenSearch, index: str, expected: dict[str, int]) -> dict[str, int]:
    """Documents of each plane, as the engine counts them: a digest must not stand in for a chunk."""
    queries = {name: {"query": {"term": {"doc_type": name}}} for name in expected}
    observed = {name: client.count(index=index, body=body)["count"] for name, body in queries.items()}
    if observed != expected:
        raise LossmapError(
            "the planes of the settled index are not those meant", where=index, observed=observed, expected=expected,
            next_command=mapping.REBUILD, exit_code=3,
        )  # fmt: skip
    return observed


def _require_whole(index: str, report: dict[str, Any], documents: int, merged: bool = True) -> None:
    observed = (report["docs_count"], report["docs_deleted"], report["segments"])
    expected = (documents, 0, min(documents, 1) if merged else report["segments"])
    if observed != expected:
        raise LossmapError(
            "the settled index is not the one meant", where=index, observed=f"docs, deleted, segments = {observed}",
            expected=expected, next_command=mapping.REBUILD, exit_code=3,
        )  # fmt: skip


def require(client: OpenSearch, index: str, key: dict[str, Any]) -> None:
    """Refuse to read an index that is absent, not ours, or of another identity."""
    expected = canon.digest(key)
    marker.require_index(client, index)
    if not client.indices.exists(index=index):
        raise LossmapError(
            "the engine does not hold the index of this manifest",
            where=index,
            observed="absent",
            expected=expected,
            next_command="./run lossmap index, with the --scale and --bench of this index: it is built again",
            exit_code=3,
        )
    observed = client.indices.get_mapping(index=index)[index]["mappings"]["_meta"].get("identity")
    if observed != expected:
        raise LossmapError(
            "the live index is not the one of this manifest",
            where=index,
            observed=observed,
            expected=expected,
            next_command=mapping.REBUILD,
            exit_code=3,
        )


def manifest(
    out: Path, key: dict[str, Any], chunking: dict[str, Any], report: dict[str, Any], engine: dict[str, Any]
) -> dict[str, Any]:
    """index manifest: identity and its digest, counts, settled state, engine."""
    # How much an earlier, killed build had left is no property of the index.
    state = {name: value for name, value in report.items() if name != "resumed_chunks"}
    document = {
        "identity": key,
        "index_sha256": canon.digest(key),
        "chunking": chunking,
        "state": state,
        "engine": engine,
    }
    canon.write_json(out, document)
    return document
