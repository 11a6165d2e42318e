"""A small random Frozen by plain loops, and the order of every stage by plain sorts.

Five groups: ``large`` (one whole pool, deeper than the working set), ``small`` (19 rows: no lexical-only row passes the
gate), ``middle`` (55 rows under a high floor: queries are starved), ``scenes`` (candidate subsets of 4 to 45 rows,
clusters of queries) and ``gaps`` (content dedup dropped gold rows).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lossmap.judge import decompose
from lossmap.memory.frozen import ABSENT, GATE_FACTOR, RESERVED, Frozen, K
from lossmap.studies.replay import run

DEPTH = 260
SHALLOW, MOST = 30, 20
DEEP = (30, 100, 300, 1000)
"""Lower edges of the bins of the dump that are sampled, at most MOST rows each (spec/replay 6.3)."""
DIMENSIONS = 12
ROW_ARRAYS = {
    "row": np.int32,
    "cosine": np.float32,
    "dense": np.int32,
    "dense_eligible": np.int32,
    "lex": np.int32,
    "bm25": np.float64,
    "label": bool,
    "working": bool,
    "chance": np.float64,
}


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
    sampled: dict[int, float] = field(default_factory=dict)

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


def frozen(seed: int = 0, pools: tuple[Pool, ...] = POOLS, encoder: int = 0, depth: int = DEPTH) -> Frozen:
    """The random queries as memory/freeze would leave them."""
    asked = queries(seed, pools, encoder)
    generator = np.random.Generator(np.random.PCG64([seed, 1]))
    rows = [_rows(query, depth, generator) for query in asked]
    arrays = {name: np.array([row[name] for mine in rows for row in mine], kind) for name, kind in ROW_ARRAYS.items()}
    per_query: dict[str, Any] = {
        "query_ids": tuple(query.query_id for query in asked),
        "subtasks": tuple(f"{query.pool.name}-{query.number % query.pool.subtasks}" for query in asked),
        "groups": tuple(query.pool.name for query in asked),
        "clusters": tuple(_cluster(query) for query in asked),
        "offsets": np.cumsum([0, *map(len, rows)], dtype=np.int64),
        "fallback": np.array([query.fallback and bool(query.lex) for query in asked], bool),
        "subset": np.array([query.pool.subset for query in asked], bool),
        "floor": np.array([query.floor for query in asked], np.float32),
        "gate": np.array([gate(query.pool.rows) for query in asked], np.float64),
        "best": np.array([query.cosine.max() for query in asked], np.float32),
        "best_eligible": np.array([max(query.cosine[list(query.eligible)]) for query in asked], np.float32),
        "bins": np.array([_bins(query) for query in asked], np.int64),
    }
    counts = {name: np.array([count(query) for query in asked], np.int64) for name, count in COUNTS.items()}
    return Frozen(**per_query, **counts, **arrays, depth=depth)


def _cluster(query: Query) -> str:
    return f"m{query.number % query.pool.clusters}" if query.pool.clusters else query.query_id


COUNTS = {
    "size": lambda q: q.pool.rows,
    "eligible": lambda q: len(q.eligible),
    "admitted": lambda q: int((q.cosine >= q.floor).sum()),
    "admitted_eligible": lambda q: sum(bool(q.cosine[row] >= q.floor) for row in q.eligible),
    "lexical": lambda q: len(q.lex),
    "lexical_eligible": lambda q: len(set(q.lex) & q.eligible),
    "relevant": lambda q: len(q.gold) + q.missing,
    "missing": lambda q: q.missing,
}


def _bins(query: Query) -> list[int]:
    ranked = [row for row in query.dense if row in query.eligible]
    edges = [*DEEP, len(ranked) + DEEP[-1]]
    return [sum(row not in query.gold for row in ranked[low:high]) for low, high in zip(edges, edges[1:])]


def _rows(query: Query, depth: int, generator: np.random.Generator) -> list[dict[str, Any]]:
    """The rows that are kept of a query, sorted by row."""
    dense = {row: rank for rank, row in enumerate(query.dense)}
    ranked = [row for row in query.dense if row in query.eligible]
    eligible = {row: rank for rank, row in enumerate(ranked)}
    lex = {row: rank for rank, row in enumerate(query.lex)}
    near = {row for row in ranked if dense[row] < depth or lex.get(row, depth) < depth}
    if sum(bool(query.cosine[row] >= _bar(query)) for row in ranked) <= depth:
        alone = [row for row in query.lex if row in query.eligible and query.cosine[row] < query.floor]
        near.update(alone[:depth])
    working = query.eligible if query.pool.subset else near
    chance = dict.fromkeys([*ranked[:SHALLOW], *query.gold], 1.0)
    for low, high in zip(DEEP, [*DEEP[1:], len(ranked)]):
        inside = [row for row in ranked[low:high] if row not in query.gold]
        picked = generator.permutation(inside)[:MOST].tolist()
        chance.update(dict.fromkeys(picked, min(1.0, MOST / max(len(inside), 1))))
    return [
        {
            "row": row,
            "cosine": query.cosine[row],
            "dense": dense[row],
            "dense_eligible": eligible.get(row, ABSENT),
            "lex": lex.get(row, ABSENT),
            "bm25": query.bm25[lex[row]] if row in lex else math.nan,
            "label": row in query.gold,
            "working": row in working,
            "chance": chance.get(row, 0.0),
        }
        for row in sorted({*working, *chance})
    ]


def _bar(query: Query) -> np.float32:
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


def values(asked: list[Query], stage: str, weight: float = 1.0) -> NDArray[np.float64]:
    """nDCG@10 (Q,) of a stage, by plain sorts."""
    qrels: dict[str, dict[Any, int]] = {
        query.query_id: {**dict.fromkeys(query.gold, 1), **{-1 - n: 1 for n in range(query.missing)}} for query in asked
    }
    return decompose.ndcg(qrels, {query.query_id: lists(query, stage, weight) for query in asked})


def table(asked: list[Query]) -> dict[str, NDArray[np.float64]]:
    """nDCG@10 of every column that run.scored keeps."""
    return {name: values(asked, stage, weight) for name, (stage, weight) in run.columns().items()}


CARD: dict[str, Any] = {"tier": "A", "judged_by": "human", "keyed": "rows", "corresponds": None, "obtained": True}


def card(found: Frozen, model: str, task: str, **more: Any) -> dict[str, Any]:
    """A task.json of the groups of ``found``."""
    groups = []
    for name in dict.fromkeys(found.groups):
        mine = [i for i, group in enumerate(found.groups) if group == name]
        size, floor = int(found.size[mine[0]]), float(found.floor[mine[0]])
        calibration = {"ok": True, "source": "live", "method": "separation", "threshold": round(2 * floor, 4)}
        groups.append(
            {
                "name": name,
                "subtasks": sorted({found.subtasks[i] for i in mine}),
                "lines": size + 2,
                "stored": size,
                "collapsed": 2,
                "calibration": {**calibration, "youden_j": 0.5},
                "floor": floor,
                "gate": float(found.gate[mine[0]]),
                "pool": size,
                "band": [round(2 * floor + step / 100, 4) for step in range(-2, 3)],
            }
        )
    return {**CARD, "task": task, "model": model, "pin_from": None, "groups": groups, **more}


class Crafted(run.Replayed):
    """A replay in memory instead of on disk."""

    def __init__(
        self,
        model: str = "m",
        task: str = "t",
        seed: int = 0,
        pools: tuple[Pool, ...] = POOLS,
        encoder: int = 0,
        **more: Any,
    ) -> None:
        self.asked = queries(seed, pools, encoder)
        self.model, self.task, self.place = model, task, Path("nowhere")
        self.__dict__["frozen"] = frozen(seed, pools, encoder)
        self.__dict__["table"] = table(self.asked)
        self.card = card(self.frozen, model, task, **more)


def chapter(models: int = 2, tasks: int = 2) -> list[Crafted]:
    """Several models over the same tasks, as run.replayed lists them."""
    return [Crafted(f"m{i}", f"t{j}", seed=j, encoder=i) for i in range(models) for j in range(tasks)]


def serve(monkeypatch: pytest.MonkeyPatch, found: Sequence[run.Replayed]) -> None:
    """Let the studies read ``found`` in the place of a build folder."""
    monkeypatch.setattr(run, "replayed", lambda at: list(found))
    monkeypatch.setattr(run, "missing", lambda at: [])


def macro(found: run.Replayed, values: NDArray[np.float64]) -> float:
    """Mean over subtasks of the mean over their queries, by plain loops."""
    by_subtask: dict[str, list[float]] = {}
    for subtask, value in zip(found.frozen.subtasks, values.tolist()):
        by_subtask.setdefault(subtask, []).append(value)
    return sum(sum(some) / len(some) for some in by_subtask.values()) / len(by_subtask)


def layout() -> Any:
    """Stands for the layout that a study is given: served replays need none."""
    return None
