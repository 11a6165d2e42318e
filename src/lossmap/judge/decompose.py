"""Where a pipeline loses: the list of every stage scored alike, and what each stage did to the list before it.

Nothing here knows what is ranked: judgements are {query: {document: grade}}, a stage is a name and {query: [document,
...]}, best first, and a document is anything hashable. A query that a stage does not name has an empty list there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lossmap.errors import LossmapError
from lossmap.judge import intervals

CUT = 10
BAND = 1e-12
"""A query moves by a stage when its score moves by more than this (spec/replay 5.3)."""
CHANGES = ("delta", "harm", "gain")

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Judged = Mapping[str, Mapping[Any, int]]
Ranking = Mapping[str, Sequence[Any]]
Stage = tuple[str, Ranking]
Groups = Mapping[str, str] | None
"""Query to its cluster (a meeting, a subtask's document); None where queries stand for themselves."""


def ndcg(qrels: Judged, ranking: Ranking, cut: int = CUT) -> Floats:
    """nDCG@cut (Q,) of the queries of ``qrels``, sorted: trec_eval's ndcg_cut, as judge/measures.score has it.

    The gain is the grade (none below 0), the discount log2(rank + 1) with ranks from 1, and the ideal list is cut at
    ``cut`` too. A query without a relevant document, or without a list, has 0.
    """
    ids = sorted(qrels)
    gains, ideal = np.zeros((len(ids), cut)), np.zeros((len(ids), cut))
    for i, query_id in enumerate(ids):
        grades, listed = qrels[query_id], ranking.get(query_id, ())[:cut]
        gains[i, : len(listed)] = [grades.get(doc, 0) for doc in listed]
        best = sorted(grades.values(), reverse=True)[:cut]
        ideal[i, : len(best)] = best
    discount = 1 / np.log2(np.arange(2, cut + 2))
    reached, reachable = ((np.maximum(table, 0) * discount).sum(axis=1) for table in (gains, ideal))
    return np.divide(reached, reachable, out=np.zeros(len(ids)), where=reachable > 0)


@dataclass(frozen=True)
class Decomposition:
    """Q queries (sorted) by S stages: ``values`` nDCG@10, ``sizes`` rows of a list, ``relevant`` of its documents at
    any depth, ``lost`` and ``entered``: relevant documents on the list before and not on this one, and the reverse.

    ``judged`` (Q,): relevant documents of a query, wherever they are.
    """

    query_ids: tuple[str, ...]
    names: tuple[str, ...]
    values: Floats
    sizes: Ints
    relevant: Ints
    lost: Ints
    entered: Ints
    judged: Ints

    @property
    def moves(self) -> Floats:
        """(Q, S - 1): what each stage adds to a query; within BAND of nothing it adds nothing."""
        change = np.diff(self.values, axis=1)
        return np.where(np.abs(change) > BAND, change, 0.0)


def decompose(qrels: Judged, stages: Sequence[Stage]) -> Decomposition:
    """Score the lists that ``stages`` hand on, in their order. Raises on no stage and on a list with a repetition."""
    if not stages:
        raise LossmapError(
            "there is no stage to take apart",
            observed=0,
            expected="one ranking or more",
            next_command="give the arm two legs in workflow/config/arms.yaml, then ./run results/stage5",
            exit_code=2,
        )
    ids = tuple(sorted(qrels))
    gold = [{doc for doc, grade in qrels[query_id].items() if grade > 0} for query_id in ids]
    held = [_held(name, ranking, ids, gold) for name, ranking in stages]
    before = [held[0], *held]
    return Decomposition(
        query_ids=ids,
        names=tuple(name for name, _ in stages),
        values=np.column_stack([ndcg(qrels, ranking) for _, ranking in stages]),
        sizes=_columns([len(ranking.get(query_id, ())) for query_id in ids] for _, ranking in stages),
        relevant=_columns([len(found) for found in mine] for mine in held),
        lost=_columns([len(a - b) for a, b in zip(*pair)] for pair in zip(before, held)),
        entered=_columns([len(b - a) for a, b in zip(*pair)] for pair in zip(before, held)),
        judged=np.array([len(found) for found in gold], np.int64),
    )


def _columns(parts: Iterable[list[int]]) -> Ints:
    return np.array(list(parts), np.int64).T


def _held(name: str, ranking: Ranking, ids: Sequence[str], gold: Sequence[set[Any]]) -> list[set[Any]]:
    """The relevant documents on the list of each query."""
    held = []
    for query_id, relevant in zip(ids, gold):
        listed = ranking.get(query_id, ())
        if len(seen := set(listed)) != len(listed):
            twice, times = Counter(listed).most_common(1)[0]
            raise LossmapError(
                "a stage lists a document twice",
                where=f"{name}, {query_id}",
                observed=f"{twice} {times} times",
                expected="every document once: its second place would be scored as well",
                next_command="./run results/stage5 --forcerun freeze rescore",
            )
        held.append(relevant & seen)
    return held


def rows(
    found: Decomposition, groups: Groups = None, keep: Bools | None = None, strata: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """One row a stage: nDCG@10, and against the stage before: delta, harm H and gain C with C - H = delta, intervals.

    H and C are the means of what queries lose and win (seed 004, section 2). ``keep`` (Q,) chooses queries; none chosen
    gives no row. ``strata`` (query to subtask) makes every mean the mean of the strata's means; its intervals resample
    queries of all strata alike, and so are not narrower than stratified ones. Fields of the first row that need a stage
    before are None.
    """
    chosen = np.ones(len(found.query_ids), bool) if keep is None else keep
    ids = [query_id for query_id, kept in zip(found.query_ids, chosen) if kept]
    if not ids:
        return []
    weight = macro([strata[query_id] for query_id in ids]) if strata else np.ones(len(ids))
    moves = found.moves[chosen]
    parts = [found.values[chosen], moves, np.maximum(-moves, 0), np.maximum(moves, 0)]
    estimate = intervals.means_with_intervals(
        np.column_stack(parts) * weight[:, None], None if groups is None else [groups[query_id] for query_id in ids]
    )
    return [_row(found, chosen, moves, estimate, place) for place in range(len(found.names))]


def macro(strata: Sequence[str]) -> Floats:
    """Weights (Q,) under which the mean over queries is the mean of the means over strata."""
    sizes = Counter(strata)
    return np.array([len(strata) / (len(sizes) * sizes[stratum]) for stratum in strata])


def _row(
    found: Decomposition, chosen: Bools, moves: Floats, estimate: intervals.Estimate, place: int
) -> dict[str, Any]:
    columns = {"ndcg": place, **(_places(len(found.names), place) if place else {})}
    change = moves[:, place - 1] if place else None
    return {
        "stage": found.names[place],
        "before": found.names[place - 1] if place else None,
        "queries": estimate.query_count,
        "meetings": estimate.meeting_count,
        **dict.fromkeys(CHANGES),
        **{name: float(estimate.mean[column]) for name, column in columns.items()},
        "intervals": {name: estimate.interval(column) for name, column in columns.items()},
        "harmed": None if change is None else int((change < 0).sum()),
        "helped": None if change is None else int((change > 0).sum()),
        "unchanged": None if change is None else int((change == 0).sum()),
        "rows_per_query": float(found.sizes[chosen, place].mean()),
        "relevant": _relevant(found, chosen, place),
    }


def _places(stages: int, place: int) -> dict[str, int]:
    """Where rows() keeps the change by stage ``place``: blocks of one column a stage, then of one a transition."""
    return {name: stages + block * (stages - 1) + place - 1 for block, name in enumerate(CHANGES)}


def _relevant(found: Decomposition, chosen: Bools, place: int) -> dict[str, Any]:
    """Relevant documents at any depth, summed over queries; ``lost_share`` is of those on the list before."""
    held, lost = int(found.relevant[chosen, place].sum()), int(found.lost[chosen, place].sum())
    judged, before = int(found.judged[chosen].sum()), int(found.relevant[chosen, max(place - 1, 0)].sum())
    return {
        "judged": judged,
        "held": held,
        "held_share": share(held, judged),
        "lost": lost if place else None,
        "lost_share": share(lost, before) if place else None,
        "entered": int(found.entered[chosen, place].sum()) if place else None,
        "queries_that_lose": int((found.lost[chosen, place] > 0).sum()) if place else None,
    }


def share(part: float, whole: float) -> float | None:
    """``part`` of ``whole``; None of nothing, which is not the same as none of something."""
    return part / whole if whole else None


@dataclass(frozen=True)
class Covered:
    """Groups of documents by query (Q,): ``gold`` hold a relevant one, ``present`` are those of them on the list,
    ``listed`` all on the list."""

    query_ids: tuple[str, ...]
    gold: Ints
    present: Ints
    listed: Ints

    @property
    def shares(self) -> Floats:
        """(Q, 4): all gold groups present, any present, the share present, groups on the list; 0 without gold."""
        known = self.gold > 0
        part = np.divide(self.present, self.gold, out=np.zeros(len(self.gold)), where=known)
        return np.column_stack([known & (self.present == self.gold), self.present > 0, part, self.listed]).astype(float)


SHARES = ("all_present", "any_present", "share_present", "groups_listed")


def covered(qrels: Judged, ranking: Ranking, group_of: Callable[[Any], Hashable], depth: int | None = None) -> Covered:
    """How many of a query's gold groups (files, episodes) the first ``depth`` rows reach; all rows for None."""
    ids = tuple(sorted(qrels))
    wanted = [{group_of(doc) for doc, grade in qrels[query_id].items() if grade > 0} for query_id in ids]
    listed = [{group_of(doc) for doc in ranking.get(query_id, ())[:depth]} for query_id in ids]
    counts: list[Collection[int]] = [
        [len(some) for some in wanted],
        [len(some & there) for some, there in zip(wanted, listed)],
        [len(there) for there in listed],
    ]
    return Covered(ids, *(np.array(column, np.int64) for column in counts))


def oracle(values: Floats, names: Sequence[str], groups: Sequence[str] | None = None) -> dict[str, Any]:
    """The better of rankings chosen query by query, ``values`` (Q, R): its mean, and the gap to the best constant.

    The best constant is the ranking with the highest mean (the first of equals). ``strictly_best``: queries on which a
    ranking is above every other. ``groups``: the cluster of each query. Raises where there is nothing to choose.
    """
    if values.shape[1] < 2 or not len(values):
        raise LossmapError(
            "nothing to choose between",
            observed=values.shape,
            expected="a query, two rankings or more",
            next_command="./run results/stage5 --forcerun stage5_study",
        )
    means, best = values.mean(axis=0), values.max(axis=1)
    constant = int(means.argmax())
    estimate = intervals.means_with_intervals(np.column_stack([best, best - values[:, constant]]), groups)
    ahead = values >= best[:, None] - BAND
    alone = ahead & (ahead.sum(axis=1) == 1)[:, None]
    return {
        "queries": estimate.query_count,
        "means": dict(zip(names, means.tolist(), strict=True)),
        "best_constant": names[constant],
        "oracle": float(estimate.mean[0]),
        "gap": float(estimate.mean[1]),
        "intervals": {"oracle": estimate.interval(0), "gap": estimate.interval(1)},
        "strictly_best": dict(zip(names, alone.sum(axis=0).tolist())),
        "tied": int((ahead.sum(axis=1) > 1).sum()),
    }


def quartiles(signal: Floats, delta: Floats) -> dict[str, Any]:
    """Mean of ``delta`` (Q,) in each quarter of ``signal`` (Q,), and their correlation (None on a constant side).

    Cuts are the 25, 50 and 75 % quantiles with linear interpolation; a value equal to a cut goes up (spec/replay 5.6).
    """
    if not len(signal):
        return {"cuts": [], "bins": [], "pearson": None}
    cuts = np.quantile(signal, (0.25, 0.5, 0.75))
    place = (signal[:, None] >= cuts).sum(axis=1)
    bins = [delta[place == number] for number in range(4)]
    flat = len(signal) < 2 or np.ptp(signal) == 0 or np.ptp(delta) == 0
    return {
        "cuts": cuts.tolist(),
        "bins": [{"queries": len(mine), "delta": float(mine.mean()) if len(mine) else None} for mine in bins],
        "pearson": None if flat else float(np.corrcoef(signal, delta)[0, 1]),
    }
