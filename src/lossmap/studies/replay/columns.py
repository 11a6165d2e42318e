"""Means of columns over the queries of a replay, each labelled: of subtasks' means (macro), or of queries (pooled)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lossmap.errors import LossmapError
from lossmap.judge import decompose, intervals, multiplicity
from lossmap.judge.resampled import SHIFT
from lossmap.studies.replay import run
from lossmap.studies.replay.run import Replayed

MACRO, POOLED = "macro", "pooled"
"""The mean over subtasks of the mean over their queries, and the mean over queries: never in one table unlabelled."""
UNITS = ("meetings", "queries")

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Row = dict[str, Any]


def every(found: Replayed) -> Bools:
    return np.ones(len(found.frozen.query_ids), bool)


def parts(found: Replayed) -> Iterator[tuple[Row, Bools]]:
    """The whole task, its subtasks and its groups (where there are several), with the queries of each.

    ``pool``: stored rows of the group; None where the part reaches over groups.
    """
    frozen = found.frozen
    yield _part(found, "task", found.task, every(found))
    for kind, names in (("subtask", frozen.subtasks), ("group", frozen.groups)):
        known = sorted(set(names))
        for name in known if len(known) > 1 else []:
            yield _part(found, kind, name, np.array([mine == name for mine in names]))


def _part(found: Replayed, kind: str, name: str, keep: Bools) -> tuple[Row, Bools]:
    groups = {group for group, kept in zip(found.frozen.groups, keep) if kept}
    sizes = found.frozen.size[keep]
    return {"part": kind, "name": name, "pool": int(sizes[0]) if len(groups) == 1 else None}, keep


def weights(found: Replayed, mean: str, keep: Bools) -> Floats:
    """Weights of the queries of ``keep`` under which their plain mean is the mean that ``mean`` names."""
    chosen = [subtask for subtask, kept in zip(found.frozen.subtasks, keep) if kept]
    return decompose.macro(chosen) if mean == MACRO else np.ones(len(chosen))


def clusters(found: Replayed, keep: Bools) -> list[str] | None:
    """What intervals resample whole, of the queries of ``keep``."""
    groups = run.clusters(found)
    return None if groups is None else [group for group, kept in zip(groups, keep) if kept]


def measured(
    found: Replayed, values: Mapping[str, Floats], deltas: Mapping[str, Floats], mean: str, keep: Bools | None = None
) -> Row:
    """Means of ``values`` as fields and of ``deltas`` under ``deltas`` (columns (Q,) by name), with all ``intervals``.

    ``keep`` (Q,) chooses queries; where it chooses none, every mean and interval is None. Deltas are taken query by
    query by the caller, so that their intervals are paired.
    """
    chosen = every(found) if keep is None else keep
    columns = {**values, **deltas}
    if not chosen.any():
        empty = {"queries": 0, "meetings": 0, **dict.fromkeys(values), "deltas": dict.fromkeys(deltas)}
        return {"mean": mean, **empty, "intervals": dict.fromkeys(columns)}
    table = np.column_stack(list(columns.values()))[chosen] * weights(found, mean, chosen)[:, None]
    estimate = intervals.means_with_intervals(table, clusters(found, chosen))
    means = dict(zip(columns, estimate.mean.tolist()))
    return {
        "mean": mean,
        "queries": estimate.query_count,
        "meetings": estimate.meeting_count,
        **{name: means[name] for name in values},
        "deltas": {name: means[name] for name in deltas},
        "intervals": {name: estimate.interval(place) for place, name in enumerate(columns)},
    }


def require_alike(first: Replayed, second: Replayed) -> None:
    """Raise (exit 3) unless both asked the same queries under the same judgements: their differences are paired."""
    one, other = first.frozen, second.frozen
    if one.query_ids != other.query_ids or (one.relevant != other.relevant).any():
        raise LossmapError(
            "two replays that are compared asked other queries",
            where=f"{first.task} under {first.model}, {second.task} under {second.model}",
            observed=f"{len(one.query_ids)} and {len(other.query_ids)} queries",
            expected="the same queries with the same judgements",
            next_command="./run results/replay --forcerun replay_task",
            exit_code=3,
        )


def over_tasks(tasks: Sequence[tuple[Replayed, Mapping[str, Floats]]]) -> Row:
    """``deltas`` and ``intervals``: of each column the plain mean over tasks of query-pooled means.

    Tasks over the same clusters are resampled together, others apart: each further set of clusters pairs its resamples
    in another order, as judge/resampled does.
    """
    names = list(tasks[0][1])
    drawn = {unit: np.zeros((intervals.RESAMPLES, len(names))) for unit in UNITS}
    means, known = np.zeros(len(names)), list(dict.fromkeys(frozenset(found.frozen.clusters) for found, _ in tasks))
    for found, deltas in tasks:
        place = known.index(frozenset(found.frozen.clusters))
        values, groups = np.column_stack([deltas[name] for name in names]), run.clusters(found)
        means += values.mean(axis=0) / len(tasks)
        by_query = by_meeting = intervals.resampled_means(values, np.ones(len(values)))
        if groups is not None:
            by_meeting = intervals.resampled_means(*intervals.by_group(values, groups))
        for unit, resampled in zip(UNITS, (by_meeting, by_query)):
            drawn[unit] += np.roll(resampled, SHIFT * place, axis=0) / len(tasks)
    ends = {unit: intervals.ends(resampled).tolist() for unit, resampled in drawn.items()}
    spans = {name: {unit: ends[unit][column] for unit in UNITS} for column, name in enumerate(names)}
    return {"deltas": dict(zip(names, means.tolist())), "intervals": spans}


def adjust(rows: Sequence[Row]) -> None:
    """Holm over the headline ``rows``, written into each beside its ``p_values``; None in the others."""
    for row in rows:
        row["holm"] = dict.fromkeys(UNITS)
    if together := [row for row in rows if row["headline"]]:
        adjusted = multiplicity.holm(np.array([[row["p_values"][unit] for unit in UNITS] for row in together]))
        for row, values in zip(together, adjusted.tolist()):
            row["holm"] = dict(zip(UNITS, values))


def clear(interval: Mapping[str, Sequence[float]]) -> bool:
    """Whether an interval by meeting leaves zero out."""
    low, high = interval["meetings"]
    return low > 0 or high < 0


def by_model(found: Sequence[Replayed]) -> dict[str, list[Replayed]]:
    """The tasks of each model, in the order of ``found``."""
    return {model: [each for each in found if each.model == model] for model in dict.fromkeys(e.model for e in found)}


def by_task(found: Sequence[Replayed]) -> dict[str, list[Replayed]]:
    """The models of each task, in the order of ``found``."""
    return {task: [each for each in found if each.task == task] for task in dict.fromkeys(e.task for e in found)}
