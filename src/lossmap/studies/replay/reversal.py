"""When fusion puts an irrelevant row above a relevant one that the dense order had above it (spec/replay 6.2).

With V and L the reciprocal-rank votes of the two arms (0 for a row that is not admitted, or not on the lexical list), g
relevant and b irrelevant below it in the dense order, a fusion at weight w must reverse them iff
w (L_b - L_g) > V_g - V_b. What it must do is taken from the ranks of the two rows alone; what it did, from the order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lossmap.errors import LossmapError
from lossmap.judge.decompose import share
from lossmap.layout import Layout
from lossmap.memory import frozen
from lossmap.memory.frozen import ABSENT, Bools, Floats, Frozen, Ints, K, Rows
from lossmap.studies.replay import run
from lossmap.studies.replay.columns import POOLED, Row
from lossmap.studies.replay.run import Replayed

WEIGHTS = (0.1, 0.5, 1.0)
DEPTH = 100
"""b is among this many first rows of the fused list; g is any eligible relevant row that is stored. Complete: every
reversal that the first hundred rows show is a pair of these, however deep g is."""
BAND = 1e-12
"""Where the two sides differ by no more, the total order decides and rounding may."""
BLOCK = 20_000
"""Relevant rows at a time: 16 MB a column."""
KINDS = ("lexical_only", "boosted", "gold_unvoted", "gold_voted")


@dataclass(frozen=True)
class Pairs:
    """n pairs (n,): ``margin`` w (L_b - L_g) - (V_g - V_b), ``reversed`` b stands before g in the fused order,
    ``alone`` b is on the lexical list only, ``voted`` g has a lexical vote."""

    margin: Floats
    reversed: Bools
    alone: Bools
    voted: Bools


def study(at: Layout) -> dict[str, Any]:
    """reversal.json: ``rows``, one a model, task and weight. ``ties`` are pairs inside the band, ``tied_reversed``
    those of them that the order reversed; ``disagreements`` outside the band are 0, or this raises LossmapError. Inside
    it ``predicted`` is a matter of rounding too, so that it may differ from ``observed`` by a few ties.

    Counts by kind begin with its name: b is ``lexical_only`` or a dense row that was ``boosted``; g had a lexical vote
    (``gold_voted``) or none (``gold_unvoted``).
    """
    rows = [_row(each, weight) for each in run.replayed(at) for weight in WEIGHTS]
    return {"rows": rows, "weights": list(WEIGHTS), "depth": DEPTH, "band": BAND}


def _row(found: Replayed, weight: float) -> Row:
    head = {**run.head(found), "mean": POOLED, "queries": len(found.frozen.query_ids), "weight": weight}
    total: dict[str, int] = {}
    for pairs in compared(found.frozen, weight):
        _require_agreement(found, weight, pairs)
        for name, count in counted(pairs).items():
            total[name] = total.get(name, 0) + count
    return {**head, **total, "reversed_share": share(total["observed"], total["pairs"])}


def compared(found: Frozen, weight: float) -> Iterator[Pairs]:
    """The pairs of all queries, BLOCK relevant rows at a time; one empty block where there are no relevant rows."""
    top = frozen.order(found, "s2", weight, DEPTH)
    place = np.full(len(found.row), DEPTH)
    query, rank = np.nonzero(top != ABSENT)
    place[top[query, rank]] = rank
    dense = np.where(found.admitted_row, _votes(found.dense), 0.0)
    lexical = _votes(found.lex)
    gold = np.flatnonzero(found.label & (found.dense_eligible >= 0))
    for low in range(0, max(len(gold), 1), BLOCK):
        g, b = _below(found, top, gold[low : low + BLOCK])
        margin = weight * (lexical[b] - lexical[g]) - (dense[g] - dense[b])
        yield Pairs(margin, place[b] < place[g], dense[b] == 0, lexical[g] > 0)


def _votes(ranks: Rows) -> Floats:
    """1 / (K + rank + 1) of 0-based ranks; 0 for ABSENT."""
    return np.where(ranks >= 0, 1.0 / (K + 1.0 + ranks), 0.0)


def _below(found: Frozen, top: Ints, gold: Ints) -> tuple[Ints, Ints]:
    """Positions (n,) of g and b: each of ``gold`` with the irrelevant rows of ``top`` that are densely below it."""
    rivals = top[found.query[gold]]
    below = (rivals != ABSENT) & ~found.label[rivals]
    below &= found.dense_eligible[rivals] > found.dense_eligible[gold][:, None]
    which, column = np.nonzero(below)
    return gold[which], rivals[which, column]


def _require_agreement(found: Replayed, weight: float, pairs: Pairs) -> None:
    wrong = np.flatnonzero(((pairs.margin > 0) != pairs.reversed) & (np.abs(pairs.margin) > BAND))
    if len(wrong):
        raise LossmapError(
            "a fused order is not the one that its votes ask for",
            where=f"{found.model}, {found.task}, weight {weight:g}",
            observed=f"{len(wrong)} pairs of {len(pairs.margin)}, the first by {pairs.margin[wrong[0]]:.3g}",
            expected=f"none beyond {BAND}",
            next_command=frozen.REMAKE,
        )


def counted(pairs: Pairs) -> dict[str, int]:
    """Counts over all pairs, and over those of each kind."""
    predicted, tied = pairs.margin > 0, np.abs(pairs.margin) <= BAND
    marks = {
        "pairs": np.ones(len(tied), bool),
        "predicted": predicted,
        "observed": pairs.reversed,
        "both": predicted & pairs.reversed,
        "ties": tied,
        "tied_reversed": tied & pairs.reversed,
        "disagreements": (predicted != pairs.reversed) & ~tied,
    }
    kinds = dict(zip(KINDS, (pairs.alone, ~pairs.alone, ~pairs.voted, pairs.voted)))
    whole = {name: int(mark.sum()) for name, mark in marks.items()}
    split = {f"{kind}_{name}": int((marks[name] & of).sum()) for kind, of in kinds.items() for name in list(marks)[:5]}
    return {**whole, **split}
