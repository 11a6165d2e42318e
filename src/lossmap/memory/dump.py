"""The row-keyed dump of a replay: of sampled rows both scores, how unusual they are, and the rank at every stage.

The null of a query is its own sample of eligible rows that nobody judged relevant, each weighted by one over the chance
with which it was drawn; unjudged rows are taken as irrelevant. A row of the null is held against the others, not
against itself: one that stands for a thousand would else never be among the first thousand. The lexical side holds the
rows that are absent from the lexical list as one atom below all that are present (spec/replay 6.1, 6.3).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.memory import frozen
from lossmap.memory.frozen import ABSENT, RESERVED, Bools, Floats, Frozen, Ints

RANKED = 100
"""To this rank the kept rows determine the fused and the gated order; a row below it has no rank there."""
HEADER = (
    "task", "subtask", "qid", "row", "y", "chance", "v", "r_dense", "r_dense_elig", "admitted", "censored", "p_v",
    "l", "r_lex", "lex_present", "p_l", "r_s1", "r_s2", "r_s3", "gate_branch", "survived", "reserved",
)  # fmt: skip


def write(path: Path, found: Frozen, task: str) -> None:
    """Write the rows whose ``chance`` is above 0 as gzipped CSV. Raises where lexical scores do not fall with rank.

    An empty cell is a rank, score or probability that a row does not have: a cosine below the floor is ``censored``,
    not absent, and a row off the lexical list, or on one that came from LIKE, has no ``p_l``.
    """
    require_falling(found)
    canon.write_csv_gz(path, HEADER, _rows(found, task))


def require_falling(found: Frozen) -> None:
    """Raise unless on every lexical list a smaller rank has no smaller score."""
    listed = np.flatnonzero((found.lex >= 0) & ~np.isnan(found.bm25))
    listed = listed[np.lexsort((found.lex[listed], found.query[listed]))]
    same = found.query[listed][1:] == found.query[listed][:-1]
    wrong = np.flatnonzero(same & (np.diff(found.bm25[listed]) > 0))
    if len(wrong):
        row = listed[wrong[0] + 1]
        raise LossmapError(
            "lexical scores rise with the rank",
            where=found.query_ids[found.query[row]],
            observed=f"rank {found.lex[row]}: {found.bm25[row]}",
            expected="minus SQLite's bm25, which falls",
            next_command=frozen.REMAKE,
        )


def null(found: Frozen) -> Bools:
    """(R,): the rows that stand for irrelevant ones: sampled, eligible, and not judged relevant."""
    return (found.chance > 0) & (found.dense_eligible >= 0) & ~found.label


def exceedance(score: Floats, weight: Floats) -> Floats:
    """p (n,) of each ``score``: (1 + weight of the others at or above it) / (1 + weight of all others), never 0.

    ``weight`` (n,): how many references a row stands for; 0 for a row that is none.
    """
    order = np.argsort(score, kind="stable")
    above = np.cumsum(weight[order][::-1])[::-1]
    place = np.searchsorted(score[order], score, side="left")
    return np.asarray((1 + above[place] - weight) / (1 + above[0] - weight))


def probabilities(found: Frozen) -> tuple[Floats, Floats]:
    """p_v and p_l (R,) against the null of each row's query; p_l is nan where a row has no lexical score."""
    lexical = np.where(np.isnan(found.bm25), -np.inf, found.bm25)
    weight = np.divide(1.0, found.chance, out=np.zeros(len(found.chance)), where=null(found))
    p_v, p_l = np.empty(len(found.row)), np.empty(len(found.row))
    for begin, end in zip(found.offsets[:-1].tolist(), found.offsets[1:].tolist(), strict=True):
        part = slice(begin, end)
        for scores, p in ((found.cosine.astype(np.float64), p_v), (lexical, p_l)):
            if begin < end:
                p[part] = exceedance(scores[part], weight[part])
    return p_v, np.where(np.isnan(found.bm25), np.nan, p_l)


def ranks(found: Frozen, stage: str) -> Ints:
    """(R,): the 0-based rank of each row on the list of a stage; ABSENT below RANKED and off the list."""
    top = frozen.order(found, stage, depth=RANKED)
    out = np.full(len(found.row), ABSENT, np.int64)
    query, place = np.nonzero(top != ABSENT)
    out[top[query, place]] = place
    return out


def _rows(found: Frozen, task: str) -> Iterator[Sequence[object]]:
    chosen = np.flatnonzero(found.chance > 0)
    admitted, branch = found.admitted_row, frozen.branch(found)
    p_v, p_l = probabilities(found)
    reserved = (found.dense_eligible >= 0) & (found.dense_eligible < RESERVED)
    first = np.where(admitted, found.dense_eligible, ABSENT)
    numbers = (
        found.row, found.label, found.chance, found.cosine, found.dense, found.dense_eligible, admitted, ~admitted,
        p_v, found.bm25, found.lex, found.lex >= 0, p_l, first, ranks(found, "s2"), ranks(found, "s3"), branch,
        np.isin(branch, (1, 2)), reserved,
    )  # fmt: skip
    columns = [_cells(column[chosen]) for column in numbers]
    for query, *cells in zip(found.query[chosen].tolist(), *columns, strict=True):
        yield (task, found.subtasks[query], found.query_ids[query], *cells)


def _cells(column: NDArray[Any]) -> list[object]:
    """Values as text has them: flags as 0 and 1, floats in full, nothing for nan and for ABSENT."""
    if column.dtype == bool:
        return column.astype(int).tolist()  # type: ignore[no-any-return]
    if column.dtype.kind == "f":
        return ["" if value != value else value for value in column.tolist()]
    return ["" if value == ABSENT else value for value in column.tolist()]
