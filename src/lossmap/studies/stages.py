"""Where this pipeline loses: dense, fusion, pool, re-rank, diversity and final cut through the generic decomposition.

The stages are computed again from frozen legs, and the last list must be the run that the shipped arm was scored with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lossmap import canon, layout
from lossmap.errors import LossmapError
from lossmap.index import table
from lossmap.judge import decompose, intervals, qrels, runs, taxonomy
from lossmap.judge.decompose import Bools, Floats
from lossmap.judge.evaluate import CLASSES
from lossmap.layout import Layout
from lossmap.search import legs, pipeline, staged
from lossmap.search.legs import Leg
from lossmap.studies import judging, scores

SHIPPED, PLACES = "budget", "parts"
"""The family whose control is the shipped arm, and the one whose benches are taken apart."""
DENSE, FUSION = "dense", "fusion"
Lists = dict[str, list[str]]
"""Query to document ids, best first."""


@dataclass(frozen=True)
class Bench:
    """One corpus over its index: judgements, the shipped arm, legs by name (re-rankers too), and by chunk row the
    document id and the file."""

    at: Layout
    corpus: judging.Corpus
    judged: qrels.Qrels
    arm_id: str
    arm: Mapping[str, Any]
    legs: Mapping[str, Leg]
    doc_ids: list[str]
    files: list[str]

    @property
    def head(self) -> dict[str, Any]:
        card = self.corpus.card
        return {"corpus": card["key"], **{name: card[name] for name in ("tier", "judged_by")}, "bench": self.at.bench}

    @property
    def query_ids(self) -> list[str]:
        return sorted(self.judged)

    @property
    def groups(self) -> list[str]:
        """The meeting of each query of ``query_ids``."""
        of = self.corpus.groups
        return [of[query_id] for query_id in self.query_ids]

    def classes(self) -> Iterator[tuple[str, Bools]]:
        """Query classes that have judged queries, then ``all``; which of ``query_ids`` are of each."""
        of = self.corpus.classes
        mine = np.array([of[query_id] for query_id in self.query_ids], object)
        for name in CLASSES:
            keep = np.ones(len(mine), bool) if name == "all" else mine == name
            if keep.any():
                yield name, keep

    def named(self, lists: Mapping[str, list[int]]) -> Lists:
        """Chunk rows as document ids, for the judged queries; a query that no leg answers has an empty list."""
        return {query_id: [self.doc_ids[row] for row in lists.get(query_id, [])] for query_id in self.judged}

    def stages(self, arm: Mapping[str, Any]) -> list[tuple[str, Lists]]:
        """The lists of ``arm`` from frozen legs, in document ids."""
        reranker = self.legs[arm["rerank"]["by"]] if "rerank" in arm else None
        found = staged.rank(arm, self.legs, reranker, self.files.__getitem__)
        return [(name, self.named(lists)) for name, lists in found]


def file_of(doc_id: str) -> str:
    return runs.identity(doc_id)[1]


def scored(at: Layout, chapter: str, arm_id: str) -> Path:
    """Where the rule of an arm writes."""
    return at.stage(chapter) / "scored" / at.bench / arm_id


def shipped(at: Layout, chapter: str) -> str:
    """Id of the arm that is taken apart: the control of the budgets."""
    return layout.arms(at)["stages"][chapter]["families"][SHIPPED]["control"]


def benches(at: Layout, chapter: str) -> Iterator[Bench]:
    """Every corpus of the chapter's benches that was scored; one that could not be had is left out."""
    chunks: dict[Path, tuple[list[str], list[str]]] = {}
    for name in at.config["scales"][at.scale]["chapters"][chapter]["families"][PLACES]["benches"]:
        place = layout.load(at.scale, name)
        document = canon.read_json(scored(place, chapter, shipped(at, chapter)) / "metrics.json")
        keys = {row["corpus"] for row in document["rows"]}
        if keys and place.index_folder not in chunks:
            rows = table.load(place.index_folder)
            chunks = {place.index_folder: (table.doc_ids(rows), [row.file_uuid for row in rows])}
        yield from (_open(place, key, document, *chunks[place.index_folder]) for key in place.scored if key in keys)


def _open(at: Layout, key: str, document: Mapping[str, Any], doc_ids: list[str], files: list[str]) -> Bench:
    corpus, arm = judging.load(at, key), document["arm"]
    names = [*arm["legs"], *([arm["rerank"]["by"]] if "rerank" in arm else [])]
    return Bench(
        at=at,
        corpus=corpus,
        judged=qrels.grade(corpus.coverage).qrels,
        arm_id=arm["id"],
        arm=arm,
        legs={name: legs.of_index(at, name, document["hashes"]["index"]) for name in names},
        doc_ids=doc_ids,
        files=files,
    )


def require_run(at: Layout, folder: Path, lists: Lists) -> None:
    """Raise (exit 3) where the arm of ``folder`` was scored with other lists than these."""
    run = runs.read_run(folder / "run.txt.gz")
    differing = [q for q, docs in sorted(lists.items()) if [doc for doc, _ in run.get(q, [])] != docs]
    if differing:
        raise LossmapError(
            "an arm was scored with other lists than its stanza gives now",
            where=folder,
            observed=f"{len(differing)} of {len(lists)} queries differ, the first {differing[0]}",
            expected="the same rows in the same order",
            next_command=scores.again(at, folder),
            exit_code=3,
        )


def study(at: Layout, chapter: str) -> dict[str, Any]:
    """stages.json: ``rows`` a stage, ``taxonomy`` a transition, ``oracles`` over the legs, ``files`` that a list
    reaches; each by corpus and query class."""
    parts: dict[str, list[dict[str, Any]]] = {"rows": [], "taxonomy": [], "oracles": [], "files": []}
    for bench in benches(at, chapter):
        lists = pipeline_stages(bench)
        require_run(at, scored(bench.at, chapter, bench.arm_id), lists[-1][1])
        parts["rows"] += _rows(bench, lists)
        parts["taxonomy"] += _movements(bench, lists)
        parts["oracles"] += _oracles(bench, lists)
        parts["files"] += _files(bench, lists)
    return {"arm": shipped(at, chapter), **parts, "intervals": intervals.card()}


def pipeline_stages(bench: Bench) -> list[tuple[str, Lists]]:
    """The dense leg, all that the legs name in fused order, and then the stages of the arm.

    The pool cut is a stage of its own even where it keeps the whole request: what the request cut off the legs' union
    stands beside it.
    """
    arm = {"pool": bench.arm["size"], **bench.arm}
    depth = leg_depth(arm)
    union = pipeline.rank({**arm, "size": depth * len(arm["legs"]), "leg_depth": depth}, bench.legs)
    fused = bench.named({query_id: [row for row, _ in hits] for query_id, hits in union.items()})
    return [(DENSE, _leg(bench, 1, arm["size"])), (FUSION, fused), *bench.stages(arm)]


def leg_depth(arm: Mapping[str, Any]) -> int:
    """Rows of each leg that enter the fusion."""
    return int(arm.get("leg_depth", arm["size"]))


def _leg(bench: Bench, which: int, depth: int) -> Lists:
    """The lexical (0) or the dense (1) leg, cut at ``depth``."""
    leg = bench.legs[bench.arm["legs"][which]]
    return bench.named({query_id: leg.top(i, depth) for i, query_id in enumerate(leg.query_ids)})


def _rows(bench: Bench, lists: list[tuple[str, Lists]]) -> list[dict[str, Any]]:
    found = decompose.decompose(bench.judged, lists)
    return [
        {**bench.head, "query_class": name, **row}
        for name, keep in bench.classes()
        for row in decompose.rows(found, bench.corpus.groups, keep)
    ]


def _movements(bench: Bench, lists: list[tuple[str, Lists]]) -> list[dict[str, Any]]:
    """Every transition with the legs as the fusion read them, and the fusion with the legs as deep as frozen: a row
    that the dense leg has at place 49 was not seen by a fusion of 48, and was not unknown to the encoder either."""
    deep = min(leg.rows.shape[1] for name, leg in bench.legs.items() if name in bench.arm["legs"])
    shallow, out = leg_depth(bench.arm), []
    for (before, old), (after, new) in zip(lists, lists[1:]):
        for depth in (shallow, deep) if after == FUSION and deep != shallow else (shallow,):
            membership = {bench.arm["legs"][which]: _leg(bench, which, depth) for which in (1, 0)}
            found = taxonomy.moves(bench.judged, old, new, membership)
            head = {**bench.head, "stage": after, "before": before, "membership_depth": depth}
            out += [{**head, "query_class": name, **taxonomy.table(found, keep)} for name, keep in bench.classes()]
    return out


def _oracles(bench: Bench, lists: list[tuple[str, Lists]]) -> list[dict[str, Any]]:
    """The better of the legs and their fusion, query by query."""
    size, staged_lists = bench.arm["size"], dict(lists)
    rankings = [_leg(bench, 0, size), _leg(bench, 1, size), staged_lists[staged.RETRIEVE]]
    values = np.column_stack([decompose.ndcg(bench.judged, ranking) for ranking in rankings])
    names, groups = [*bench.arm["legs"], FUSION], np.array(bench.groups, object)
    return [
        {**bench.head, "query_class": name, **decompose.oracle(values[keep], names, groups[keep].tolist())}
        for name, keep in bench.classes()
    ]


def _files(bench: Bench, lists: list[tuple[str, Lists]]) -> list[dict[str, Any]]:
    """Gold files reached by each stage's list, whole and in the rows that a prompt has room for."""
    places = [(stage, ranking, depth) for stage, ranking in lists for depth in (bench.arm.get("final"), None)]
    found = [decompose.covered(bench.judged, ranking, file_of, depth) for _, ranking, depth in places]
    out = []
    for name, keep in bench.classes():
        measured = means(bench, keep, [each.shares for each in found], decompose.SHARES)
        for (stage, _, depth), each, row in zip(places, found, measured, strict=True):
            head = {**bench.head, "query_class": name, "stage": stage, "depth": depth}
            out.append({**head, **gold_files(each, keep), **row})
    return out


def gold_files(found: decompose.Covered, keep: Bools) -> dict[str, int]:
    return {"gold_files": int(found.gold[keep].sum()), "gold_files_reached": int(found.present[keep].sum())}


def means(bench: Bench, keep: Bools, tables: Sequence[Floats], names: Sequence[str]) -> list[dict[str, Any]]:
    """For each of ``tables`` (Q, len(names)) the means over the queries of ``keep``, and intervals; resampled at once,
    since drawing costs more than another column."""
    groups = [group for group, kept in zip(bench.groups, keep) if kept]
    estimate = intervals.means_with_intervals(np.column_stack(tables)[keep], groups)
    many = len(names)
    return [
        {
            "queries": estimate.query_count,
            "meetings": estimate.meeting_count,
            **{name: float(estimate.mean[begin + i]) for i, name in enumerate(names)},
            "intervals": {name: estimate.interval(begin + i) for i, name in enumerate(names)},
        }
        for begin in range(0, many * len(tables), many)
    ]
