"""A dozen chunks of three files with vectors of eight numbers: what tests of the index are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from lossmap.index.table import Row
from lossmap.index.vectors import Vectors

DIMENSION = 8
QUICK = (20, 0.05)


def rows(files: int = 3, each: int = 4) -> list[Row]:
    return [
        Row(f"{f:08d}-0000-0000-0000-000000000000", i, "demo", f"m{f}", "Demo", "en", f"Demo m{f}", None, "A", ("A",),
            float(i), i + 1.0, f"text {f} {i}")
        for f in range(files) for i in range(each)
    ]  # fmt: skip


def vectors_of(table: list[Row]) -> Vectors:
    values = np.random.default_rng(0).normal(size=(len(table), DIMENSION)).astype(np.float32)
    return Vectors(values / np.linalg.norm(values, axis=1, keepdims=True), np.arange(len(table), dtype=np.int32))


def key(name: str = "model-a") -> dict[str, Any]:
    return {"encoder": {"name": name, "dimension": DIMENSION}, "chunks_sha256": "x", "graph": True}
