"""The order of every stage of the memory pipeline, computed from frozen scores (memory/kept): no corpus, no store.

Shares no code with the live pipeline (memory/recall, memory/store), which it is checked against.
"""

from __future__ import annotations

import math

import numpy as np

from lossmap.errors import LossmapError
from lossmap.memory.kept import (
    ABSENT,
    DEPTH,
    FLOOR_FACTOR,
    GATE_FACTOR,
    REMAKE,
    RESERVED,
    Bools,
    Floats,
    Frozen,
    Ints,
    K,
    Rows,
    load,
    save,
)

__all__ = ["ABSENT", "DEPTH", "FLOOR_FACTOR", "GATE_FACTOR", "K", "REFILLED", "RESERVED", "STAGES"]
__all__ += ["Bools", "Floats", "Frozen", "Ints", "branch", "depth_for", "exact_to", "extent", "gains", "load"]
__all__ += ["REMAKE", "order", "ranking", "save"]

STAGES = ("s0", "s1", "s2", "s2nf", "s3", "s3r", "s3g1", "s3g2")
"""Dense order, its admitted prefix, fusion, fusion without a floor, fusion and gate; then, refilled from the reserved
rows: fusion and gate, the gate without its cut of lexical ranks, and no gate (spec/replay 5.3, 3, 4.2, 6.6)."""
GATED = ("s3", "s3r", "s3g1")
REFILLED = ("s3r", "s3g1", "s3g2")
BRANCHES = ("dropped by cosine", "kept by cosine", "kept by rank", "dropped by rank")
"""What :func:`branch` numbers from 0 (spec/replay 4.2)."""


def exact_to(depth: int, weight: float, k: int = K) -> int:
    """First ranks of a fusion that are exact when the first ``depth`` rows of either arm are kept.

    With n admitted rows and n <= depth every admitted row is kept, and a row that is not is lexical-only below
    ``depth`` kept lexical rows: exact at every rank up to ``depth``. With n > depth a row that is not kept scores at
    most (1 + w) / (K + depth + 1), and the first N dense rows at least 1 / (K + N): exact for the first N while
    (1 + w)(K + N) < K + depth + 1 (spec/replay 3, both cases).
    """
    return min(depth, max(0, math.ceil((k + depth + 1) / (1 + weight)) - k - 1))


def depth_for(count: int, weight: float, k: int = K) -> int:
    """The least depth whose first ``count`` ranks are exact: the other way round of :func:`exact_to`."""
    return max(count, math.floor((1 + weight) * (k + count) + 1e-9) - k)


def order(frozen: Frozen, stage: str, weight: float = 1.0, depth: int = 10) -> Ints:
    """The first ``depth`` rows of a stage for each query: positions (Q, depth) into the row arrays, then ABSENT.

    Only ``working`` rows are listed. A fusion orders by [admitted] / (K + dense + 1) + weight / (K + lex + 1) in
    float64, the dense vote first, ties by insertion: admitted rows in dense order, then lexical-only rows in lexical
    order; under weight 0 the latter are the tail (spec/replay 3). The gate filters that list (4.2) and reserved rows
    are appended in dense order until min(10, eligible) rows are there (6.2). Raises on an unknown stage, a weight
    outside [0, 1], and a depth to which the kept rows do not determine the order.
    """
    _check(frozen, stage, weight, depth)
    at = _near(frozen, stage, weight, depth)
    query, dense = frozen.query[at], frozen.dense[at]
    if stage in ("s0", "s1"):
        return _first(frozen, at, query, -dense.astype(np.float64), at, depth)
    lex = frozen.lex[at]
    voted = np.ones(len(at), bool) if stage == "s2nf" else frozen.admitted_row[at]
    score = np.where(voted, _votes(dense), 0.0) + _votes(lex, weight)
    listed = voted | (lex >= 0)
    if stage in GATED:
        passes = _passes(frozen, at, query, voted, score)
        listed &= passes | ~voted if stage == "s3g1" else passes
    listed &= score >= _sure(frozen, at, voted & listed, depth)[query]
    score[~listed] = -np.inf
    kept = listed | (frozen.dense_eligible[at] < RESERVED) if stage in REFILLED else listed
    at, query, score = at[kept], query[kept], score[kept]
    inserted = np.where(voted[kept], dense[kept], frozen.size[query] + lex[kept])
    return (_refilled if stage in REFILLED else _first)(frozen, at, query, score, inserted, depth)


def _check(frozen: Frozen, stage: str, weight: float, depth: int) -> None:
    if stage not in STAGES or not 0 <= weight <= 1:
        raise LossmapError(
            "no such stage of a replay",
            observed=f"{stage} at weight {weight}",
            expected=f"one of {', '.join(STAGES)}, a weight from 0 to 1",
            next_command="mend the caller",
            exit_code=2,
        )
    reach = frozen.depth if stage in ("s0", "s1") else exact_to(frozen.depth, weight)
    if depth > reach and bool((~frozen.subset & (frozen.size > frozen.depth)).any()):
        raise LossmapError(
            "the frozen rows do not determine an order so deep",
            where=f"{stage} at weight {weight}",
            observed=f"depth {depth}",
            expected=f"at most {reach}: {frozen.depth} rows of either arm were kept",
            next_command=REMAKE,
        )


def _near(frozen: Frozen, stage: str, weight: float, depth: int) -> Ints:
    """Positions of the rows that can be among the first ``depth`` of a stage: :func:`depth_for` of either arm.

    Where a gate may empty the list above them, every lexical-only row stays in. A row that has no lexical vote needs to
    be among the first ``depth`` of the eligible rows: those have dense votes that are larger, or none has.
    """
    dense, lex = frozen.dense, frozen.lex
    if stage in ("s0", "s1"):
        chosen = frozen.working & (frozen.dense_eligible < depth)
        return np.flatnonzero(chosen & frozen.admitted_row if stage == "s1" else chosen)
    reach = depth_for(depth, weight)
    chosen = (dense < reach) | (lex < reach) | np.repeat(frozen.subset, np.diff(frozen.offsets))
    if stage in GATED:
        chosen |= ~frozen.admitted_row
    return np.flatnonzero(chosen & frozen.working & ((lex >= 0) | (frozen.dense_eligible < max(depth, RESERVED))))


def _votes(ranks: Rows, weight: float = 1.0) -> Floats:
    """weight / (K + rank + 1) of 0-based ranks, 0 for ABSENT; read from a table, since ranks repeat."""
    table = weight / (K + np.arange(ranks.max(initial=ABSENT) + 1) + 1)
    return np.append(table, 0.0)[ranks]  # ABSENT is -1: the last


def _sure(frozen: Frozen, at: Ints, voted: Bools, depth: int) -> Floats:
    """(Q,): what the first ``depth`` rows score at least; 0 where there may be fewer.

    Listed rows with a dense vote are the head of the dense order, so that the vote of number ``depth`` is a bound.
    """
    least = np.zeros(len(frozen.query_ids))
    last = at[voted & (frozen.dense_eligible[at] == depth - 1)]
    least[frozen.query[last]] = _votes(frozen.dense[last])
    return least


def _passes(frozen: Frozen, at: Ints, query: Ints, voted: Bools, score: Floats) -> Bools:
    """The gate of the pool's size: cosine >= m(P) with a dense vote, else fused score >= 3 m(P) / (K + 1)."""
    by_cosine = frozen.cosine[at] >= frozen.gate.astype(np.float32)[query]
    by_score = score >= (frozen.gate * GATE_FACTOR / (K + 1))[query]
    return np.where(voted, by_cosine, by_score)


def _refilled(frozen: Frozen, at: Ints, query: Ints, score: Floats, inserted: Ints, depth: int) -> Ints:
    """Rows of score -inf are off the list; those of them that are reserved fill it up, in dense order."""
    count = len(frozen.query_ids)
    least = np.minimum(RESERVED, frozen.eligible)
    place = frozen.dense_eligible[at]
    missing = np.isneginf(score)
    length = np.maximum(np.bincount(query[~missing], minlength=count), least)
    fill = missing & (place < least[query])
    score = np.where(fill, -1.0 - place, score)
    found = _first(frozen, at, query, score, inserted, depth)
    return np.where(np.arange(depth) < length[:, None], found, ABSENT)


def _first(frozen: Frozen, at: Ints, query: Ints, score: Floats, inserted: Ints, depth: int) -> Ints:
    """(Q, depth): ``at`` by (query, score descending, insertion); a score of -inf is not listed.

    ``query`` ascends. Queries are sorted together with those of a like number of rows.
    """
    count = len(frozen.query_ids)
    found = np.full((count, depth), ABSENT, np.int64)
    listed = ~np.isneginf(score)
    at, query, score, inserted = at[listed], query[listed], score[listed], inserted[listed]
    held = np.bincount(query, minlength=count)
    start = np.cumsum(held) - held
    bits = np.ceil(np.log2(np.maximum(held, 1))).astype(np.int64)
    for bit in np.unique(bits[held > 0]):
        members = np.flatnonzero((bits == bit) & (held > 0))
        column = np.arange(1 << bit)
        inside = column < held[members][:, None]
        index = np.where(inside, start[members][:, None] + column, 0)
        early = np.argsort(np.where(inside, inserted[index], np.iinfo(np.int64).max), axis=1)
        falling = np.take_along_axis(np.where(inside, -score[index], np.inf), early, axis=1)
        best = np.argsort(falling, axis=1, kind="stable")[:, :depth]
        best = np.take_along_axis(early, best, axis=1)
        some = np.where(np.take_along_axis(inside, best, axis=1), np.take_along_axis(at[index], best, axis=1), ABSENT)
        found[members[:, None], np.arange(some.shape[1])] = some
    return found


def gains(frozen: Frozen, top: Ints) -> Floats:
    """(Q, depth): 1 where a row of ``top`` is relevant, what nDCG is summed from without a loop over queries."""
    return np.where(top == ABSENT, False, frozen.label[top] if len(frozen.label) else False).astype(np.float64)


def ranking(frozen: Frozen, top: Ints) -> dict[str, list[int]]:
    """Query to its rows in the order of ``top`` (positions, as :func:`order` has them)."""
    rows = np.where(top == ABSENT, 0, frozen.row[top] if len(frozen.row) else 0).tolist()
    counts = (top != ABSENT).sum(axis=1).tolist()
    return {query_id: some[:count] for query_id, some, count in zip(frozen.query_ids, rows, counts, strict=True)}


def branch(frozen: Frozen) -> Ints:
    """(R,): what the gate does to a row of the fused list, by BRANCHES; ABSENT for a row that is not on it."""
    at = np.arange(len(frozen.row))
    voted, listed = frozen.admitted_row, frozen.lex >= 0
    passes = _passes(frozen, at, frozen.query, voted, _votes(frozen.lex))
    kind = np.where(voted, np.where(passes, 1, 0), np.where(passes, 2, 3))
    return np.where(voted | listed, kind, ABSENT)


def extent(frozen: Frozen, stage: str) -> Ints:
    """(Q,): rows of the whole list of a stage under weight 1, inside the subset; ABSENT where what is kept cannot tell.

    A gate keeps a prefix of the dense order, and no lexical-only row from beyond its rank cut: what is counted among
    the kept rows is the whole where they hold that prefix and the lexical-only rows that the stage lets through.
    """
    _check(frozen, stage, 1.0, 1)
    if stage in ("s0", "s2nf"):
        return frozen.eligible.copy()
    if stage == "s1":
        return frozen.admitted_eligible.copy()
    kind = np.where(frozen.working, branch(frozen), ABSENT)
    passing, voted, alone, by_rank = (_count(frozen, np.isin(kind, some)) for some in ((1,), (0, 1), (2, 3), (2,)))
    both = _count(frozen, np.isin(kind, (0, 1)) & (frozen.lex >= 0))
    all_dense = frozen.subset | (frozen.admitted <= frozen.depth)
    all_lexical = frozen.subset | (frozen.lexical <= frozen.depth)
    alone = np.where(all_lexical, alone, np.where(all_dense, frozen.lexical_eligible - both, ABSENT))
    gated = frozen.subset | (passing < frozen.depth) | all_dense
    known = np.where(stage in ("s2", "s3g2"), True, gated) & ((alone >= 0) | (stage in ("s3", "s3r")))
    dense = frozen.admitted_eligible if stage in ("s2", "s3g2") else passing
    rows = dense + (by_rank if stage in ("s3", "s3r") else alone)
    rows = np.maximum(rows, np.minimum(RESERVED, frozen.eligible)) if stage in REFILLED else rows
    return np.where(known, rows, ABSENT).astype(np.int64)


def _count(frozen: Frozen, chosen: Bools) -> Ints:
    return np.bincount(frozen.query[chosen], minlength=len(frozen.query_ids))
