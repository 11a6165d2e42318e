"""Rows of floats found by a hash of what they were computed from: once for every stage, scale and checkout.

One folder a store: ``keys.bin`` holds 32-byte hashes, ``vectors.f32`` the rows. Rows are appended before their keys, so
that an interrupted run leaves at most rows without a name, which the next writer cuts off; and in slices, so that it
keeps what it did.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from lossmap import progress

KEY = 32
FLUSH = 2_048


class Store:
    """float32 rows (``dimension``) by key, in a folder that every checkout may share."""

    def __init__(self, folder: Path, dimension: int) -> None:
        self.folder = folder
        self.dimension = dimension
        self.folder.mkdir(parents=True, exist_ok=True)
        self._keys, self._vectors = self.folder / "keys.bin", self.folder / "vectors.f32"
        for path in (self._keys, self._vectors):
            path.touch()

    def positions(self) -> dict[bytes, int]:
        raw = self._keys.read_bytes()
        return {raw[i : i + KEY]: i // KEY for i in range(0, len(raw) - KEY + 1, KEY)}

    def rows(self, positions: Sequence[int]) -> np.ndarray:
        """float32 (n, dimension) of the rows at ``positions``."""
        if not len(positions):
            return np.empty((0, self.dimension), np.float32)
        table = np.memmap(self._vectors, np.float32, "r").reshape(-1, self.dimension)
        return np.array(table[np.asarray(positions)])

    @contextmanager
    def writing(self) -> Iterator[None]:
        """The only writer; leftovers of a killed one are cut off first."""
        with open(self.folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            whole = self._keys.stat().st_size // KEY
            for path, width in ((self._keys, KEY), (self._vectors, 4 * self.dimension)):
                whole = min(whole, path.stat().st_size // width)
            for path, width in ((self._keys, KEY), (self._vectors, 4 * self.dimension)):
                with open(path, "r+b") as handle:
                    handle.truncate(whole * width)
            yield

    def append(self, keys: Sequence[bytes], vectors: np.ndarray) -> None:
        with open(self._vectors, "ab") as handle:
            handle.write(np.ascontiguousarray(vectors, np.float32).tobytes())
        with open(self._keys, "ab") as handle:
            handle.write(b"".join(keys))

    def fill(
        self, keys: Sequence[bytes], batches: Iterable[tuple[np.ndarray, np.ndarray]], what: str, unit: str
    ) -> None:
        """Append the rows of ``batches``, pairs of positions in ``keys`` and their rows, a slice at a time."""
        pending_keys: list[bytes] = []
        pending: list[np.ndarray] = []
        bar = progress.bar(None, what, len(keys), unit)
        for positions, vectors in batches:
            pending_keys += [keys[i] for i in positions]
            pending.append(vectors)
            bar.update(len(positions))
            if len(pending_keys) >= FLUSH:
                self.append(pending_keys, np.concatenate(pending))
                pending_keys, pending = [], []
        if pending_keys:
            self.append(pending_keys, np.concatenate(pending))
        bar.close()
