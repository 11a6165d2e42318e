"""Which checkpoint of a training run is kept: the one that orders held-out lists best."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lossmap.encode.cross import Pair
from lossmap.judge import measures
from lossmap.studies import groups
from lossmap.studies.groups import Pool, Recipe

if TYPE_CHECKING:
    import torch

REPORTED = ("nDCG@10", "RR")
CHOSEN_BY = "nDCG@10"


@dataclass(frozen=True)
class HeldOut:
    """BM25 rows of each held-out query, and the pairs of all lists, in that order."""

    pool: Pool
    pages: list[str]
    query_ids: list[str]
    lists: list[list[int]]
    pairs: list[Pair]

    def quality(self, scores: np.ndarray | None) -> dict[str, float]:
        """Means over the queries with the lists re-ranked by ``scores`` (pairs); None leaves them in their order."""
        run, begin = {}, 0
        for query_id, rows in zip(self.query_ids, self.lists, strict=True):
            own = -np.arange(len(rows)) if scores is None else scores[begin : begin + len(rows)]
            order = np.argsort(-own, kind="stable")
            run[query_id] = [(self.pool.doc_ids[rows[i]], float(own[i])) for i in order]
            begin += len(rows)
        found = measures.score({query_id: self.pool.qrels[query_id] for query_id in self.query_ids}, run)
        return {name: float(found.column(name).mean()) for name in REPORTED}


def held_out(pool: Pool, recipe: Recipe) -> HeldOut:
    pages = groups.held_out(pool, recipe)
    kept = [i for i, page in enumerate(pool.pages) if page in pages]
    lists = [pool.lexical[i] for i in kept]
    pairs = [(pool.queries[i], pool.texts[row]) for i, rows in zip(kept, lists, strict=True) for row in rows]
    return HeldOut(pool, sorted(pages), [pool.query_ids[i] for i in kept], lists, pairs)


class Choice:
    """The best checkpoint so far; the earlier one where two are equal."""

    def __init__(self, model: torch.nn.Module, held: HeldOut, score: Callable[[list[Pair]], np.ndarray]) -> None:
        self._model, self._held, self._score = model, held, score
        self.curve: list[dict[str, float]] = []
        self.best = 0
        self.seconds = 0.0
        self._state: dict[str, Any] = {}

    def check(self, step: int) -> None:
        begun = time.monotonic()
        row = {"step": step, **self._held.quality(self._score(self._held.pairs))}
        if not self.curve or row[CHOSEN_BY] > max(old[CHOSEN_BY] for old in self.curve):
            self.best = step
            self._state = {name: value.clone() for name, value in self._model.state_dict().items()}
        self.curve.append(row)
        self.seconds += time.monotonic() - begun

    def restore(self) -> None:
        self._model.load_state_dict(self._state)
