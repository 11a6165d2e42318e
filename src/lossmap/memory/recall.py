"""Recall as the memory system runs it, one query at a time: both arms, their fusion, the gate (spec/replay 2.1, 3, 4).

The witness of the frozen replay: it shares no ranking code and no constant with it, and is written with plain lists,
dicts and sorts on purpose.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lossmap.errors import LossmapError
from lossmap.memory import store as lexical
from lossmap.memory.store import Store

K = 60
"""The rank constant (Cormack, Clarke and Buettcher 2009); ranks count from 0, so the first vote is 1 / (K + 1)."""
FLOOR_FACTOR = 0.5
CEILING = 300_000
"""The most rows that any arm or recall returns."""
GATE_VOTES = 3
"""A row of the lexical list alone needs GATE_VOTES * m(P) / (K + 1)."""
GATE_SCORELESS = 100
"""From this pool on, a row without any score is kept."""
BLOCK = 1024

Scored = tuple[float, int, str]
"""(float32 cosine, rowid, key)."""


@dataclass(frozen=True)
class Regime:
    """How a recall runs. ``weight`` of a lexical vote, from 0 to 1; ``strip_punct`` as in the query builder.

    The other switches are off in this regime, and raise (exit 2) where they are on: the gate on calibrated scores, the
    cut at the largest gap, confidence scores.
    """

    weight: float = 1.0
    strip_punct: bool = False
    fused_gate: bool = False
    autocut: bool = False
    confidence: bool = False

    def __post_init__(self) -> None:
        for switch in ("fused_gate", "autocut", "confidence"):
            if getattr(self, switch):
                raise LossmapError(
                    f"{switch} is not part of this regime",
                    observed=f"{switch} on",
                    expected=f"the gate on the pool size alone; switches: {', '.join(f.name for f in fields(self))}",
                    next_command=f"leave {switch} off",
                    exit_code=2,
                )
        if not 0 <= self.weight <= 1:
            raise LossmapError("a lexical weight is out of range", observed=self.weight, expected="0 to 1", exit_code=2)


class Hit(NamedTuple):
    """``score``: the sum of votes, None for a row of a blank query. ``cosine``: None without a dense vote."""

    rowid: int
    key: str
    score: float | None
    cosine: float | None


def gate(pool: int) -> float:
    """m(P) = round(0.5 - 0.3 min(1, ln(P + 1) / ln 500), 4) of P stored rows; 0.5 for none."""
    if pool <= 0:
        return 0.5
    return round(0.5 - 0.3 * min(1.0, math.log(pool + 1) / math.log(500)), 4)


def gated(hits: list[Hit], pool: int, blank: bool = False) -> list[Hit]:
    """The hits that the gate keeps, in their order: judged by cosine, else by score, else by the pool alone."""
    least = gate(pool)

    def passes(hit: Hit) -> bool:
        if hit.cosine is not None:
            return bool(np.float32(hit.cosine) >= np.float32(least))
        if hit.score is not None:
            return hit.score >= least * GATE_VOTES / (K + 1)
        return pool >= GATE_SCORELESS or blank

    return [hit for hit in hits if passes(hit)]


class Recall:
    """Recall over one filled store. ``threshold``: what the calibration of its corpus found."""

    def __init__(self, store: Store, threshold: float, regime: Regime = Regime()) -> None:  # noqa: B008 - frozen
        self.store, self.threshold, self.regime = store, threshold, regime

    def dense(self, vector: NDArray[np.float32], limit: int) -> list[Scored]:
        """The rows with cosine >= floor, the nearest first, ties in the order of the scan. ``vector``: float32 (d,)."""
        floor = float(np.float32(self.threshold * FLOOR_FACTOR))
        admitted = [row for row in self._cosines(vector) if row[0] >= floor]
        return heapq.nlargest(_clamped(limit), admitted, key=lambda row: row[0])

    def rrf(self, text: str, vector: NDArray[np.float32], limit: int) -> list[Hit]:
        """Reciprocal rank fusion of at most ``limit`` rows of each arm, best first, before the gate.

        Ties stay in the order of insertion: dense rows, then rows of the lexical list alone. Under weight 0 these have
        the score 0 and fill the tail.
        """
        scores: dict[int, float] = {}
        keys: dict[int, str] = {}
        cosines: dict[int, float] = {}
        for rank, (cosine, rowid, key) in enumerate(self.dense(vector, limit)):
            scores[rowid], keys[rowid], cosines[rowid] = 1 / (K + rank + 1), key, cosine
        weight = self.regime.weight
        for rank, (rowid, key, _) in enumerate(self._keyword(text, limit)):
            keys[rowid] = key
            scores[rowid] = scores.get(rowid, 0.0) + weight / (K + rank + 1)
        order = sorted(scores, key=lambda rowid: scores[rowid], reverse=True)
        return [Hit(rowid, keys[rowid], scores[rowid], cosines.get(rowid)) for rowid in order]

    def do_recall(self, text: str, vector: NDArray[np.float32], limit: int) -> list[Hit]:
        """What a caller of the memory gets: fused, gated, cut to ``limit``, and REVERSED, so that the best comes last.

        A blank text is not searched for: its rows are the newest ones, without a score.
        """
        blank = not text.strip()
        if blank:
            found = [Hit(rowid, key, None, None) for rowid, key, _ in self._keyword(text, limit)]
        else:
            found = self.rrf(text, vector, limit)
        return self.deliver(found, limit, blank)

    def deliver(self, found: list[Hit], limit: int, blank: bool = False) -> list[Hit]:
        """What do_recall makes of a fused list: gate, cut, reversal. A caller that has the list need not fuse again."""
        kept = gated(found, self.store.size(), blank)[: _clamped(limit)]
        kept.reverse()
        return kept

    def _keyword(self, text: str, limit: int) -> list[lexical.Hit]:
        return self.store.keyword(text, _clamped(limit), self.regime.strip_punct).hits

    def _cosines(self, vector: NDArray[np.float32]) -> Iterator[Scored]:
        """Every row with its cosine: a product of doubles, then cut to float32, so that no order of sums shows."""
        query, rows = _checked(vector).astype(np.float64), self.store.scan()
        while block := list(islice(rows, BLOCK)):
            matrix = _matrix(block, len(query)).astype(np.float64)
            cosines = (matrix @ query).astype(np.float32).tolist()
            for cosine, (rowid, key, _) in zip(cosines, block, strict=True):
                yield cosine, rowid, key


def _clamped(limit: int) -> int:
    return max(0, min(limit, CEILING))


def _checked(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    if vector.dtype != np.float32 or vector.ndim != 1:
        observed = f"{vector.dtype} {vector.shape}"
        raise LossmapError("the vector of a query is of another kind", observed=observed, expected="float32 (d,)")
    return vector


def _matrix(block: list[tuple[int, str, bytes | None]], width: int) -> NDArray[np.float32]:
    """Float32 (rows, width) of the blobs of ``block``."""
    for rowid, key, blob in block:
        if blob is None or len(blob) != 4 * width:
            raise LossmapError(
                "a row has no vector of the query's dimension",
                where=f"row {rowid}, {key}",
                observed="no vector" if blob is None else f"{len(blob) // 4} dimensions",
                expected=f"{width} dimensions",
                next_command="fill the store with the vectors of the model that encoded the query",
            )
    return np.frombuffer(b"".join(blob or b"" for _, _, blob in block), "<f4").reshape(-1, width)
