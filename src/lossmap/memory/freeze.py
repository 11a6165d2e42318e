"""Freezing: the scores of one model over one task, query by query cut down to the rows of a replay (memory/cut).

One number rule for cosines holds here and in the live pipeline: float32(float64(rows) @ float64(query)).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lossmap.errors import LossmapError
from lossmap.index.vectors import Vectors
from lossmap.memory import cut
from lossmap.memory.cut import Asked
from lossmap.memory.groups import Group, Question
from lossmap.memory.kept import FLOOR_FACTOR, REMAKE, Frozen, Ints, Reals
from lossmap.memory.lexical import Lexical
from lossmap.memory.tasks import Task

BATCH = 64
"""Queries of one product: 129,062 rows take 66 MB in float64."""


@dataclass(frozen=True)
class Pool:
    """One stored corpus under one model: ``n`` rows in storing order."""

    name: str
    row_of: Mapping[str, int]
    """Key of a stored document to its row."""
    vectors: Vectors
    floor: np.float32
    gate: float

    @property
    def size(self) -> int:
        return len(self.vectors.inverse)

    def cosines(self, queries: Reals) -> Iterator[Reals]:
        """(n,) float32 for each row of ``queries``. Equal texts tie exactly: each distinct one is scored once."""
        distinct = self.vectors.distinct.astype(np.float64)
        for start in range(0, len(queries), BATCH):
            for cosine in (queries[start : start + BATCH].astype(np.float64) @ distinct.T).astype(np.float32):
                yield cosine[self.vectors.inverse]


def pool(group: Group, kept: Ints, vectors: Vectors, threshold: float) -> Pool:
    """``kept``: the lines of ``group`` that the store holds, by row; ``vectors``: one a line of ``group``."""
    if len(vectors.inverse) != len(group.keys):
        raise LossmapError(
            "vectors of other documents than the group's",
            where=group.name,
            observed=f"{len(vectors.inverse)} vectors",
            expected=f"{len(group.keys)} documents",
            next_command=REMAKE,
        )
    row_of = {group.keys[line]: row for row, line in enumerate(kept.tolist())}
    floor, size = np.float32(threshold * FLOOR_FACTOR), len(kept)
    return Pool(group.name, row_of, vectors.take(kept), floor, cut.pool_gate(size))


def freeze(
    task: Task, lexical: Lexical, vectors: Mapping[str, Vectors], thresholds: Mapping[str, float], queries: Reals
) -> Frozen:
    """The frozen scores of one model over ``task``, queries sorted by id.

    ``vectors``: of each group, one a document of the task, dropped ones included; ``thresholds``: the calibrated
    threshold of each group; ``queries``: float32 (Q, dimension) in the order of ``task.questions``. Below 3 GiB for
    1,576 queries over 129,062 rows of 384 numbers. Raises where the lexical lists are of other texts.
    """
    lexical.require(task)
    found: dict[str, dict[str, Any]] = {}
    for group in task.groups:
        mine = [i for i, question in enumerate(task.questions) if question.group == group.name]
        where = pool(group, lexical.kept[group.name], vectors[group.name], thresholds[group.name])
        allowed = _allowed(task, where, {task.questions[i].scene for i in mine})
        for i, cosine in zip(mine, where.cosines(queries[mine]), strict=True):
            question = task.questions[i]
            asked = _asked(question, where, cosine, lexical, allowed)
            found[question.query_id] = cut.scores(asked, where.floor, where.gate)
    return cut.together(sorted(task.questions, key=lambda question: question.query_id), found)


def _allowed(task: Task, where: Pool, scenes: set[str | None]) -> dict[str | None, Ints | None]:
    """The stored rows of each candidate subset, ascending; all rows (None) for no scene."""
    allowed: dict[str | None, Ints | None] = {None: None}
    for scene in scenes - {None}:
        keys = task.candidates[scene] if scene is not None else frozenset()
        allowed[scene] = np.array(sorted(where.row_of[key] for key in keys if key in where.row_of), np.int64)
    return allowed


def _asked(
    question: Question, where: Pool, cosine: Reals, lexical: Lexical, allowed: Mapping[str | None, Ints | None]
) -> Asked:
    listed, bm25, fallback = lexical.of(question.query_id)
    if len(bm25) and bm25[0] < bm25[-1]:
        raise LossmapError(
            "a lexical list is not best first",
            where=question.query_id,
            observed=f"{bm25[0]} before {bm25[-1]}",
            expected="bm25 as larger is better",
            next_command=REMAKE,
        )
    gold = np.array(sorted(where.row_of[key] for key in question.gold if key in where.row_of), np.int64)
    name, relevant = f"{question.subtask}|{question.query_id}", len(question.gold)
    return Asked(cosine, listed, bm25, fallback, allowed[question.scene], gold, relevant, name)
