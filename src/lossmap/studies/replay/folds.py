"""The folds of a replay's queries: whole clusters, dealt out by a hash of their names, so that nothing is drawn."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from lossmap.studies.replay.run import Replayed

FOLDS = 5

Ints = NDArray[np.int64]


def dealt(found: Replayed, count: int = FOLDS) -> Ints:
    """The fold (Q,) of each query: a meeting is in one fold, and folds differ by one cluster at most.

    Clusters are dealt in the order of the SHA-256 of their names; the same task has the same folds under every model.
    """
    clusters = found.frozen.clusters
    named = sorted(set(clusters), key=lambda name: (hashlib.sha256(name.encode()).digest(), name))
    fold = {name: place % count for place, name in enumerate(named)}
    return np.array([fold[name] for name in clusters], np.int64)
