"""What the seed could not separate: the re-ranker's selection, its order, and the diversity's coverage.

Four arms of one length: both stages, either one, neither. nDCG scores coverage as a loss by construction, so the files
that a list reaches stand beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lossmap import canon, layout
from lossmap.errors import LossmapError
from lossmap.judge import decompose, intervals, runs
from lossmap.judge.decompose import Floats
from lossmap.layout import Layout
from lossmap.search import legs as frozen
from lossmap.search import staged
from lossmap.studies import compare, scores, stages
from lossmap.studies.stages import Bench, Lists

BOTH, RERANK, DIVERSITY, NEITHER = "both", "rerank", "diversity", "neither"
NDCG = "nDCG@10"
RERANKED = (BOTH, RERANK)
MEASURES = (NDCG, *decompose.SHARES)


def study(at: Layout, chapter: str) -> dict[str, Any]:
    """parts.json: ``rows`` an arm (nDCG@10, files reached), ``effects`` with intervals; by corpus and query class.

    Of nDCG@10, total = selection + order + coverage, and rerank = selection + order, on every query exactly; total =
    rerank + diversity + interaction of every measure.
    """
    rows: list[dict[str, Any]] = []
    effects: list[dict[str, Any]] = []
    for bench in stages.benches(at, chapter):
        for place, one in enumerate(with_reranker(bench, by) for by in rerankers(at, chapter, bench)):
            ids = arm_ids(one.arm_id, one.arm)
            _require_one_factor(one, chapter, ids)
            lists = {part: _run(one, chapter, arm_id) for part, arm_id in ids.items()}
            values = {part: measured(one, ranking) for part, ranking in lists.items()}
            # What needs no re-ranker is the same arm beside each of them, and stands once.
            rows += _rows(one, {part: ids[part] for part in ids if not place or part in RERANKED}, lists, values)
            folders = {part: stages.scored(one.at, chapter, arm_id) for part, arm_id in ids.items()}
            effects += _effects(one, {**factorial(values), **_split(one, folders, lists, values)})
    return {"rows": rows, "effects": effects, "intervals": intervals.card()}


def rerankers(at: Layout, chapter: str, bench: Bench) -> list[str]:
    """Those of which the family has an arm with the diversity at this scale; the shipped arm's comes first."""
    family = layout.arms(at)["stages"][chapter]["families"][stages.PLACES]["arms"]
    asked = at.config["scales"][at.scale]["chapters"][chapter]["families"][stages.PLACES].get("arms")
    named = {stanza["rerank"]["by"] for stanza in family if {"rerank", "per_file"} <= stanza.keys()}
    own = bench.arm["rerank"]["by"]
    others = [by for by in sorted(named - {own}) if asked is None or _id_of(bench, by) in asked]
    return [own, *others]


def with_reranker(bench: Bench, by: str) -> Bench:
    """The bench with another re-ranker's scores in the place of the shipped arm's."""
    index = next(iter(bench.legs.values())).meta["index_sha256"]
    legs = bench.legs if by in bench.legs else {**bench.legs, by: frozen.of_index(bench.at, by, index)}
    arm = {**bench.arm, "rerank": {**bench.arm["rerank"], "by": by}}
    return replace(bench, arm_id=_id_of(bench, by), arm=arm, legs=legs)


def _id_of(bench: Bench, by: str) -> str:
    own, pairs = bench.arm["rerank"]["by"], bench.arm["rerank"]["pairs"]
    return bench.arm_id.replace(f".{own}{pairs}", f".{by}{pairs}", 1)


def arm_ids(arm_id: str, arm: Mapping[str, Any]) -> dict[str, str]:
    """The four arms by what they do, named after the one that does both (ids as search/arms derives them)."""
    rerank, files = f".{arm['rerank']['by']}{arm['rerank']['pairs']}", f".files{arm['per_file']}"
    for part in (rerank, files):
        if part not in arm_id:
            raise LossmapError(
                "the arm that is taken apart lacks a stage",
                where=arm_id,
                expected=part,
                next_command="make an arm with rerank and per_file the control of budget in workflow/config/arms.yaml",
                exit_code=2,
            )
    without = {BOTH: (), RERANK: (files,), DIVERSITY: (rerank,), NEITHER: (rerank, files)}
    return {name: _less(arm_id, dropped) for name, dropped in without.items()}


def _less(arm_id: str, dropped: tuple[str, ...]) -> str:
    for part in dropped:
        arm_id = arm_id.replace(part, "", 1)
    return arm_id


def _require_one_factor(bench: Bench, chapter: str, ids: Mapping[str, str]) -> None:
    """Raise (exit 2) where the four arms did not answer the same queries, judged alike, over one index."""
    folders = [stages.scored(bench.at, chapter, arm_id) for arm_id in ids.values()]
    hashes = [canon.read_json(folder / "metrics.json")["hashes"] for folder in folders]
    for folder, mine in zip(folders, hashes):
        for name in compare.HASHES:
            if mine[name] != hashes[0][name]:
                raise LossmapError(
                    f"the arms differ in {name}, not in their stages alone",
                    where=f"{folder} against {folders[0]}",
                    observed=mine[name],
                    expected=hashes[0][name],
                    next_command=scores.again(bench.at, folder),
                    exit_code=2,
                )


def _run(bench: Bench, chapter: str, arm_id: str) -> Lists:
    """The list that an arm was scored with, for every judged query."""
    run = runs.read_run(stages.scored(bench.at, chapter, arm_id) / "run.txt.gz")
    return {query_id: [doc for doc, _ in run.get(query_id, [])] for query_id in bench.judged}


def measured(bench: Bench, ranking: Lists) -> Floats:
    """(Q, len(MEASURES)): nDCG@10 and the shares of gold files that the list reaches."""
    reached = decompose.covered(bench.judged, ranking, stages.file_of)
    return np.column_stack([decompose.ndcg(bench.judged, ranking), reached.shares])


def factorial(values: Mapping[str, Floats]) -> dict[str, Floats]:
    """Effects of the two stages, alone and together. ``coverage`` is the diversity's after the re-ranker, where the
    product has it; ``diversity`` is its effect on the retrieved list."""
    both, rerank, diversity, neither = (values[part] for part in (BOTH, RERANK, DIVERSITY, NEITHER))
    return {
        "total": both - neither,
        "rerank": rerank - neither,
        "diversity": diversity - neither,
        "interaction": both - rerank - diversity + neither,
        "coverage": both - rerank,
    }


def _split(
    bench: Bench, folders: Mapping[str, Path], lists: Mapping[str, Lists], values: Mapping[str, Floats]
) -> dict[str, Floats]:
    """The re-ranker's effect as which rows it lets in (selection) and how it orders them, (Q, 1): nDCG@10 alone.

    Either can be changed first; both ways are given, and their mean (the Shapley value of two players).
    """
    pool, reranked = _before_and_after(bench)
    for part, whole in ((NEITHER, pool), (RERANK, reranked)):
        _require_prefix(bench, folders[part], lists[part], whole)
    chosen = decompose.ndcg(bench.judged, _in_order_of(pool, lists[RERANK]))[:, None]
    turned = decompose.ndcg(bench.judged, _in_order_of(reranked, lists[NEITHER]))[:, None]
    neither, both = values[NEITHER][:, :1], values[RERANK][:, :1]
    ways = {
        "selection_first": chosen - neither,
        "order_second": both - chosen,
        "order_first": turned - neither,
        "selection_second": both - turned,
    }
    return {
        "selection": (ways["selection_first"] + ways["selection_second"]) / 2,
        "order": (ways["order_first"] + ways["order_second"]) / 2,
        **ways,
    }


def _before_and_after(bench: Bench) -> tuple[Lists, Lists]:
    """The whole list that the re-ranker of the shipped arm is given, and the whole list that it returns."""
    lists = bench.stages(bench.arm)
    place = [name for name, _ in lists].index(staged.RERANK)
    return lists[place - 1][1], lists[place][1]


def _in_order_of(order: Lists, members: Lists) -> Lists:
    """The documents of ``members`` as ``order`` has them."""
    return {q: [doc for doc in order[q] if doc in mine] for q, mine in ((q, set(m)) for q, m in members.items())}


def _require_prefix(bench: Bench, folder: Path, scored: Lists, whole: Lists) -> None:
    differing = [query_id for query_id, docs in sorted(scored.items()) if whole[query_id][: len(docs)] != docs]
    if differing:
        raise LossmapError(
            "an arm was scored with another list than the frozen legs give now",
            where=folder,
            observed=f"{len(differing)} of {len(scored)} queries differ, the first {differing[0]}",
            expected="the first rows of the same list",
            next_command=scores.again(bench.at, folder),
            exit_code=3,
        )


def _rows(
    bench: Bench, ids: Mapping[str, str], lists: Mapping[str, Lists], values: Mapping[str, Floats]
) -> list[dict[str, Any]]:
    """One row a class and arm."""
    covered = {part: decompose.covered(bench.judged, lists[part], stages.file_of) for part in ids}
    return [
        {
            **bench.head,
            "query_class": name,
            "reranker": bench.arm["rerank"]["by"] if part in RERANKED else None,
            "part": part,
            "arm": ids[part],
            **stages.gold_files(covered[part], keep),
            **row,
        }
        for name, keep in bench.classes()
        for part, row in zip(ids, stages.means(bench, keep, [values[part] for part in ids], MEASURES), strict=True)
    ]


def _effects(bench: Bench, changes: Mapping[str, Floats]) -> list[dict[str, Any]]:
    """One row a class, effect and measure."""
    labels = [(effect, MEASURES[column]) for effect, each in changes.items() for column in range(each.shape[1])]
    head = {**bench.head, "reranker": bench.arm["rerank"]["by"]}
    columns = [each[:, [column]] for each in changes.values() for column in range(each.shape[1])]
    return [
        {**head, "query_class": name, "effect": effect, "measure": measure, **row}
        for name, keep in bench.classes()
        for (effect, measure), row in zip(labels, stages.means(bench, keep, columns, ("delta",)), strict=True)
    ]
