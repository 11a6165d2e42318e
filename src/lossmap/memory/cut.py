"""One query's scores over a whole pool, cut down to the rows that a replay and the row-keyed dump need.

Ranks are those of the whole lists of both arms, the dense order by (cosine descending, row ascending).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lossmap.errors import LossmapError
from lossmap.memory.kept import ABSENT, DEPTH, REMAKE, Bools, Frozen, Ints, Reals, Rows

DEEP = (0, 1, 3, 10, 30, 100, 300, 1000)
"""Where the bins of the dump begin, by dense rank among the eligible rows; the last is open (spec/replay 6.3b)."""
WHOLE = 30
"""Above this rank the dump holds every row; below, PER_BIN rows of each bin that are not relevant."""
PER_BIN = 20


ROW_COLUMNS = ("row", "cosine", "dense", "dense_eligible", "lex", "bm25", "label", "working", "chance")
TYPES = {"fallback": bool, "subset": bool, "floor": np.float32, "gate": np.float64}
TYPES |= {"best": np.float32, "best_eligible": np.float32}
"""Of the numbers of a query; whole numbers otherwise."""


def pool_gate(size: int) -> float:
    """m(P) = round(0.5 - 0.3 min(1, ln(P + 1) / ln 500), 4); 0.5 for an empty pool (spec/replay 4.1)."""
    return round(0.5 - 0.3 * min(1.0, math.log(size + 1) / math.log(500)), 4) if size > 0 else 0.5


def falling(cosine: Reals) -> Ints:
    """(n,): rows by (cosine descending, row ascending).

    A sort of whole numbers that hold the cosine above the row: every row is another number, so that no tie is left,
    and it is as fast as a partition of the cosines (1 ms for 129,062 rows; an indirect sort takes 9).
    """
    bits = (cosine + np.float32(0)).view(np.int32)  # + 0 makes one zero of -0.0 and 0.0
    rising = np.where(bits < 0, ~bits, bits | np.int32(-(2**31))).view(np.uint32)
    number = ((~rising).astype(np.uint64) << np.uint64(32)) | np.arange(len(cosine), dtype=np.uint64)
    number.sort()
    return (number & np.uint64(0xFFFFFFFF)).astype(np.int64)


@dataclass(frozen=True)
class Asked:
    """What one query found in a pool of ``n`` rows: ``cosine`` (n,), the lexical list (rows best first, bm25),
    ``eligible`` rows or None for all, ``gold`` rows that are stored."""

    cosine: Reals
    listed: Rows
    bm25: NDArray[np.float64]
    fallback: bool
    eligible: Ints | None
    gold: Ints
    relevant: int
    name: str
    """``subtask|query id``: seeds the sample of the dump."""


def scores(asked: Asked, floor: np.float32, gate: float, depth: int = DEPTH) -> dict[str, Any]:
    """The fields of :class:`Frozen` of one query: numbers, and columns over the rows that are kept."""
    size = len(asked.cosine)
    by_rank = falling(asked.cosine)
    rank, lex = np.empty(size, np.int32), np.full(size, ABSENT, np.int32)
    rank[by_rank], lex[asked.listed] = np.arange(size), np.arange(len(asked.listed))
    subset = asked.eligible is not None
    inside = by_rank if asked.eligible is None else asked.eligible[np.argsort(rank[asked.eligible])]
    place = np.full(size, ABSENT, np.int32)
    place[inside] = np.arange(len(inside))
    admitted = asked.cosine >= floor
    working = inside if subset else _reachable(asked, by_rank, admitted, gate, depth)
    chance, bins = _sample(asked, inside)
    rows = np.unique(np.concatenate([working, asked.gold, np.flatnonzero(chance)]))
    bm25 = np.full(size, np.nan)
    bm25[asked.listed] = asked.bm25
    relevant, used = np.zeros(size, bool), np.zeros(size, bool)
    relevant[asked.gold], used[working] = True, True
    lowest = np.float32(-1)
    return {
        "size": size,
        "eligible": len(inside),
        "admitted": int(admitted.sum()),
        "admitted_eligible": int(admitted[inside].sum()),
        "lexical": len(asked.listed),
        "lexical_eligible": int((lex[inside] >= 0).sum()),
        "relevant": asked.relevant,
        "missing": asked.relevant - len(asked.gold),
        "fallback": asked.fallback,
        "subset": subset,
        "floor": floor,
        "gate": gate,
        "best": asked.cosine[by_rank[0]] if size else lowest,
        "best_eligible": asked.cosine[inside[0]] if len(inside) else lowest,
        "bins": bins,
        "row": rows.astype(np.int32),
        "cosine": asked.cosine[rows],
        "dense": rank[rows],
        "dense_eligible": place[rows],
        "lex": lex[rows],
        "bm25": bm25[rows],
        "label": relevant[rows],
        "working": used[rows],
        "chance": chance[rows],
    }


def _reachable(asked: Asked, by_rank: Ints, admitted: Bools, gate: float, depth: int) -> Ints:
    """The working set of a query without a subset, as :class:`Frozen` describes it."""
    parts = [by_rank[:depth], asked.listed[:depth].astype(np.int64)]
    if int((admitted & (asked.cosine >= np.float32(gate))).sum()) <= depth:
        parts.append(asked.listed[~admitted[asked.listed]][:depth].astype(np.int64))
    return np.unique(np.concatenate(parts))


def _sample(asked: Asked, inside: Ints) -> tuple[NDArray[np.float64], Ints]:
    """The chance (n,) of each row that the dump takes, 0 elsewhere, and the population of each bin: eligible rows that
    are not relevant. ``inside``: the eligible rows in dense order. The draw sees neither labels nor lexical scores.
    """
    chance = np.zeros(len(asked.cosine))
    chance[inside[:WHOLE]] = 1.0
    others = ~np.isin(inside, asked.gold)
    chance[inside[~others]] = 1.0
    bins = []
    for number, (first, end) in enumerate(zip(DEEP, [*DEEP[1:], None], strict=True)):
        population = inside[first:end][others[first:end]]
        bins.append(len(population))
        if first >= WHOLE and len(population):
            seed = hashlib.sha256(f"{asked.name}|{number}".encode()).digest()
            draw = np.random.default_rng(int.from_bytes(seed[:8], "big"))
            taken = draw.choice(len(population), min(PER_BIN, len(population)), replace=False)
            chance[population[taken]] = min(1.0, PER_BIN / len(population))
    return chance, np.array(bins, np.int64)


class Named(Protocol):
    """What is copied of a question (memory/tasks)."""

    @property
    def query_id(self) -> str: ...
    @property
    def subtask(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def cluster(self) -> str: ...


def together(questions: Sequence[Named], found: Mapping[str, dict[str, Any]], depth: int = DEPTH) -> Frozen:
    """One :class:`Frozen` of the :func:`scores` of each query, in the order of ``questions``."""
    if len(found) != len(questions) or not found:
        raise LossmapError(
            "queries of a task are not told apart, or there are none",
            observed=f"{len(questions)} queries, {len(found)} ids",
            expected="one id a query, each in a group of the task",
            next_command=REMAKE,
        )
    parts = [found[question.query_id] for question in questions]
    numbers: dict[str, Any] = {
        name: np.array([part[name] for part in parts], TYPES.get(name, np.int64))
        for name in parts[0]
        if name not in ROW_COLUMNS
    }
    columns: dict[str, Any] = {name: np.concatenate([part[name] for part in parts]) for name in ROW_COLUMNS}
    ends = np.cumsum([0, *(len(part["row"]) for part in parts)])
    named: dict[str, Any] = {
        "query_ids": tuple(question.query_id for question in questions),
        "subtasks": tuple(question.subtask for question in questions),
        "groups": tuple(question.group for question in questions),
        "clusters": tuple(question.cluster for question in questions),
    }
    return Frozen(**named, **numbers, **columns, offsets=ends.astype(np.int64), depth=depth)
