"""The random queries of replay_plain as a Frozen, a card and a replay, made by plain loops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from replay_plain import POOLS, Pool, Query, bar, gate, lists, queries

from lossmap.judge import decompose
from lossmap.memory.frozen import ABSENT, Frozen
from lossmap.studies.replay import run

__all__ = ["POOLS", "Crafted", "Pool", "Query", "chapter", "frozen", "gate", "lists", "queries", "serve", "table"]

DEPTH = 260
SHALLOW, MOST = 30, 20
DEEP = (0, 1, 3, 10, 30, 100, 300, 1000)
"""Lower edges of the bins of the dump; from SHALLOW on at most MOST rows of each are sampled (spec/replay 6.3)."""
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
    if sum(bool(query.cosine[row] >= bar(query)) for row in ranked) <= depth:
        alone = [row for row in query.lex if row in query.eligible and query.cosine[row] < query.floor]
        near.update(alone[:depth])
    working = query.eligible if query.pool.subset else near
    chance = dict.fromkeys([*ranked[:SHALLOW], *(query.gold & query.eligible)], 1.0)
    for low, high in zip(DEEP, [*DEEP[1:], len(ranked)]):
        if low < SHALLOW:
            continue
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
        for row in sorted({*working, *chance, *query.gold})
    ]


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


def macro(found: run.Replayed, values: NDArray[np.float64]) -> float:
    """Mean over subtasks of the mean over their queries, by plain loops."""
    by_subtask: dict[str, list[float]] = {}
    for subtask, value in zip(found.frozen.subtasks, values.tolist()):
        by_subtask.setdefault(subtask, []).append(value)
    return sum(sum(some) / len(some) for some in by_subtask.values()) / len(by_subtask)


def layout() -> Any:
    """Stands for the layout that a study is given: served replays need none."""
    return None
