"""Do two sets of judgements over the same queries say the same? QMSum's spans beside ExplainMeetSum's evidence.

A third corpus can adjudicate between two others only as far as its own judgements are independent and still agree.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from lossmap import transcript
from lossmap.judge import intervals, measures
from lossmap.layout import Layout
from lossmap.studies import compare

Turns = dict[str, set[int]]
"""Query id to gold turn indices of its meeting."""


@dataclass(frozen=True)
class Pair:
    """One question judged twice: ids in the first and the second corpus, its meeting, its number of turns."""

    first: str
    second: str
    meeting: str
    turns: int


def gold_turns(at: Layout, key: str) -> Turns:
    found: defaultdict[str, set[int]] = defaultdict(set)
    for span in transcript.read_gold(at.corpus(key)):
        found[span.query_id].update(range(span.first, span.last + 1))
    return dict(found)


def pairs(at: Layout, first: str, second: str) -> list[Pair]:
    """Queries of both corpora with the same meeting and the same words; a text asked twice of a meeting is left out."""
    sizes = {m.meeting_id: len(m.turns) for m in transcript.read_meetings(at.corpus(first))}
    index: defaultdict[tuple[str, str], list[list[str]]] = defaultdict(lambda: [[], []])
    for side, key in enumerate((first, second)):
        for query in transcript.read_queries(at.corpus(key)):
            index[_meeting(query.query_id), _plain(query.text)][side].append(query.query_id)
    return [
        Pair(ours[0], theirs[0], meeting, sizes[meeting])
        for (meeting, _), (ours, theirs) in sorted(index.items())
        if len(ours) == len(theirs) == 1
    ]


def _meeting(query_id: str) -> str:
    return query_id.split(":")[1]


def _plain(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum())


def kappa(first: set[int], second: set[int], turns: int) -> float:
    """Cohen's kappa of two selections out of ``turns`` turns; 1 where both select the same, 0 at chance."""
    a, b, both = len(first) / turns, len(second) / turns, len(first & second) / turns
    observed = both + (1 - a - b + both)
    expected = a * b + (1 - a) * (1 - b)
    return 1.0 if expected == 1 else (observed - expected) / (1 - expected)


def study(at: Layout, first: str, second: str, arm_of: Mapping[str, Any]) -> dict[str, Any] | None:
    """Overlap of the two golds, and rank correlation of the nDCG@10 of one arm; ``arm_of``: its folder by corpus.

    None where no question has gold in both.
    """
    matched = pairs(at, first, second)
    golds = gold_turns(at, first), gold_turns(at, second)
    rows = [(golds[0].get(p.first, set()), golds[1].get(p.second, set()), p) for p in matched]
    judged = [(a, b, p) for a, b, p in rows if a and b]
    if not judged:
        return None
    inside = np.array([[len(a & b) / len(b), len(a & b) / len(a), kappa(a, b, p.turns)] for a, b, p in judged])
    estimate = intervals.means_with_intervals(inside, [p.meeting for _, _, p in judged])
    scores = _scores(arm_of[first], arm_of[second], [p for _, _, p in judged])
    names = ("second_inside_first", "first_inside_second", "kappa")
    return {
        "first": first,
        "second": second,
        "tier": transcript.worst(transcript.read_card(at.corpus(key))["tier"] for key in (first, second)),
        "queries": len(judged),
        "unmatched_first": len(golds[0]) - len(matched),
        "second_turns": sum(len(b) for _, b, _ in judged),
        "second_turns_inside": sum(len(a & b) for a, b, _ in judged),
        "queries_with_none_inside": sum(not a & b for a, b, _ in judged),
        **{name: {"mean": estimate.mean[i], **estimate.interval(i)} for i, name in enumerate(names)},
        "rank_correlation": {**_correlation(scores), "measure": "nDCG@10"},
    }


def _correlation(scores: np.ndarray) -> dict[str, float | None]:
    """Of two columns; None where one of them is constant, which has no ranks."""
    if (scores == scores[0]).all(axis=0).any():
        return {"tau_b": None, "spearman": None}
    return {"tau_b": stats.kendalltau(*scores.T).statistic, "spearman": stats.spearmanr(*scores.T).statistic}


def _scores(first: Any, second: Any, matched: list[Pair]) -> np.ndarray:
    """float64 (pairs, 2): nDCG@10 of the same question under both judgements; unjudged ones score 0."""
    column = measures.NAMES.index("nDCG@10")
    tables = []
    for folder in (first, second):
        arm = compare.read_arm(folder)
        tables.append(dict(zip(arm.query_ids, arm.values[:, column].tolist(), strict=True)))
    return np.array([[tables[0].get(p.first, 0.0), tables[1].get(p.second, 0.0)] for p in matched])
