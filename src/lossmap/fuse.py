"""Fusion of ranked lists, on plain lists: no engine, no corpus."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

Item = TypeVar("Item", bound=Hashable)
Term = Callable[[float, int, int], float]
"""(weight, rank constant, rank from 1) to the share of one leg."""


def reciprocal(weight: float, rank_constant: int, rank: int) -> float:
    """w / (K + r), r from 1 (Cormack, Clarke and Buettcher 2009)."""
    return weight / (rank_constant + rank)


def rrf(
    legs: Sequence[Sequence[Item]],
    rank_constant: int,
    weights: Sequence[float] | None = None,
    term: Term = reciprocal,
    add: Callable[[float, float], float] = float.__add__,
) -> dict[Item, float]:
    """Reciprocal rank fusion: item to the sum of its legs' terms; keys in order of first appearance, leg by leg.

    ``legs`` hold each item at most once, best first. ``term`` and ``add`` carry an engine's own arithmetic where a
    result must be its equal to the last bit.
    """
    fused: dict[Item, float] = {}
    for weight, leg in zip(weights or [1.0] * len(legs), legs, strict=True):
        for rank, item in enumerate(leg, 1):
            share = term(weight, rank_constant, rank)
            fused[item] = add(fused[item], share) if item in fused else share
    return fused


def ranked(scores: Mapping[Item, float], key: Callable[[Item], object]) -> list[Item]:
    """Items by descending score, ties by ``key``: a total order when ``key`` tells any two items apart."""
    return sorted(scores, key=lambda item: (-scores[item], key(item)))
