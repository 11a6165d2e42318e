"""Sentence vectors by ONNX Runtime: fp32, pooled and L2-normalised as sentence-transformers does it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import onnxruntime
from tokenizers import Encoding, Tokenizer

from lossmap.encode.models import Model

BATCH = 64
COUNTED = 1_024


def _mean(hidden: np.ndarray, mask: np.ndarray) -> np.ndarray:
    weights = mask[:, :, None].astype(np.float32)
    return (hidden * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-9)


def _cls(hidden: np.ndarray, mask: np.ndarray) -> np.ndarray:
    return hidden[:, 0]


POOLING: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {"mean": _mean, "cls": _cls}


class Encoder:
    """Texts (n) to float32 unit vectors (n, dimension); texts beyond the model's window are cut there."""

    def __init__(self, model: Model, threads: int | None = None) -> None:
        weights, tokenizer = model.files()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or os.cpu_count() or 1
        self.model = model
        self._session = onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])
        self._inputs = {i.name for i in self._session.get_inputs()}
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        # The published file ships truncation 128 and fixed padding 128: both belong to the caller.
        self._tokenizer.enable_truncation(model.window)
        self._tokenizer.enable_padding(pad_id=0, pad_token="[PAD]")
        self._uncut = Tokenizer.from_file(str(tokenizer))
        self._uncut.no_truncation()
        self._uncut.no_padding()
        self._pool = POOLING[model.pooling]

    def batches(self, texts: Sequence[str], prompt: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(positions, vectors) per batch, shortest texts first: padding is the larger half of the work otherwise."""
        order = np.argsort([len(text) for text in texts], kind="stable")
        for begin in range(0, len(texts), BATCH):
            positions = order[begin : begin + BATCH]
            yield positions, self._encode([prompt + texts[i].strip() for i in positions])

    def encode(self, texts: Sequence[str], prompt: str = "") -> np.ndarray:
        out = np.empty((len(texts), self.model.dimension), np.float32)
        for positions, vectors in self.batches(texts, prompt):
            out[positions] = vectors
        return out

    def pieces(self, texts: Sequence[str], prompt: str = "") -> np.ndarray:
        """int64 (n): word-pieces of each text with prompt and special pieces, before the window cuts it."""
        out = np.empty(len(texts), np.int64)
        for begin in range(0, len(texts), COUNTED):
            some = [prompt + text.strip() for text in texts[begin : begin + COUNTED]]
            out[begin : begin + COUNTED] = [len(e.ids) for e in self._uncut.encode_batch(some)]
        return out

    def _encode(self, texts: list[str]) -> np.ndarray:
        encodings: list[Encoding] = self._tokenizer.encode_batch(texts)
        ids = np.array([e.ids for e in encodings], np.int64)
        mask = np.array([e.attention_mask for e in encodings], np.int64)
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = self._session.run(None, {k: v for k, v in feed.items() if k in self._inputs})[0]
        pooled = self._pool(hidden, mask)
        return (pooled / np.maximum(np.linalg.norm(pooled, axis=1, keepdims=True), 1e-12)).astype(np.float32)
