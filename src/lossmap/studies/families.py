"""Every arm of every family against its control: deltas with intervals, p-values that pay for the number of arms, and
the smallest effect that the queries could have shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lossmap.judge import intervals, multiplicity, permutation
from lossmap.judge.intervals import Estimate
from lossmap.judge.measures import NAMES
from lossmap.judge.permutation import PValues
from lossmap.layout import Layout
from lossmap.studies.stacks import Contrast, Family, Floats, Stack, stacks

Row = dict[str, Any]


def deltas(at: Layout, families: Sequence[Family]) -> dict[str, Any]:
    """The document: ``rows``, one an arm, bench, corpus and class, and ``detectable``, one a family, bench, corpus and
    class. A row has, by measure: ``control_means``, ``deltas``, ``percent`` (of the control's mean; null where that is
    0), ``intervals``, ``p_values`` and ``holm`` by meeting and by query, ``half_widths`` of the interval by meeting,
    and ``detectable`` (null where one meeting asked everything). Raises as :func:`stacks.stacks`.
    """
    rows = [row for stack in stacks(at, families) for row in of_stack(stack)]
    return {
        "intervals": intervals.card(),
        "permutation": permutation.card(),
        "multiplicity": multiplicity.card(),
        "families": [family.card() for family in families],
        "detectable": _detectable(rows),
        "rows": rows,
    }


def of_stack(stack: Stack) -> Iterator[Row]:
    """The rows of one stack, class by class: one resampling of its queries for all of its arms and measures."""
    wide = stack.deltas()
    flat = wide.reshape(len(wide), -1)
    tested = permutation.p_values(flat, stack.groups, stack.classes)
    known: dict[bytes, tuple[Estimate, Floats]] = {}
    for name, keep in stack.parts():
        # A corpus of one class has the same queries in that class and in all.
        if keep.tobytes() not in known:
            members = stack.members(keep)
            estimate = intervals.means_with_intervals(flat[keep], members)
            known[keep.tobytes()] = (estimate, multiplicity.detectable(flat[keep], members))
        estimate, least = known[keep.tobytes()]
        holm = _holm(stack.contrasts, tested[name])
        for place, contrast in enumerate(stack.contrasts):
            columns = range(place * len(NAMES), (place + 1) * len(NAMES))
            counts = {"queries": estimate.query_count, "meetings": estimate.meeting_count}
            head = {**contrast.names, "query_class": name, **counts}
            means = contrast.control.values[keep].mean(axis=0)
            yield {**head, **_sizes(estimate, means, columns), **_evidence(tested[name], holm, least, columns)}


def _holm(contrasts: Sequence[Contrast], tested: PValues) -> PValues:
    """Adjusted over the arms of one family on one bench and corpus."""
    together: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
    for place, contrast in enumerate(contrasts):
        together[contrast.family.name, contrast.bench, contrast.head["corpus"]].append(place)
    sides = []
    for p in (tested.meetings, tested.queries):
        adjusted = p.reshape(len(contrasts), -1).copy()
        for places in together.values():
            adjusted[places] = multiplicity.holm(adjusted[places])
        sides.append(adjusted.ravel())
    return PValues(*sides)


def _sizes(estimate: Estimate, means: Floats, columns: range) -> Row:
    """How large, by measure."""
    deltas = {name: float(estimate.mean[column]) for name, column in zip(NAMES, columns)}
    of_control = dict(zip(NAMES, means.tolist()))
    ends = estimate.meetings[columns.start : columns.stop]
    return {
        "control_means": of_control,
        "deltas": deltas,
        "percent": {name: percent(deltas[name], of_control[name]) for name in NAMES},
        "intervals": {name: estimate.interval(column) for name, column in zip(NAMES, columns)},
        "half_widths": dict(zip(NAMES, ((ends[:, 1] - ends[:, 0]) / 2).tolist())),
    }


def _evidence(tested: PValues, holm: PValues, least: Floats, columns: range) -> Row:
    """How sure, by measure."""
    return {
        "p_values": {name: tested.of(column) for name, column in zip(NAMES, columns)},
        "holm": {name: holm.of(column) for name, column in zip(NAMES, columns)},
        "detectable": {name: number(least[column]) for name, column in zip(NAMES, columns)},
    }


def percent(delta: float, of: float) -> float | None:
    return 100 * delta / of if of else None


def number(value: float) -> float | None:
    """What a document can hold: null for what a single meeting cannot say."""
    return None if np.isnan(value) else float(value)


def _detectable(rows: Sequence[Row]) -> list[Row]:
    """Per family, bench, corpus and class: the detectable effect of its arms, from the least to the greatest.

    Arms that equal their control query by query are left out: of no spread, they would detect anything.
    """
    together: defaultdict[tuple[str, ...], list[Row]] = defaultdict(list)
    keys = ("family", "bench", "corpus", "query_class")
    for row in rows:
        together[tuple(row[key] for key in keys)].append(row)
    carried = (*keys, "tier", "judged_by", "queries", "meetings")
    return [{**{key: some[0][key] for key in carried}, "measures": _spreads(some)} for some in together.values()]


def _spreads(rows: Sequence[Row]) -> dict[str, Row | None]:
    return {name: _spread([row["detectable"][name] for row in rows if row["detectable"][name]]) for name in NAMES}


def _spread(values: Sequence[float]) -> Row | None:
    if not values:
        return None
    ends = {"least": min(values), "median": float(np.median(values)), "greatest": max(values)}
    return {"arms": len(values), **ends}
