"""A content-addressed vector cache: each distinct text is encoded once for every stage, scale and checkout.

One store (encode/store) a (weights, tokenizer, window, pooling, prompt), keyed by text hashes. A text that a shorter
window leaves whole has the vector that the registry's window gave it, bit for bit, so that two windows differ in the
texts that one of them cuts and in nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lossmap import canon, settings
from lossmap.encode import models
from lossmap.encode.encoder import Encoder
from lossmap.encode.models import Model
from lossmap.encode.store import Store


class VectorCache(Store):
    """Rows of one model and prompt, found by the hash of their text."""

    def __init__(self, model: Model, prompt: str, folder: Path | None = None) -> None:
        identity = {**model.provenance(), "prompts": prompt, "note": "", "licence": "", "name": ""}
        folder = folder or settings.load().cache / "vectors" / f"{model.name}-{canon.digest(identity)[:16]}"
        super().__init__(folder, model.dimension)


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
    batches = encoder.batches([texts[i] for i in missing], prompt)
    cache.fill([keys[i] for i in missing], batches, f"encode {model.name}", "texts")
    return encoded + len(missing)
