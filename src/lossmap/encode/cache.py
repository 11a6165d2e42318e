"""A content-addressed vector cache: each distinct text is encoded once for every stage, scale and checkout.

One folder a (weights, tokenizer, window, pooling, prompt): ``keys.bin`` holds 32-byte text hashes, ``vectors.f32`` the
rows. Vectors are appended before their keys, so that an interrupted run leaves at most rows without a name, which the
next writer cuts off. A text that a shorter window leaves whole has the vector that the registry's window gave it, bit
for bit, so that two windows differ in the texts that one of them cuts and in nothing else.
"""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from lossmap import canon, progress, settings
from lossmap.encode import models
from lossmap.encode.encoder import BATCH, Encoder
from lossmap.encode.models import Model

KEY = 32
FLUSH = 32 * BATCH


class VectorCache:
    """Rows of one model and prompt, found by the hash of their text."""

    def __init__(self, model: Model, prompt: str, folder: Path | None = None) -> None:
        identity = {**model.provenance(), "prompts": prompt, "note": "", "licence": "", "name": ""}
        self.folder = folder or settings.load().cache / "vectors" / f"{model.name}-{canon.digest(identity)[:16]}"
        self.dimension = model.dimension
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


def text_key(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def encode_distinct(model: Model, texts: Sequence[str], prompt: str) -> tuple[np.ndarray, int]:
    """float32 (n, dimension) for ``n`` distinct texts, and how many of them had to be encoded now."""
    cache = VectorCache(model, prompt)
    keys = [text_key(text) for text in texts]
    with cache.writing():
        known = cache.positions()
        missing = [i for i, key in enumerate(keys) if key not in known]
        encoded = _complete(cache, model, texts, keys, missing, prompt) if missing else 0
        known = cache.positions()
        return cache.rows([known[key] for key in keys]), encoded


def _complete(
    cache: VectorCache, model: Model, texts: Sequence[str], keys: list[bytes], missing: list[int], prompt: str
) -> int:
    """Fill in the texts at ``missing``; how many had to be encoded.

    What a shorter window than the registry's leaves whole is taken from that one's cache, encoded there first where it
    is new: which of two windows came first then decides nothing, where encoding twice would move the last bits.
    """
    encoder, longest, encoded = Encoder(model), models.get(model.name), 0
    if model.window < longest.window:
        uncut = encoder.pieces([texts[i] for i in missing], prompt) <= model.window
        whole = [i for i, fits in zip(missing, uncut.tolist(), strict=True) if fits]
        vectors, encoded = encode_distinct(longest, [texts[i] for i in whole], prompt)
        cache.append([keys[i] for i in whole], vectors)
        missing = [i for i, fits in zip(missing, uncut.tolist(), strict=True) if not fits]
    _fill(cache, encoder, [texts[i] for i in missing], [keys[i] for i in missing], prompt)
    return encoded + len(missing)


def _fill(cache: VectorCache, encoder: Encoder, texts: list[str], keys: list[bytes], prompt: str) -> None:
    pending_keys: list[bytes] = []
    pending: list[np.ndarray] = []
    bar = progress.bar(None, f"encode {encoder.model.name}", len(texts), "texts")
    for positions, vectors in encoder.batches(texts, prompt):
        pending_keys += [keys[i] for i in positions]
        pending.append(vectors)
        bar.update(len(positions))
        if len(pending_keys) >= FLUSH:
            cache.append(pending_keys, np.concatenate(pending))
            pending_keys, pending = [], []
    if pending_keys:
        cache.append(pending_keys, np.concatenate(pending))
    bar.close()
