"""Does a verdict depend on where the relevance ladder stands? Every arm and contrast under every policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from lossmap.errors import LossmapError
from lossmap.judge import intervals, measures, qrels
from lossmap.judge.evaluate import CLASSES
from lossmap.judge.measures import PerQuery
from lossmap.judge.qrels import Coverage, RelevancePolicy

MEASURES = ("nDCG@10", "R@10", "RR")
HIGHS = (0.25, 0.5, 0.75)
LOWS = (0.0, 0.1)
NOTE = "binary grades do not look at high, so each low has one binary policy"
Rows = list[dict[str, Any]]


def policies() -> list[RelevancePolicy]:
    """Every policy that can differ: graded ones for each high and low, a binary one for each low."""
    graded = [RelevancePolicy(high, low) for high in HIGHS for low in LOWS]
    return graded + [RelevancePolicy(RelevancePolicy.high, low, True) for low in LOWS]


def sensitivity(
    coverages: Coverage,
    runs: Mapping[str, Mapping[str, Sequence[tuple[str, float]]]],
    classes: Mapping[str, str],
    groups: Mapping[str, str] | None,
    contrasts: Sequence[tuple[str, str]],
) -> dict[str, Any]:
    """The document sensitivity.json.

    ``runs``: normalised runs by arm; ``classes``, ``groups``: query id to class and to meeting; ``contrasts``:
    (arm, control). A verdict is gain or loss where the interval over meetings of the paired delta leaves zero out,
    else open. ``sign_flips``: the delta itself is positive under one policy and negative under another.
    ``verdict_changes``: not every policy gives the same verdict.
    """
    unknown = sorted({name for pair in contrasts for name in pair} - set(runs))
    if unknown:
        raise LossmapError("a contrast names an arm without a run", observed=", ".join(unknown), exit_code=2)
    heads, means, deltas = [], [], []
    for place, policy in enumerate(policies()):
        graded = qrels.grade(coverages, policy)
        summary = graded.summary()
        kept = ("queries", "judged_documents", "mean_judged_per_query", "queries_dropped_unjudgeable", "slivers")
        heads.append({"policy": place, **_label(policy), **{name: summary[name] for name in kept}})
        scored = {arm: measures.score(graded.qrels, run) for arm, run in sorted(runs.items())}
        for query_class, part in _by_class(scored, classes):
            means += _means(part, place, query_class)
            deltas += _deltas(part, place, query_class, groups, contrasts)
    return {
        "policies": heads,
        "note": NOTE,
        "intervals": intervals.card(),
        "means": means,
        "contrasts": _verdicts(deltas),
    }


def _label(policy: RelevancePolicy) -> dict[str, Any]:
    return {"high": None if policy.binary else policy.high, "low": policy.low, "binary": policy.binary}


def _by_class(scored: Mapping[str, PerQuery], classes: Mapping[str, str]) -> Iterable[tuple[str, dict[str, PerQuery]]]:
    ids = next(iter(scored.values())).query_ids
    names = np.array([classes[query_id] for query_id in ids], object)
    for query_class in CLASSES:
        keep = np.ones(len(ids), bool) if query_class == "all" else names == query_class
        if keep.any():
            yield query_class, {arm: values.subset(keep) for arm, values in scored.items()}


def _means(part: Mapping[str, PerQuery], policy: int, query_class: str) -> Rows:
    return [
        {
            "policy": policy,
            "arm": arm,
            "query_class": query_class,
            "queries": len(scored.query_ids),
            "metrics": {name: float(np.mean(scored.column(name))) for name in MEASURES},
        }
        for arm, scored in part.items()
    ]


def _deltas(
    part: Mapping[str, PerQuery],
    policy: int,
    query_class: str,
    groups: Mapping[str, str] | None,
    contrasts: Sequence[tuple[str, str]],
) -> Rows:
    """One row per contrast and measure; all contrasts share one product with the count matrix."""
    labels = [(arm, control, name) for arm, control in contrasts for name in MEASURES]
    if not labels:
        return []
    ids = next(iter(part.values())).query_ids
    table = np.column_stack([part[arm].column(name) - part[control].column(name) for arm, control, name in labels])
    estimate = intervals.means_with_intervals(table, None if groups is None else [groups[q] for q in ids])
    return [
        {
            "key": (arm, control, query_class, name),
            "policy": policy,
            "delta": float(estimate.mean[column]),
            **estimate.interval(column),
            "verdict": _verdict(*estimate.meetings[column]),
        }
        for column, (arm, control, name) in enumerate(labels)
    ]


def _verdict(low: float, high: float) -> str:
    return "gain" if low > 0 else "loss" if high < 0 else "open"


def _verdicts(deltas: Rows) -> Rows:
    by_key: dict[tuple[str, str, str, str], Rows] = {}
    for row in deltas:
        by_key.setdefault(row["key"], []).append({name: value for name, value in row.items() if name != "key"})
    return [
        {
            **dict(zip(("arm", "control", "query_class", "measure"), key)),
            "by_policy": rows,
            "sign_flips": min(row["delta"] for row in rows) < 0 < max(row["delta"] for row in rows),
            "verdict_changes": len({row["verdict"] for row in rows}) > 1,
        }
        for key, rows in by_key.items()
    ]
