"""Frozen scores of one model over one task: what is kept of a query and of its rows, on disk and in memory.

For each query the rows that can reach the top of any stage are kept with their ranks in the *whole* lists of both arms,
so that a stage is a sort of some hundred rows instead of a recall over the corpus (spec/replay 3).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lossmap import canon
from lossmap.errors import LossmapError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Rows = NDArray[np.int32]
Reals = NDArray[np.float32]

ABSENT = -1
K = 60
"""The rank constant of the pipeline under replay (Cormack, Clarke and Buettcher 2009)."""
FLOOR_FACTOR = 0.5
"""A row is admitted from half the calibrated threshold on (spec/replay 2.1)."""
GATE_FACTOR = 3
"""A lexical-only row passes the gate from GATE_FACTOR * m(P) / (K + 1) on (spec/replay 4.2)."""
RESERVED = 10
"""The rows that the reservation invariant keeps reachable (spec/replay 6.2)."""
DEPTH = 260
"""Rows of either arm that are kept: exact for the first hundred of a fusion with weights up to 1 (spec/speed)."""
NAMES = ("query_ids", "subtasks", "groups", "clusters")
REMAKE = "./run results/replay --forcerun replay"


@dataclass(frozen=True)
class Frozen:
    """Q queries of one task under one model, and R rows in all, those of query i at ``offsets[i]:offsets[i + 1]``.

    A query's rows are unique and sorted by ``row``; queries are sorted by their ids. Of the whole task:

    ``query_ids``, ``subtasks``, ``groups`` (the stored corpus), ``clusters`` (a meeting; the query id where queries
    stand for themselves): str (Q,).

    Of a query, (Q,): ``size`` stored rows of its group (the pool P), ``eligible`` rows of its candidate subset (= size
    without one), ``admitted`` and ``admitted_eligible`` rows with cosine >= floor, ``lexical`` and ``lexical_eligible``
    rows on the lexical list, ``relevant`` judged rows, ``missing`` of them that the store does not hold, ``fallback``
    (the lexical list came from LIKE), ``subset`` (a candidate subset applies), ``floor`` float32, ``gate`` (m(P)),
    ``best`` and ``best_eligible`` (maximum cosine over the group and over the eligible rows), ``bins`` int64 (Q, B):
    eligible non-relevant rows in each bin of the dump (DEEP edges).

    Of a row, (R,): ``row`` its number in its group (0-based, storing order), ``cosine`` float32, ``dense`` its 0-based
    rank in the whole dense order, ``dense_eligible`` its rank among the eligible rows (ABSENT where not eligible),
    ``lex`` its 0-based rank on the whole lexical list (ABSENT), ``bm25`` float64, larger is better (nan where absent or
    LIKE), ``label`` (relevant), ``working`` (in the working set of fusion: eligible, and within the depth of an arm,
    or any eligible row where a subset applies; where the gate leaves no more than ``depth`` dense rows, also the first
    ``depth`` lexical-only rows, which a gate without its rank cut lets through from any lexical rank), ``chance``
    float64: the probability with which the row-keyed dump samples it (0: it is here for fusion alone).
    """

    query_ids: tuple[str, ...]
    subtasks: tuple[str, ...]
    groups: tuple[str, ...]
    clusters: tuple[str, ...]
    size: Ints
    eligible: Ints
    admitted: Ints
    admitted_eligible: Ints
    lexical: Ints
    lexical_eligible: Ints
    relevant: Ints
    missing: Ints
    fallback: Bools
    subset: Bools
    floor: NDArray[np.float32]
    gate: Floats
    best: NDArray[np.float32]
    best_eligible: NDArray[np.float32]
    bins: Ints
    offsets: Ints
    row: NDArray[np.int32]
    cosine: NDArray[np.float32]
    dense: NDArray[np.int32]
    dense_eligible: NDArray[np.int32]
    lex: NDArray[np.int32]
    bm25: Floats
    label: Bools
    working: Bools
    chance: Floats
    depth: int
    """Rows of either arm that the working set of a query without a subset holds."""

    @cached_property
    def query(self) -> Ints:
        """(R,): the query of each row."""
        return np.repeat(np.arange(len(self.query_ids)), np.diff(self.offsets))

    @cached_property
    def admitted_row(self) -> Bools:
        """(R,): cosine >= floor, both float32."""
        return self.cosine >= np.repeat(self.floor, np.diff(self.offsets))

    def qrels(self) -> dict[str, dict[Any, int]]:
        """Query to its relevant rows, grade 1 (labels are binary); what the store lacks has names below 0."""
        found: dict[str, dict[Any, int]] = {}
        for i, query_id in enumerate(self.query_ids):
            part = slice(self.offsets[i], self.offsets[i + 1])
            held = {int(row): 1 for row in self.row[part][self.label[part]]}
            found[query_id] = held | {-1 - n: 1 for n in range(int(self.missing[i]))}
        return found


def save(path: Path, value: Frozen) -> None:
    """One npz, not compressed: about 38 bytes a row. Its bytes depend on ``value`` alone."""
    with canon.atomic(path) as handle:
        columns: dict[str, Any] = {field.name: np.asarray(getattr(value, field.name)) for field in fields(value)}
        np.savez(handle, **columns)


def load(path: Path) -> Frozen:
    """What :func:`save` wrote. Raises LossmapError on a file that is absent, damaged or of another version."""
    try:
        with np.load(path) as data:
            columns: dict[str, Any] = {field.name: data[field.name] for field in fields(Frozen)}
    except (OSError, ValueError, KeyError) as error:
        raise LossmapError("no frozen scores", where=path, observed=error, next_command=REMAKE) from error
    columns |= {name: tuple(columns[name].tolist()) for name in NAMES}
    return Frozen(**{**columns, "depth": int(columns["depth"])})
