"""A trained torch model as an ONNX file, held against its source."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from tokenizers import Tokenizer

from lossmap.encode import cross
from lossmap.errors import LossmapError
from lossmap.studies import tune

if TYPE_CHECKING:
    import torch

OPSET = 17
PARITY = 1e-4
NAMES = ["input_ids", "attention_mask", "token_type_ids"]
EXAMPLE = [("one", "a passage"), ("another question", "and its passage")]


def write(model: torch.nn.Module, tokenizer: Tokenizer, length: int, path: Path) -> None:
    """fp32, eager attention, axes of any size; one output, the logit of each pair."""
    import torch

    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, *arrays: torch.Tensor) -> torch.Tensor:
            return self.inner(**dict(zip(NAMES, arrays, strict=True))).logits[:, 0]

    arrays = cross.feed(cross.paired(tokenizer, length), EXAMPLE)
    axes = {**{name: {0: "pairs", 1: "pieces"} for name in NAMES}, "logits": {0: "pairs"}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Logits().eval(), tuple(torch.from_numpy(arrays[name]) for name in NAMES), str(path),
            input_names=NAMES, output_names=["logits"], dynamic_axes=axes, opset_version=OPSET, dynamo=False,
        )  # fmt: skip


def parity(model: torch.nn.Module, folder: Path, length: int, pairs: Sequence[cross.Pair]) -> float:
    """Largest difference of the file in ``folder`` from ``model`` over ``pairs``; raises above PARITY."""
    tokenizer = folder / "tokenizer.json"
    ours = cross.CrossEncoder(folder / "model.onnx", tokenizer, length, threads=1).scores(pairs)
    theirs = tune.scores(model, Tokenizer.from_file(str(tokenizer)), pairs, length)
    worst = float(np.abs(ours - theirs).max())
    if not worst <= PARITY:
        raise LossmapError(
            "an exported model is not the one that was trained", where=folder, observed=worst,
            expected=f"at most {PARITY}", next_command="./run hub, then train again",
        )  # fmt: skip
    return worst
