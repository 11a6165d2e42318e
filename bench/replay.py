"""All stages and weights of the memory replay against a plain per-query one, side by side in one run.

    PYTHONPATH=src python bench/replay.py

From the frozen lists of the full scale where build/full/replay has them, else from random ones of that size: every
(model, task), the stages and every lexical weight, with nDCG@10. Prints seconds of both, their ratio and the peak
resident memory; then the cost against the size of a corpus and against the number of queries.
"""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lossmap import canon
from lossmap.memory import cut, frozen
from lossmap.memory.frozen import Frozen
from lossmap.studies.replay import run

FULL = Path("build/full/replay")
COLUMNS = list(run.columns().values())
"""The stages, and the fusion under the weights of both grids."""
PLAIN_SHARE = 20
"""The plain replay runs on every 20th query, and its seconds are multiplied by what that leaves out."""
LARGEST = 20_000
"""Rows of a random pool at most: a larger one leaves as many rows of a query."""
MODELS = 3
SHAPES = {  # queries, rows, rows of a candidate subset
    "large pool": (1576, 129_062, None),
    "large pool by content": (1576, 87_000, None),
    "turns of a meeting": (1576, 129_062, 550),
    "claims of a meeting": (600, 129_062, 550),
    "sentences": (1380, 17_568, None),
    "experiences": (1219, 218, None),
    "experiences by when to use": (1219, 218, None),
    "interfaces": (1785, 936, None),
    "paragraphs": (1190, 240, None),
    "tiny pools": (200, 31, None),
}


class Named(NamedTuple):
    query_id: str
    subtask: str
    group: str
    cluster: str


def query(random: np.random.Generator, size: int, subset: int | None) -> dict[str, Any]:
    """The frozen scores of one random query: a lexical list of half the pool, 3 relevant rows near the top."""
    cosine = random.normal(0.25, 0.1, size).astype(np.float32)
    listed = random.permutation(size)[: size // 2].astype(np.int32)
    eligible = None if subset is None else np.sort(random.permutation(size)[:subset]).astype(np.int64)
    gold = np.sort(random.choice(np.argsort(-cosine)[:50] if eligible is None else eligible, min(3, size), False))
    bm25 = -np.arange(len(listed), dtype=np.float64)
    asked = cut.Asked(cosine, listed, bm25, False, eligible, gold.astype(np.int64), len(gold), "s|q")
    return cut.scores(asked, np.float32(0.15), cut.pool_gate(size))


def crafted(queries: int, size: int, subset: int | None, distinct: int = 100) -> Frozen:
    """``queries`` queries; ``distinct`` of them are drawn and then repeated, which costs a replay as much."""
    random = np.random.default_rng(queries)
    drawn = [query(random, size, subset) for _ in range(min(distinct, queries))]
    names = [Named(f"q{i:06}", "s", "g", f"q{i:06}") for i in range(queries)]
    return cut.together(names, {name.query_id: drawn[i % len(drawn)] for i, name in enumerate(names)})


def tasks() -> Iterator[tuple[str, Frozen]]:
    """One (model, task) after the other, so that one at a time is held."""
    paths = [
        path for path in sorted(FULL.glob("*/*/frozen.npz")) if canon.read_json(path.with_name("task.json"))["obtained"]
    ]
    for path in paths:
        yield f"{path.parent.parent.name} {path.parent.name}", frozen.load(path)
    if not paths:
        print("no frozen lists of the full scale: random ones of its size")
        for name, (queries, size, subset) in SHAPES.items():
            made = crafted(queries, min(size, LARGEST), subset)
            for model in range(MODELS):
                yield f"model {model} {name}", made


def vectorised(found: Frozen) -> np.ndarray:
    """nDCG@10 (Q, columns), as the rule of a model and task scores it."""
    return np.column_stack(list(run.scored(found).values()))


class Row(NamedTuple):
    """One kept row of one query, as the plain replay reads it."""

    row: int
    dense: int
    place: int
    lex: int
    admitted: bool
    passes: bool


def rows_of(found: Frozen, i: int) -> list[Row]:
    part = slice(found.offsets[i], found.offsets[i + 1])
    gate, floor = np.float32(found.gate[i]), found.floor[i]
    columns = (found.row, found.dense, found.dense_eligible, found.lex)
    kept = zip(*(column[part].tolist() for column in columns), found.cosine[part], found.working[part])
    return [Row(r, d, p, x, bool(c >= floor), bool(c >= gate)) for r, d, p, x, c, working in kept if working]


def plain(rows: list[Row], stage: str, weight: float, gate: float, eligible: int) -> list[int]:
    """One stage of one query by a dict of votes and a sort."""
    dense = sorted(rows, key=lambda row: row.dense)
    if stage in ("s0", "s1"):
        return [row.row for row in dense if stage == "s0" or row.admitted][:10]
    votes = {row.row: 1 / (frozen.K + row.dense + 1) for row in dense if row.admitted or stage == "s2nf"}
    voted = set(votes)
    for row in sorted((row for row in rows if row.lex >= 0), key=lambda row: row.lex):
        votes[row.row] = votes.get(row.row, 0.0) + (weight / (frozen.K + row.lex + 1) if weight else 0.0)
    ranked = sorted(votes, key=lambda row: -votes[row])
    if stage in ("s3", "s3r", "s3g1"):
        least, passes = gate * frozen.GATE_FACTOR / (frozen.K + 1), {row.row for row in rows if row.passes}
        ranked = [r for r in ranked if (r in passes if r in voted else stage == "s3g1" or votes[r] >= least)]
    if stage in frozen.REFILLED:
        length, there = min(frozen.RESERVED, eligible), set(ranked)
        reserved = [row.row for row in sorted(rows, key=lambda row: row.place) if row.place < length]
        ranked += [r for r in reserved if r not in there][: max(0, length - len(ranked))]
    return ranked[:10]


def gain(ranked: list[int], relevant: dict[int, int]) -> float:
    """nDCG@10 of one list."""
    reached = sum(1 / math.log2(rank + 2) for rank, row in enumerate(ranked) if relevant.get(row, 0) > 0)
    ideal = sum(1 / math.log2(rank + 2) for rank in range(min(10, len(relevant))))
    return float(reached / ideal) if ideal else 0.0


def one_by_one(found: Frozen, numbers: range) -> tuple[np.ndarray, float]:
    """nDCG@10 of the queries ``numbers`` by the plain replay, and its seconds; reading the rows is not counted."""
    qrels = found.qrels()
    read = {i: rows_of(found, i) for i in numbers}
    begin = time.perf_counter()
    values = [
        [
            gain(plain(read[i], stage, weight, found.gate[i], found.eligible[i]), qrels[found.query_ids[i]])
            for stage, weight in COLUMNS
        ]
        for i in numbers
    ]
    return np.array(values), time.perf_counter() - begin


def whole() -> None:
    ours = theirs = 0.0
    queries = rankings = 0
    for name, found in tasks():
        begin = time.perf_counter()
        values = vectorised(found)
        seconds = time.perf_counter() - begin
        numbers = range(0, len(found.query_ids), PLAIN_SHARE)
        check, plain_seconds = one_by_one(found, numbers)
        if not np.allclose(values[list(numbers)], check, rtol=0, atol=1e-12):
            raise SystemExit(f"{name}: the two replays differ")
        ours += seconds
        theirs += plain_seconds * len(found.query_ids) / len(numbers)
        queries += len(found.query_ids)
        rankings += values.size
        print(f"{name}: {len(found.query_ids)} queries, {len(found.row)} rows, {seconds:.2f} s")
    print(f"replay {ours:.1f} s, plain {theirs:.0f} s (every {PLAIN_SHARE}th query), ratio {theirs / ours:.1f}")
    print(f"{queries} queries of all models, {rankings} rankings scored")
    print(f"peak resident {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


def curves() -> None:
    for size in (100, 1_000, 10_000, 100_000):
        begin = time.perf_counter()
        found = crafted(200, size, None, distinct=20)
        middle = time.perf_counter()
        vectorised(found)
        replayed = (time.perf_counter() - middle) * 1000 / 200
        print(f"corpus of {size}: cut {(middle - begin) * 1000 / 20:.1f} ms, replay {replayed:.2f} ms a query")
    for count in (250, 1_000, 4_000, 16_000):
        found = crafted(count, 5_000, None)
        begin = time.perf_counter()
        vectorised(found)
        print(f"{count} queries: {time.perf_counter() - begin:.2f} s")


if __name__ == "__main__":
    whole()
    curves()
