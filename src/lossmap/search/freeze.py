"""The rule of the workflow that asks the live engine for rankings and freezes them, a leg at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lossmap import canon, layout, transcript
from lossmap.engine import opensearch
from lossmap.errors import LossmapError
from lossmap.index import build, inject, plane, settle, table, vectors
from lossmap.layout import Layout
from lossmap.search import bodies, legs, speakers
from lossmap.transcript import Query

Hits = list[tuple[np.ndarray, np.ndarray]]
"""(rows, scores) of each query, best first."""


@dataclass(frozen=True)
class Bench:
    """What freezing and pinning need of one bench, loaded when first used."""

    at: Layout

    @cached_property
    def rows(self) -> list[table.Row]:
        return table.load(self.at.index_folder)

    @cached_property
    def digests(self) -> list[plane.DigestRow]:
        """The rows of the digest plane: what the legs of that plane number."""
        return plane.load(self.at.index_folder)

    @cached_property
    def row_of(self) -> dict[str, int]:
        return {row.doc_id: i for i, row in enumerate(self.rows)}

    @cached_property
    def queries(self) -> list[Query]:
        """Every query of this bench, by id."""
        return vectors.queries(self.at)

    @cached_property
    def gold_files(self) -> dict[str, list[str]]:
        """Query id to the uuids of the files that hold its gold."""
        files: defaultdict[str, set[str]] = defaultdict(set)
        for key in self.at.scored:
            gold = transcript.read_gold(self.at.corpus(key))
            uuid_of = inject.files_of(self.at, key, {span.meeting_id for span in gold})
            for span in gold:
                files[span.query_id].add(uuid_of[span.meeting_id])
        return {query_id: sorted(uuids) for query_id, uuids in files.items()}

    @cached_property
    def query_vectors(self) -> np.ndarray:
        value = vectors.load(self.at.query_vectors)
        return value.distinct[value.inverse]

    @cached_property
    def passages(self) -> vectors.Vectors:
        return vectors.load(self.at.index_folder / vectors.CHUNKS)

    @cached_property
    def manifest(self) -> dict[str, Any]:
        return canon.read_json(self.at.index_folder / "manifest.json")

    @cached_property
    def live(self) -> legs.Live:
        """The running engine, refused unless it holds the index of this scale's manifest."""
        client = opensearch.client()
        build.require(client, self.at.index_name, self.manifest["identity"])
        return legs.Live(client, self.at.index_name, self.row_of)

    @cached_property
    def own(self) -> str:
        """The corpus whose meetings the queries of this bench are about: what the scope own-corpus keeps."""
        owners = sorted({transcript.owner(self.at.corpus(key)) for key in self.at.scored})
        if len(owners) != 1:
            raise LossmapError(
                "a leg of the queries' own corpus, over queries about several",
                where=self.at.bench,
                observed=owners,
                expected="a bench INDEX/CORPUS",
                exit_code=2,
            )
        return owners[0]

    @cached_property
    def named(self) -> list[tuple[str, ...]]:
        """The speakers of the index that each query names."""
        known = speakers.of(self.rows)
        return [speakers.named(query.text, known) for query in self.queries]

    def scope(self, spec: dict[str, Any], i: int) -> dict[str, Any]:
        """What restricts query ``i``: its gold files, its own corpus, the speakers that it names, or nothing."""
        if spec["scope"] == "gold-files":
            return {"files": self.gold_files[self.queries[i].query_id]}
        if spec["scope"] == "speaker":
            return {"speakers": self.named[i]} if self.named[i] else {}
        return {"corpus": self.own} if spec["scope"] == "own-corpus" else {}

    def clause(self, spec: dict[str, Any], i: int) -> dict[str, Any]:
        """The leg's clause for query ``i``, as the engine takes it."""
        if spec.get("plane") == "digest":
            return bodies.on_digests(self._clause(spec, i))
        return self._clause(spec, i)

    def _clause(self, spec: dict[str, Any], i: int) -> dict[str, Any]:
        scope = self.scope(spec, i)
        if spec["kind"] == "text":
            return bodies.text_leg(self.queries[i].text, **scope)
        vector = self.query_vectors[i].tolist()
        if spec["kind"] == "exact":
            return bodies.exact_leg(vector, **scope)
        return bodies.knn_leg(vector, spec["k"], **scope, inside=spec.get("filter") == "inside")


def freeze(at: Layout, name: str) -> Path:
    """One leg to its file; engine legs prove that nothing was written meanwhile."""
    spec, bench = layout.leg(at, name), Bench(at)
    meta = {"leg": name, **spec, "index_sha256": bench.manifest["index_sha256"]}
    leg = _exact(bench, spec, meta) if spec["kind"] == "exact" else _engine(bench, spec, meta)
    legs.save(at.leg(name), leg)
    return at.leg(name)


def _engine(bench: Bench, spec: dict[str, Any], meta: dict[str, Any]) -> legs.Leg:
    live = bench.live
    if spec.get("plane") == "digest":
        live = replace(live, row_of={row.doc_id: i for i, row in enumerate(bench.digests)})
    before = settle.state(live.client, live.index)
    leg = legs.freeze(live, bench.queries, lambda i: bench.clause(spec, i), spec["depth"], meta)
    unchanged(before, settle.state(live.client, live.index), live.index)
    cured = spec["kind"] == "hnsw" and bench.at.vectors != "own"
    return _ranked_exactly(bench, leg) if cured else leg


def _ranked_exactly(bench: Bench, leg: legs.Leg) -> legs.Leg:
    """What a graph over other vectors than the chunks' own found, under the chunks' own; a hit brings its copies."""
    exact, depth = legs.Exact(bench.passages), leg.rows.shape[1]
    fan_out = exact.copies if bench.at.vectors == "distinct" else np.asarray
    hits = [
        exact.within(vector, fan_out(rows[rows >= 0]), depth)
        for vector, rows in zip(bench.query_vectors, leg.rows, strict=True)
    ]
    return legs.Leg(leg.query_ids, *legs.pad(hits, depth), leg.meta)


def unchanged(before: dict[str, int], after: dict[str, int], index: str) -> None:
    """indexing.total and the document counts stand where they stood, or the rankings are of two indexes."""
    if before != after:
        raise LossmapError(
            "the index was written to during a measurement",
            where=index,
            observed=after,
            expected=before,
            next_command="stop the writer, then run again",
            exit_code=3,
        )


def _exact(bench: Bench, spec: dict[str, Any], meta: dict[str, Any]) -> legs.Leg:
    nearest = _digests if spec.get("plane") == "digest" else EXACT[spec["scope"]]
    rows, scores = legs.pad(nearest(bench, spec["depth"]), spec["depth"])
    return legs.Leg([q.query_id for q in bench.queries], rows, scores, meta)


def _whole(bench: Bench, depth: int) -> Hits:
    return list(legs.Exact(bench.passages).corpus(bench.query_vectors, depth))


def _digests(bench: Bench, depth: int) -> Hits:
    passages = vectors.load(bench.at.index_folder / vectors.DIGESTS)
    return list(legs.Exact(passages).corpus(bench.query_vectors, depth))


def _speaker(bench: Bench, depth: int) -> Hits:
    exact, spoken = legs.Exact(bench.passages), np.array([row.speaker for row in bench.rows])
    rows_of = {names: np.flatnonzero(np.isin(spoken, names)) for names in set(bench.named) if names}
    whole = exact.corpus(bench.query_vectors, depth)
    return [
        exact.within(vector, rows_of[names], depth) if names else hits
        for vector, names, hits in zip(bench.query_vectors, bench.named, whole, strict=True)
    ]


def _own_corpus(bench: Bench, depth: int) -> Hits:
    kept = np.array([i for i, row in enumerate(bench.rows) if row.corpus == bench.own], np.int64)
    found = legs.Exact(bench.passages.take(kept)).corpus(bench.query_vectors, depth)
    return [(kept[rows], scores) for rows, scores in found]


def _gold_files(bench: Bench, depth: int) -> Hits:
    exact, of_file = legs.Exact(bench.passages), _rows_by_file(bench.rows)
    rows_of = {q: np.concatenate([of_file[f] for f in files]) for q, files in bench.gold_files.items()}
    return [
        exact.within(vector, rows_of[query.query_id], depth)
        for query, vector in zip(bench.queries, bench.query_vectors, strict=True)
    ]


EXACT: dict[str, Callable[[Bench, int], Hits]] = {
    "corpus": _whole,
    "own-corpus": _own_corpus,
    "speaker": _speaker,
    "gold-files": _gold_files,
}


def _rows_by_file(rows: Sequence[table.Row]) -> dict[str, np.ndarray]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        found[row.file_uuid].append(i)
    return {file: np.array(ids, np.int64) for file, ids in found.items()}
