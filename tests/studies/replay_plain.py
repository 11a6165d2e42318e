"""Random queries of a memory pipeline, and the list of every stage by plain sorts over the whole pool.

Five groups: ``large`` (one whole pool, deeper than the working set), ``small`` (19 rows: no lexical-only row passes the
gate), ``middle`` (55 rows under a high floor: queries are starved), ``scenes`` (candidate subsets of 4 to 45 rows,
clusters of queries) and ``gaps`` (content dedup dropped gold rows).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lossmap.memory.frozen import GATE_FACTOR, RESERVED, K

DIMENSIONS = 12


@dataclass(frozen=True)
class Pool:
    """A group: stored rows, floor, and how many queries ask it, in how many subtasks and clusters."""

    name: str
    rows: int
    floor: float
    queries: int
    subtasks: int = 1
    subset: bool = False
    clusters: int = 0
    missing: bool = False


POOLS = (
    Pool("large", 400, 0.05, 8, subtasks=2),
    Pool("small", 19, 0.1, 6),
    Pool("middle", 55, 0.55, 7),
    Pool("scenes", 90, 0.25, 9, subtasks=3, subset=True, clusters=3),
    Pool("gaps", 31, 0.2, 5, missing=True),
)


@dataclass
class Query:
    """All that a query of one group has, before rows are chosen. Lists are over the group's rows."""

    pool: Pool
    number: int
    cosine: NDArray[np.float32]
    lex: list[int]
    """Rows of the lexical list, best first."""
    bm25: list[float]
    eligible: set[int]
    gold: set[int]
    missing: int
    fallback: bool

    @property
    def query_id(self) -> str:
        return f"{self.pool.name}-{self.number:02d}"

    @property
    def floor(self) -> np.float32:
        return np.float32(self.pool.floor)

    @property
    def dense(self) -> list[int]:
        """Rows in dense order: cosine descending, row ascending."""
        return sorted(range(self.pool.rows), key=lambda row: (-self.cosine[row], row))


def gate(pool: int) -> float:
    """m(P) (spec/replay 4.1)."""
    return round(0.5 - 0.3 * min(1.0, math.log(pool + 1) / math.log(500)), 4) if pool > 0 else 0.5


def queries(seed: int = 0, pools: tuple[Pool, ...] = POOLS, encoder: int = 0) -> list[Query]:
    """Random queries, sorted by id; the first of every pool has no lexical list, the second a LIKE list.

    Another ``encoder`` has other cosines of the same queries, labels and lexical lists.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    found = [query for pool in pools for query in _asked(generator, pool)]
    other = np.random.Generator(np.random.PCG64([seed, encoder]))
    for query in found if encoder else []:
        noise = other.normal(0, 0.3, query.pool.rows)
        query.cosine = np.clip(query.cosine + noise, -1, 1).astype(np.float32)
    return sorted(found, key=lambda query: query.query_id)


def _asked(generator: np.random.Generator, pool: Pool) -> Iterator[Query]:
    matrix = _units(generator, pool.rows)
    for number in range(pool.queries):
        asked = _units(generator, 1)[0] + 0.6 * matrix[generator.integers(pool.rows)]
        asked = (asked / np.linalg.norm(asked)).astype(np.float32)
        cosine = (matrix.astype(np.float64) @ asked.astype(np.float64)).astype(np.float32)
        subset = int(generator.integers(4, 46)) if pool.subset else pool.rows
        eligible = set(generator.permutation(pool.rows)[:subset].tolist())
        likely = np.exp(4 * cosine) / np.exp(4 * cosine).sum()
        gold = set(generator.choice(pool.rows, int(generator.integers(1, 4)), replace=False, p=likely).tolist())
        lex = [] if number == 0 else _lexical(generator, pool.rows, gold)
        bm25 = [math.nan] * len(lex) if number == 1 else sorted(generator.exponential(3, len(lex)).round(1))[::-1]
        missing = int(pool.missing and number % 2)
        yield Query(pool, number, cosine, lex, list(map(float, bm25)), eligible, gold, missing, number == 1)


def _units(generator: np.random.Generator, count: int) -> NDArray[np.float32]:
    found = generator.normal(size=(count, DIMENSIONS))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def _lexical(generator: np.random.Generator, rows: int, gold: set[int]) -> list[int]:
    """A random order of some of the rows, in which a relevant row tends to come early."""
    listed = generator.permutation(rows)[: int(generator.integers(1, rows))].tolist()
    early = [row for row in sorted(gold) if generator.random() < 0.5]
    return list(dict.fromkeys([*listed[:2], *early, *listed]))


def bar(query: Query) -> np.float32:
    """What a cosine must reach to be admitted and pass the gate."""
    return max(query.floor, np.float32(gate(query.pool.rows)))


def lists(query: Query, stage: str, weight: float = 1.0) -> list[int]:
    """The whole list of a stage, best first, by plain sorts over every row of the group (spec/replay 3, 4.2, 6.6)."""
    ranked = [row for row in query.dense if row in query.eligible]
    if stage in ("s0", "s1"):
        return [row for row in ranked if stage == "s0" or query.cosine[row] >= query.floor]
    fused = _fused(query, weight, everything=stage == "s2nf")
    if stage in ("s2", "s2nf"):
        return fused
    kept = [row for row in fused if _passes(query, row, stage)]
    if stage == "s3":
        return kept
    want = min(RESERVED, len(ranked))
    refill = [row for row in ranked[:want] if row not in set(kept)]
    return kept + refill[: max(want - len(kept), 0)]


def _fused(query: Query, weight: float, everything: bool) -> list[int]:
    admitted = [row for row in query.dense if everything or query.cosine[row] >= query.floor]
    lex = {row: rank for rank, row in enumerate(query.lex)}
    dense = {row: rank for rank, row in enumerate(query.dense)}
    score = {row: 1 / (K + dense[row] + 1) for row in admitted}
    for row in query.lex:
        score.setdefault(row, 0.0)
        if weight:
            score[row] += weight * (1 / (K + lex[row] + 1))
    return [row for row in sorted(score, key=lambda row: -score[row]) if row in query.eligible]


def _passes(query: Query, row: int, stage: str) -> bool:
    if stage == "s3g2":
        return True
    m = gate(query.pool.rows)
    if query.cosine[row] >= query.floor:
        return bool(query.cosine[row] >= np.float32(m))
    return stage == "s3g1" or 1 / (K + query.lex.index(row) + 1) >= GATE_FACTOR * m / (K + 1)
