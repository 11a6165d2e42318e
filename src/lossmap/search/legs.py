"""Frozen legs: for every query the ids and scores of one leg, in engine order, as one file.

Everything after this point (fusion, judging, tables) needs no engine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from opensearchpy import OpenSearch, OpenSearchException

from lossmap import canon, progress
from lossmap.errors import LossmapError
from lossmap.index.vectors import Vectors
from lossmap.layout import Layout
from lossmap.search import bodies
from lossmap.transcript import Query

BATCH = 8
IN_FLIGHT = 2
GEMM = 128
MARGIN = 1e-5
RESCORED = ("cross", "bi")
"""Re-rankers, whose scores are frozen as legs (search/rescore)."""


@dataclass(frozen=True)
class Leg:
    """``rows`` int32 (q, depth), -1 after the last hit; ``scores`` float32 (q, depth); ``meta`` names what made it."""

    query_ids: list[str]
    rows: np.ndarray
    scores: np.ndarray
    meta: dict[str, Any]

    def top(self, i: int, depth: int) -> list[int]:
        """Chunk rows of query ``i``, best first, at most ``depth``."""
        if depth > self.rows.shape[1]:
            raise LossmapError(
                "a leg is asked deeper than it was frozen",
                where=self.meta.get("leg"),
                observed=depth,
                expected=f"<= {self.rows.shape[1]}",
                next_command="raise its depth in arms.yaml",
            )
        row = self.rows[i, :depth]
        return row[row >= 0].tolist()


def save(path: Path, leg: Leg) -> None:
    with canon.atomic(path) as handle:
        np.savez(
            handle,
            query_ids=np.array(leg.query_ids),
            rows=leg.rows,
            scores=leg.scores,
            meta=np.array(canon.line(leg.meta)),
        )


def load(path: Path) -> Leg:
    with np.load(path) as data:
        return Leg(data["query_ids"].tolist(), data["rows"], data["scores"], json.loads(str(data["meta"])))


def of_index(at: Layout, name: str, index: str | None = None) -> Leg:
    """The frozen leg of ``at``, or the frozen scores of a re-ranker, over the index of sha256 ``index``: the present
    one where none is named. Raises where the file is absent, and (exit 3) where it was frozen over another index.
    """
    path = at.leg(name)
    rule, end = ("rescore" if name in RESCORED else "freeze"), f"--config scale={at.scale}"
    target = path.relative_to(at.root)
    if not path.exists():
        raise LossmapError("a leg has not been frozen", where=path, next_command=f"./run {target} {end}")
    leg = load(path)
    expected = index or canon.read_json(at.index_folder / "manifest.json")["index_sha256"]
    if leg.meta.get("index_sha256") != expected:
        raise LossmapError(
            "a leg was frozen over another index",
            where=path,
            observed=leg.meta.get("index_sha256"),
            expected=expected,
            # The target stands first: --forcerun would take it for a rule.
            next_command=f"./run {target} --forcerun {rule} {end}",
            exit_code=3,
        )
    return leg


def pad(hits: Sequence[tuple[Sequence[int], Sequence[float]]], depth: int) -> tuple[np.ndarray, np.ndarray]:
    rows = np.full((len(hits), depth), -1, np.int32)
    scores = np.zeros((len(hits), depth), np.float32)
    for i, (ids, values) in enumerate(hits):
        rows[i, : len(ids)] = ids
        scores[i, : len(ids)] = values
    return rows, scores


@dataclass(frozen=True)
class Live:
    """The engine's side: a settled index and the row of each document id."""

    client: OpenSearch
    index: str
    row_of: Mapping[str, int]


def freeze(
    live: Live, queries: Sequence[Query], query: Callable[[int], dict[str, Any]], depth: int, meta: dict[str, Any]
) -> Leg:
    """Run ``query(i)`` for every query to ``depth`` hits through multi-search."""
    hits = []
    bar = progress.bar(None, f"freeze {meta['leg']}", len(queries), "queries")
    for begin in range(0, len(queries), BATCH):
        batch = range(begin, min(begin + BATCH, len(queries)))
        hits += list(_search(live, [bodies.request(query(i), depth) for i in batch]))
        bar.update(len(batch))
    bar.close()
    rows, scores = pad(hits, depth)
    return Leg([q.query_id for q in queries], rows, scores, meta)


def _search(live: Live, requests: Sequence[dict[str, Any]]) -> Iterator[tuple[list[int], list[float]]]:
    lines = [part for body in requests for part in ({"index": live.index}, body)]
    try:
        reply = live.client.msearch(body=lines, max_concurrent_searches=IN_FLIGHT, request_timeout=300)
    except OpenSearchException as error:
        raise _failed(live, str(error)) from error
    for answer in reply["responses"]:
        if "error" in answer:
            raise _failed(live, json.dumps(answer["error"]))
        require_whole(answer, live.index)
        found = answer["hits"]["hits"]
        yield [live.row_of[hit["_id"]] for hit in found], [hit["_score"] for hit in found]


def require_whole(answer: dict[str, Any], index: str) -> None:
    """Refuse hits that a time-out or a failed shard cut short."""
    if answer["timed_out"] or answer["_shards"]["failed"]:
        raise LossmapError(
            "the engine answered in part",
            where=index,
            observed=f"timed_out {answer['timed_out']}, failed shards {answer['_shards']['failed']}",
            expected="every shard in time",
            next_command="./run lossmap engine status, then run again",
        )


def _failed(live: Live, observed: str) -> LossmapError:
    return LossmapError(
        "a query failed; an empty list would have been scored as zeros",
        where=live.index,
        observed=observed[:300],
        next_command="./run lossmap engine status",
    )


class Exact:
    """Exact cosine over distinct vectors, fanned out to rows.

    A float32 product proposes, float64 decides: candidates within MARGIN of the last place are scored again with a
    fixed order of summation, so that ranks depend neither on the BLAS nor on the number of cores.
    """

    def __init__(self, passages: Vectors) -> None:
        self._vectors = passages.distinct
        order = np.argsort(passages.inverse, kind="stable")
        self._members = order.astype(np.int32)
        self._starts = np.searchsorted(passages.inverse[order], np.arange(len(passages.distinct) + 1))
        self._inverse = passages.inverse

    def _score(self, query: np.ndarray, distinct: np.ndarray) -> np.ndarray:
        """(1 + cos) / 2 as float32, the engine's scale of a cosine."""
        products = self._vectors[distinct].astype(np.float64) * query.astype(np.float64)
        return ((1.0 + products.sum(axis=1)) / 2.0).astype(np.float32)

    def _rank(self, rows: np.ndarray, scores: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
        order = np.lexsort((rows, -scores))[:depth]
        return rows[order], scores[order]

    def _candidates(self, approximate: np.ndarray, depth: int) -> np.ndarray:
        if len(approximate) <= depth:
            return np.arange(len(approximate))
        last = np.partition(approximate, -depth)[-depth]
        return np.flatnonzero(approximate >= last - MARGIN)

    def corpus(self, queries: np.ndarray, depth: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(rows, scores) of the ``depth`` nearest rows for each query vector."""
        for begin in range(0, len(queries), GEMM):
            block = queries[begin : begin + GEMM]
            for query, approximate in zip(block, block @ self._vectors.T, strict=True):
                found = self._candidates(approximate, depth)
                counts = self._starts[found + 1] - self._starts[found]
                rows = np.concatenate([self._members[self._starts[d] : self._starts[d + 1]] for d in found])
                yield self._rank(rows, np.repeat(self._score(query, found), counts), depth)

    def copies(self, rows: np.ndarray) -> np.ndarray:
        """``rows`` and every other row with the same vector."""
        found = np.unique(self._inverse[rows])
        return np.concatenate([self._members[self._starts[d] : self._starts[d + 1]] for d in found] or [rows])

    def within(self, query: np.ndarray, rows: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
        """The nearest among ``rows`` only."""
        return self._rank(rows, self._score(query, self._inverse[rows]), depth)


def recall(approximate: Leg, exact: Leg, depth: int) -> np.ndarray:
    """float64 (q): share of the exact first ``depth`` that the approximate leg holds in its own first ``depth``."""
    shares = []
    for i in range(len(exact.query_ids)):
        truth = set(exact.top(i, depth))
        shares.append(len(truth & set(approximate.top(i, depth))) / len(truth) if truth else 1.0)
    return np.array(shares)


def recall_by_score(approximate: Leg, exact: Leg, depth: int, tolerance: float = 1e-6) -> np.ndarray:
    """float64 (q): as ``recall``, where every hit as near as the exact list's last counts, whichever row it is."""
    wanted = (exact.rows[:, :depth] >= 0).sum(axis=1)
    last = exact.scores[np.arange(len(wanted)), np.maximum(wanted - 1, 0)]
    near = (approximate.rows[:, :depth] >= 0) & (approximate.scores[:, :depth] >= last[:, None] - tolerance)
    return np.where(wanted > 0, near.sum(axis=1) / np.maximum(wanted, 1), 1.0)
