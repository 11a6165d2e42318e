"""Scores of (query, passage) pairs by a cross-encoder: ONNX Runtime, fp32, one logit a pair."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Encoding, Tokenizer

BATCH = 64

Pair = tuple[str, str]


def paired(tokenizer: Tokenizer, length: int) -> Tokenizer:
    """A copy that cuts a pair at ``length`` word-pieces, taking from its longer side, and pads to its batch."""
    own = Tokenizer.from_str(tokenizer.to_str())
    own.enable_truncation(length, strategy="longest_first")
    own.enable_padding(pad_id=0, pad_token="[PAD]")
    return own


def feed(tokenizer: Tokenizer, pairs: Sequence[Pair]) -> dict[str, np.ndarray]:
    """The model's int64 inputs (n, longest of the batch)."""
    found: list[Encoding] = tokenizer.encode_batch(list(pairs))
    return {
        "input_ids": np.array([e.ids for e in found], np.int64),
        "attention_mask": np.array([e.attention_mask for e in found], np.int64),
        "token_type_ids": np.array([e.type_ids for e in found], np.int64),
    }


def by_length(pairs: Sequence[Pair], batch: int = BATCH) -> Iterator[np.ndarray]:
    """Positions of each batch, shortest pairs first over all queries: else padding is half of the work."""
    order = np.argsort([len(query) + len(text) for query, text in pairs], kind="stable")
    for begin in range(0, len(pairs), batch):
        yield order[begin : begin + batch]


class CrossEncoder:
    """Pairs (n) to float32 logits (n,).

    A score moves near 1e-6 with what else is in its batch, as any fp32 product does. Nothing is rounded: a pair is
    scored once and kept (encode/pairs), so that every stage reads the same bits.
    """

    def __init__(self, weights: Path, tokenizer: Path, length: int, threads: int | None = None) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or os.cpu_count() or 1
        self._session = onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])
        self._tokenizer = paired(Tokenizer.from_file(str(tokenizer)), length)

    def batches(self, pairs: Sequence[Pair]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(positions, logits) a batch, shortest first."""
        for positions in by_length(pairs):
            logits = self._session.run(None, feed(self._tokenizer, [pairs[i] for i in positions]))[0]
            yield positions, logits.reshape(len(positions))

    def scores(self, pairs: Sequence[Pair]) -> np.ndarray:
        out = np.empty(len(pairs), np.float32)
        for positions, found in self.batches(pairs):
            out[positions] = found
        return out
