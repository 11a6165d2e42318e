"""The stages of a recall by plain code over the whole lists of one query: what the frozen orders are held against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RANK_CONSTANT = 60


@dataclass(frozen=True)
class Whole:
    """``cosine`` by row, ``listed`` the lexical list (rows), ``eligible`` rows or None for all."""

    cosine: Sequence[np.float32]
    listed: Sequence[int]
    eligible: set[int] | None
    floor: np.float32
    gate: float

    def eligible_only(self, rows: Sequence[int]) -> list[int]:
        return [row for row in rows if self.eligible is None or row in self.eligible]

    @property
    def dense(self) -> list[int]:
        return sorted(range(len(self.cosine)), key=lambda row: (-self.cosine[row], row))

    def fused(self, weight: float, floor: bool = True) -> dict[int, float]:
        """Row to score, best first."""
        votes: dict[int, float] = {}
        for rank, row in enumerate(self.dense):
            if not floor or self.cosine[row] >= self.floor:
                votes[row] = 1 / (RANK_CONSTANT + rank + 1)
        for rank, row in enumerate(self.listed):
            vote = weight / (RANK_CONSTANT + rank + 1) if weight else 0.0
            votes[row] = votes[row] + vote if row in votes else vote
        return dict(sorted(votes.items(), key=lambda item: -item[1]))

    def gated(self, weight: float, rank_cut: bool = True) -> list[int]:
        kept = []
        for row, score in self.fused(weight).items():
            if self.cosine[row] >= self.floor:
                passes = self.cosine[row] >= np.float32(self.gate)
            else:
                passes = not rank_cut or score >= 3 * self.gate / (RANK_CONSTANT + 1)
            kept += [row] if passes else []
        return kept

    def refilled(self, rows: list[int]) -> list[int]:
        reserved = self.eligible_only(self.dense)[:10]
        out = self.eligible_only(rows)
        for row in reserved:
            if len(out) < len(reserved) and row not in out:
                out.append(row)
        return out

    def stage(self, name: str, weight: float = 1.0) -> list[int]:
        if name in ("s0", "s1"):
            rows = [row for row in self.dense if name == "s0" or self.cosine[row] >= self.floor]
        elif name in ("s2", "s2nf", "s3g2"):
            rows = list(self.fused(weight, floor=name != "s2nf"))
        else:
            rows = self.gated(weight, rank_cut=name != "s3g1")
        return self.refilled(rows) if name in ("s3r", "s3g1", "s3g2") else self.eligible_only(rows)
