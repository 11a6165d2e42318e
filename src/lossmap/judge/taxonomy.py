"""What happened in the top ten between two rankings: who came in, which relevant documents went out, and by whose vote.

The mechanisms are those of seed 004, section 3 (spec/replay 5.4): of two legs, the first has proposed the list so far
and the second votes on it. A document on the second leg alone broke in; one on both was lifted by a vote; one on the
first alone moved up because others left.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lossmap.errors import LossmapError
from lossmap.judge.decompose import BAND, CUT, Bools, Floats, Ints, Judged, Ranking, ndcg, share

MECHANISMS = ("neither", "first_only", "second_only", "both")
KINDS = ("intruders", "relevant_in", "relevant_out")
Membership = Mapping[str, Collection[Any]]
"""Query to the documents that a leg lists."""


@dataclass(frozen=True)
class Moves:
    """Q queries, sorted: ``counts`` (Q, kinds, mechanisms), ``change`` of nDCG@10 (0 within BAND), and whether no
    relevant document left the top ten (``stay``), its relevant documents are the same (``same_relevant``), or all its
    documents are (``same_rows``). ``legs`` are the names of first and second, None where no membership is known.
    """

    query_ids: tuple[str, ...]
    counts: Ints
    change: Floats
    stay: Bools
    same_relevant: Bools
    same_rows: Bools
    legs: tuple[str, ...] | None


def moves(qrels: Judged, before: Ranking, after: Ranking, legs: Mapping[str, Membership] | None = None) -> Moves:
    """Compare the first ten of two rankings. ``legs``: first and second by name, in this order; raises on another
    number."""
    ids = tuple(sorted(qrels))
    first, second = _two(legs) if legs is not None else ({}, {})
    counts = np.zeros((len(ids), len(KINDS), len(MECHANISMS)), np.int64)
    kept = np.zeros((3, len(ids)), bool)
    for i, query_id in enumerate(ids):
        old, new = (set(ranking.get(query_id, ())[:CUT]) for ranking in (before, after))
        gold = {doc for doc, grade in qrels[query_id].items() if grade > 0}
        came, went = new - old, (old - new) & gold
        kept[:, i] = not went, not went and not came & gold, old == new
        on_first, on_second = first.get(query_id, ()), second.get(query_id, ())
        for kind, docs in enumerate((came - gold, came & gold, went)):
            for doc in docs:
                counts[i, kind, (doc in on_first) + 2 * (doc in on_second)] += 1
    change = ndcg(qrels, after) - ndcg(qrels, before)
    change[np.abs(change) <= BAND] = 0.0
    return Moves(ids, counts, change, kept[0], kept[1], kept[2], None if legs is None else tuple(legs))


def _two(legs: Mapping[str, Membership]) -> tuple[Membership, Membership]:
    if len(legs) != 2:
        raise LossmapError(
            "the taxonomy tells two legs apart",
            observed=", ".join(legs) or "no leg",
            expected="the leg that proposed the list, then the leg that votes on it",
            next_command="give the arm two legs in workflow/config/arms.yaml, then ./run results/stage5",
            exit_code=2,
        )
    first, second = (
        {query_id: frozenset(docs) for query_id, docs in membership.items()} for membership in legs.values()
    )
    return first, second


def table(found: Moves, keep: Bools | None = None) -> dict[str, Any]:
    """Counts summed over queries, with shares (None of nothing), and how much of the loss is order alone.

    ``loss``: queries whose nDCG@10 fell and the sum of their falls; then what part of that fell on queries where the
    relevant documents stay in the top ten and only move down (the seed's figure), and on the narrower sets.
    """
    chosen = np.ones(len(found.query_ids), bool) if keep is None else keep
    summed = found.counts[chosen].sum(axis=0)
    kinds = {kind: _kind(summed[place], found.legs is not None) for place, kind in enumerate(KINDS)}
    fall = np.maximum(-found.change[chosen], 0)
    narrower = {"stay": found.stay, "same_relevant": found.same_relevant, "same_rows": found.same_rows}
    return {
        "queries": int(chosen.sum()),
        "legs": None if found.legs is None else list(found.legs),
        **kinds,
        "loss": {
            "queries": int((fall > 0).sum()),
            "total": float(fall.sum()),
            **{name: _part(fall, mask[chosen]) for name, mask in narrower.items()},
        },
    }


def _kind(counts: Ints, known: bool) -> dict[str, Any]:
    """Documents of one kind: how many, by mechanism, and the shares that the seed prints."""
    total = int(counts.sum())
    if not known:
        return {"total": total}
    each = dict(zip(MECHANISMS, counts.tolist()))
    shares = {
        "second_only_share": share(each["second_only"], total),
        "on_first_share": share(each["first_only"] + each["both"], total),
        "with_vote_share": share(each["second_only"] + each["both"], total),
    }
    return {"total": total, **each, **shares}


def _part(fall: Floats, mask: Bools) -> dict[str, Any]:
    inside = np.where(mask, fall, 0)
    return {"queries": int((inside > 0).sum()), "share": share(float(inside.sum()), float(fall.sum()))}
