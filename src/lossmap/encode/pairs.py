"""Scores of (query, passage) pairs by any re-ranker, each distinct pair scored once and kept.

The cache is content-addressed as that of vectors is: one store a (weights, tokenizer, length), keyed by query and text.
It makes scores stable: what a pair got in its first batch it has in every later stage, where scoring it again beside
other pairs would move the last bits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from lossmap import canon, settings
from lossmap.encode import cache, rerankers
from lossmap.encode.cross import CrossEncoder, Pair
from lossmap.encode.rerankers import Reranker
from lossmap.encode.store import Store

BLOCK = 4_096
UNSEEN = ("name", "kind", "licence", "note")


class PairCache(Store):
    """Logits of one cross-encoder, one float a row."""

    def __init__(self, reranker: Reranker, folder: Path | None = None) -> None:
        identity = {key: value for key, value in reranker.provenance().items() if key not in UNSEEN}
        super().__init__(
            folder or settings.load().cache / "pairs" / f"{reranker.name}-{canon.digest(identity)[:16]}", 1
        )


def pair_key(pair: Pair) -> bytes:
    return hashlib.sha256(canon.line(list(pair)).encode()).digest()


def pair_scores(reranker: Reranker, pairs: Sequence[Pair]) -> tuple[np.ndarray, int]:
    """float32 (n,) for ``pairs``, the higher the better, and how many had to be computed now.

    Cross-encoders give logits, a bi-encoder cosines. Raises LossmapError where the weights are absent, even if every
    pair is known: nobody could say what scored it.
    """
    if reranker.kind == rerankers.BI_ENCODER:
        return _cosines(reranker, pairs)
    store, keys = PairCache(reranker), [pair_key(pair) for pair in pairs]
    known, scored = store.positions(), 0
    # What is known is read beside another process that scores: named rows never move.
    if not known.keys() >= set(keys):
        with store.writing():
            known = store.positions()
            missing = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in known}
            batches = _score(reranker, list(missing.values()))
            store.fill(list(missing), batches, f"score {reranker.name}", "pairs")
            known, scored = store.positions(), len(missing)
    return store.rows([known[key] for key in keys])[:, 0], scored


def _score(reranker: Reranker, pairs: Sequence[Pair]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    weights, tokenizer = reranker.files()
    for positions, logits in CrossEncoder(weights, tokenizer, reranker.max_length).batches(pairs):
        yield positions, logits[:, None]


def _cosines(reranker: Reranker, pairs: Sequence[Pair]) -> tuple[np.ndarray, int]:
    """Products of unit vectors, summed in float64 in a fixed order."""
    model, sides, computed = reranker.encoder, [], 0
    for side, prompt in ((0, model.query_prompt), (1, model.passage_prompt)):
        place = {text: i for i, text in enumerate(dict.fromkeys(pair[side] for pair in pairs))}
        vectors, new = cache.encode_distinct(model, list(place), prompt)
        sides.append((vectors.astype(np.float64), np.array([place[pair[side]] for pair in pairs], np.int64)))
        computed += new
    (queries, left), (texts, right) = sides
    out = np.empty(len(pairs), np.float32)
    for begin in range(0, len(pairs), BLOCK):
        some = slice(begin, begin + BLOCK)
        out[some] = (queries[left[some]] * texts[right[some]]).sum(axis=1)
    return out, computed
