"""Which vector a chunk brings into the HNSW graph: its own, none where another chunk has the same, or one beside it.

A third of the chunk texts are copies ("Yeah ."), their vectors coincide, and a part of the graph cannot be reached from
the rest (spec/engine). Two cures: only distinct vectors enter and a hit stands for all of its copies, or each vector
moves by a little, so that no two coincide.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lossmap.index.vectors import Vectors

JITTER = 1e-3
"""Length of the displacement, against vectors of length 1."""

Carrier = Callable[[int], list[float] | None]


def _own(passages: Vectors) -> Carrier:
    return lambda i: np.asarray(passages.distinct[passages.inverse[i]]).tolist()


def _distinct(passages: Vectors) -> Carrier:
    first = set(np.unique(passages.inverse, return_index=True)[1].tolist())
    own = _own(passages)
    return lambda i: own(i) if i in first else None


def _jittered(passages: Vectors) -> Carrier:
    def moved(i: int) -> list[float]:
        step = np.random.default_rng(i).normal(size=passages.distinct.shape[1])
        vector = passages.distinct[passages.inverse[i]] + JITTER * step / np.linalg.norm(step)
        return (vector / np.linalg.norm(vector)).astype(np.float32).tolist()

    return moved


CARRIERS: dict[str, Callable[[Vectors], Carrier]] = {"own": _own, "distinct": _distinct, "jittered": _jittered}
"""Row number to its vector in the graph, None for none."""
