"""The rules that hold the offline fusion against the live engine, row for row: one arm, or the arms of a chapter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lossmap import layout
from lossmap.errors import LossmapError
from lossmap.fuse import ABSENT
from lossmap.index import settle
from lossmap.layout import Layout
from lossmap.search import arms, bodies, legs, pin, pipeline
from lossmap.search.freeze import Bench, unchanged
from lossmap.search.legs import Leg

Stanza = Mapping[str, Any]
EXACT, GRAPH = ["bm25", "exact"], ["bm25", "hnsw"]
ROWS = 48
EVERY = 20
SHOWN = 20


def pin_arm(at: Layout, stage: str, name: str) -> dict[str, Any]:
    """The arm's offline order against the live engine's for every ``pin``-th query: counts and first differences."""
    arm, bench = layout.arm(at, stage, name), Bench(at)
    if "pin" not in arm:
        raise LossmapError(
            "this arm is not pinned",
            where=name,
            observed=sorted(arm),
            expected="a stanza with pin: N, and a fusion to hold against the engine",
            next_command="add pin: N to its stanza in workflow/config/arms.yaml",
            exit_code=2,
        )
    return _undisturbed(bench, [(name, arm, arm["pin"])])[0]


def run(at: Layout, stage: str, *families: str) -> dict[str, Any]:
    """{rows}: every fusion of ``families`` over this bench's text and HNSW legs, the control on every query, the
    others on every EVERY-th; then the control over its exact legs, which the engine computes by script. An arm that
    stands in several families is pinned once.

    A row: bench, arm, legs, every, rows, queries, mismatches, differences, index_sha256, engine. The live vector clause
    asks the graph for as many neighbours as the frozen leg did.
    """
    found, bench = arms.families(at, stage), Bench(at)
    asked: dict[tuple[str, ...], tuple[str, Stanza, int]] = {}
    for family in families or ("fusion",):
        control = found[family]["control"]
        for arm_id, arm in found[family]["arms"].items():
            if arm["legs"] == EXACT:
                every = 1 if arm_id == control else EVERY
                before = asked.get((arm_id, *GRAPH), (arm_id, arm, every))
                asked[arm_id, *GRAPH] = (arm_id, {**arm, "legs": GRAPH}, min(every, before[2]))
        asked.setdefault((control, *EXACT), (control, found[family]["arms"][control], EVERY))
    rows = _undisturbed(bench, list(asked.values()))
    return {
        "rows": [
            {"bench": at.bench, "legs": arm["legs"], **row}
            for (_, arm, _), row in zip(asked.values(), rows, strict=True)
        ]
    }


def _undisturbed(bench: Bench, asked: Sequence[tuple[str, Stanza, int]]) -> list[dict[str, Any]]:
    """A row for each (id, arm, every); the index must stand as it stood."""
    live, clauses = bench.live, Clauses(bench)
    before = settle.state(live.client, live.index)
    rows = [_held(bench, clauses, name, arm, every) for name, arm, every in asked]
    unchanged(before, settle.state(live.client, live.index), live.index)
    return rows


class Clauses:
    """The clause of each leg and query, written once for all arms."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._known: dict[tuple[str, int], dict[str, Any]] = {}

    def of(self, leg: str, i: int) -> dict[str, Any]:
        if (leg, i) not in self._known:
            self._known[leg, i] = self._bench.clause(layout.leg(self._bench.at, leg), i)
        return self._known[leg, i]

    def request(self, arm: Stanza, i: int) -> dict[str, Any]:
        """The arm's hybrid request for query ``i``; the pipeline is not part of it."""
        return bodies.hybrid([self.of(leg, i) for leg in arm["legs"]], arm["size"], arm.get("leg_depth"))


def _held(bench: Bench, clauses: Clauses, name: str, arm: Stanza, every: int) -> dict[str, Any]:
    """The arm's offline order against the live one on every ``every``-th query."""
    chosen, rows = range(0, len(bench.queries), every), min(arm["size"], ROWS)
    depth = arm.get("leg_depth", arm["size"])
    index = bench.manifest["index_sha256"]
    frozen = [whole(legs.of_index(bench.at, leg, index), depth) for leg in arm["legs"]]
    requests = {bench.queries[i].query_id: clauses.request(arm, i) for i in chosen}
    offline = {bench.queries[i].query_id: pin.engine_order(pipeline.fused(arm, frozen, i))[:rows] for i in chosen}
    pipeline_name = pin.ensure_pipeline(bench.live.client, arm)
    found = pin.live_orders(bench.live.client, bench.live.index, pipeline_name, requests, bench.row_of)
    live = {query_id: order[:rows] for query_id, order in found.items()}
    compared, differences = pin.compare(offline.__getitem__, live)
    return {
        "arm": name,
        "every": every,
        "rows": rows,
        "queries": compared,
        "mismatches": len(differences),
        "differences": [vars(d) for d in differences[:SHOWN]],
        "index_sha256": index,
        "engine": bench.manifest["engine"],
    }


def whole(leg: Leg, depth: int) -> Leg:
    """The leg, with no hits below its last where the engine had no more to give: a graph search ends at its k."""
    width = leg.rows.shape[1]
    if depth <= width or leg.meta.get("k", depth) > width:
        return leg
    more = ((0, 0), (0, depth - width))
    return Leg(leg.query_ids, np.pad(leg.rows, more, constant_values=ABSENT), np.pad(leg.scores, more), leg.meta)


def require_pinned(report: Mapping[str, Any]) -> None:
    """Refuse (exit 3) arms whose offline order is not the live engine's; ``report`` is a row or {rows}."""
    for row in report.get("rows", [report]) if "arm" not in report else [report]:
        if row["mismatches"]:
            raise LossmapError(
                "the offline fusion is not the engine's",
                where=row["arm"],
                observed=f"{row['mismatches']} of {row['queries']}; first: {row['differences'][:1]}",
                expected="0 mismatches",
                next_command="read search/pin.py against the engine's version",
                exit_code=3,
            )
