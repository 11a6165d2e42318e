"""A cross-encoder by a plain torch loop: listwise cross-entropy over groups, on one thread, bit for bit on one machine.

torch is imported where it is used: the package works without it, and only training needs it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tokenizers import Tokenizer

from lossmap import progress
from lossmap.encode import cross
from lossmap.errors import LossmapError
from lossmap.studies.groups import Group

if TYPE_CHECKING:
    import torch


SLICE = 12
"""Pairs of one forward pass in training."""


@dataclass(frozen=True)
class Loop:
    """``groups`` of one gold and its negatives make a batch; ``megabatch`` batches are sorted by length together.

    ``rate`` climbs over ``warmup`` steps and falls to 0 at ``steps``; the new layer learns at ``head`` times it.
    ``decay`` binds matrices only; inputs are cut at ``length`` word-pieces.
    """

    steps: int
    groups: int
    megabatch: int
    rate: float
    head: float
    warmup: int
    decay: float
    clip: float
    dropout: float
    length: int
    checkpoints: Sequence[int]
    seed: int


def batches(groups: Sequence[Group], loop: Loop) -> Iterator[list[Group]]:
    """``loop.steps`` batches: groups of like length together, since padding is computed too."""
    rng, size = np.random.default_rng([loop.seed, 7]), loop.groups * loop.megabatch
    for begin in range(0, loop.groups * loop.steps, size):
        some = sorted(groups[begin : min(begin + size, loop.groups * loop.steps)], key=_longest)
        parts = [some[i : i + loop.groups] for i in range(0, len(some), loop.groups)]
        for place in rng.permutation(len(parts)):
            yield parts[place]


def _longest(group: Group) -> int:
    return len(group.query) + max(map(len, group.passages))


def seeded(seed: int) -> None:
    """One thread, deterministic kernels, seeded draws: before the model is made, so that its new layer is the same."""
    import torch

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)


def train(
    model: torch.nn.Module, tokenizer: Tokenizer, groups: Sequence[Group], loop: Loop, check: Callable[[int], None]
) -> list[float]:
    """Loss of every step; ``check(step)`` is called at each checkpoint, with the model in evaluation mode."""
    import torch

    optimiser = torch.optim.AdamW(_parameter_groups(model, loop))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _share(step, loop))
    cutter, losses = cross.paired(tokenizer, loop.length), []
    model.train()
    for step, batch in enumerate(progress.bar(batches(groups, loop), "train", loop.steps, "steps"), 1):
        loss = _loss(model, cutter, batch)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], loop.clip)
        optimiser.step()
        schedule.step()
        losses.append(_finite(loss.item(), step))
        if step in loop.checkpoints:
            model.eval()
            check(step)
            model.train()
    model.eval()
    return losses


def _finite(loss: float, step: int) -> float:
    if not math.isfinite(loss):
        raise LossmapError(
            "the loss is not a number", where=f"step {step}", observed=loss,
            next_command="lower rate in workflow/config/rerankers.yaml",
        )  # fmt: skip
    return loss


def _share(step: int, loop: Loop) -> float:
    if step < loop.warmup:
        return (step + 1) / loop.warmup
    return max(0.0, (loop.steps - step) / max(1, loop.steps - loop.warmup))


def _parameter_groups(model: torch.nn.Module, loop: Loop) -> list[dict[str, Any]]:
    """Four kinds: of the new layer or not, a matrix or not."""
    kinds: dict[tuple[bool, bool], list[Any]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            kinds.setdefault((name.startswith("classifier"), parameter.ndim > 1), []).append(parameter)
    return [
        {"params": found, "lr": loop.rate * (loop.head if new else 1), "weight_decay": loop.decay if matrix else 0.0}
        for (new, matrix), found in sorted(kinds.items())
    ]


def _loss(model: torch.nn.Module, tokenizer: Tokenizer, batch: Sequence[Group]) -> torch.Tensor:
    """Cross-entropy of the gold passage, which stands first, against its own negatives.

    The pairs of a batch pass in slices of like length: passages of one group differ fourfold, and a third of the work
    would be padding.
    """
    import torch

    pairs = [(group.query, passage) for group in batch for passage in group.passages]
    slices = list(cross.by_length(pairs, SLICE))
    found = torch.cat([logits(model, cross.feed(tokenizer, [pairs[i] for i in positions])) for positions in slices])
    back = torch.from_numpy(np.argsort(np.concatenate(slices)))
    return torch.nn.functional.cross_entropy(
        found[back].view(len(batch), -1), torch.zeros(len(batch), dtype=torch.long)
    )


def logits(model: torch.nn.Module, arrays: dict[str, np.ndarray]) -> torch.Tensor:
    """(n,) of one padded batch."""
    import torch

    return model(**{name: torch.from_numpy(array) for name, array in arrays.items()}).logits[:, 0]


def scores(model: torch.nn.Module, tokenizer: Tokenizer, pairs: Sequence[tuple[str, str]], length: int) -> np.ndarray:
    """float32 (n,) of a model in evaluation mode."""
    import torch

    cutter, out = cross.paired(tokenizer, length), np.empty(len(pairs), np.float32)
    with torch.inference_mode():
        for positions in cross.by_length(pairs):
            out[positions] = logits(model, cross.feed(cutter, [pairs[i] for i in positions])).numpy()
    return out
