"""Whether the engine heeds each knob of a hybrid request: two values must give two orders, a written default must not.

OpenSearch 2.19 takes 60 whatever rank constant is asked, and says nothing; a sweep over a dead knob is a row of equal
numbers. The values here lie far apart, so that a live knob shows on a few queries; none of them is an arm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lossmap import layout
from lossmap.errors import LossmapError
from lossmap.layout import Layout
from lossmap.search import bodies, pin
from lossmap.search.freeze import Bench
from lossmap.search.legs import Live

Stanza = dict[str, Any]
Ask = Callable[[Stanza, int], dict[str, Any]]
"""(settings, number of a query) to the whole request, its pipeline inside."""

QUERIES = 24
MIN_MAX: Stanza = {"normalization": "min_max", "combination": "arithmetic_mean"}
BARE_RRF = [{"score-ranker-processor": {"combination": {"technique": "rrf"}}}]
BARE_NORMALIZATION: list[dict[str, Any]] = [{"normalization-processor": {}}]

ALIVE: dict[str, tuple[Stanza, Stanza]] = {
    "rank_constant": ({"rank_constant": 1}, {"rank_constant": 1000}),
    "weights of rrf": ({"weights": [0.9, 0.1]}, {"weights": [0.1, 0.9]}),
    "weights of normalization": ({**MIN_MAX, "weights": [0.9, 0.1]}, {**MIN_MAX, "weights": [0.1, 0.9]}),
    "fusion": ({}, MIN_MAX),
    "normalization": (MIN_MAX, {**MIN_MAX, "normalization": "l2"}),
    "normalization z_score": (MIN_MAX, {**MIN_MAX, "normalization": "z_score"}),
    "combination": (MIN_MAX, {**MIN_MAX, "combination": "harmonic_mean"}),
    "combination geometric": (
        {**MIN_MAX, "combination": "geometric_mean"},
        {**MIN_MAX, "combination": "harmonic_mean"},
    ),
    "leg_depth": ({"leg_depth": 6}, {"leg_depth": 48}),
    "size": ({"size": 6}, {"size": 48}),
    "k": ({"k": 6}, {"k": 192}),
}
INERT: dict[str, tuple[Stanza, Stanza]] = {
    "rank_constant": ({}, {"rank_constant": pin.RANK_CONSTANT}),
    "rank_constant of the engine": ({"processors": BARE_RRF}, {"rank_constant": 60}),
    "normalization of the engine": ({"processors": BARE_NORMALIZATION}, MIN_MAX),
    "equal weights of rrf": ({}, {"weights": [0.5, 0.5]}),
    "equal weights of normalization": (MIN_MAX, {**MIN_MAX, "weights": [0.5, 0.5]}),
    "leg_depth of size": ({}, {"pagination_depth": 48}),
}


def run(at: Layout, text: str = "bm25", dense: str = "hnsw", queries: int = QUERIES) -> dict[str, Any]:
    """{rows} of ``check`` on ``queries`` queries spread over this bench, through the live engine.

    Without queries there is no row: a corpus that could not be had says nothing of a knob.
    """
    bench = Bench(at)
    if not bench.queries:
        return {"rows": []}
    specs = layout.leg(at, text), layout.leg(at, dense)
    chosen = range(0, len(bench.queries), max(1, len(bench.queries) // queries))

    def ask(settings: Stanza, i: int) -> dict[str, Any]:
        k = settings.get("k", specs[1]["k"])
        return request(settings, [bench.clause(specs[0], i), bench.clause({**specs[1], "k": k}, i)])

    return {"rows": [{"bench": at.bench, **row} for row in check(bench.live, ask, list(chosen)[:queries])]}


def request(settings: Stanza, clauses: list[dict[str, Any]]) -> dict[str, Any]:
    """A hybrid request of 48 rows with ``settings``; its pipeline travels along, so nothing is left in the engine."""
    body = bodies.hybrid(clauses, settings.get("size", 48), settings.get("leg_depth"))
    if "pagination_depth" in settings:
        body["query"]["hybrid"]["pagination_depth"] = settings["pagination_depth"]
    processors = settings.get("processors") or pin.processors(settings)
    return {**body, "search_pipeline": {"phase_results_processors": processors}}


def check(live: Live, ask: Ask, queries: list[int]) -> list[dict[str, Any]]:
    """A row a knob: knob, values, expected (alive or inert), queries, changed (how many orders differ), alive."""
    orders: dict[str, dict[str, list[int]]] = {}

    def asked(settings: Stanza) -> dict[str, list[int]]:
        if repr(settings) not in orders:
            requests = {str(i): ask(settings, i) for i in queries}
            orders[repr(settings)] = pin.live_orders(live.client, live.index, None, requests, live.row_of)
        return orders[repr(settings)]

    expected = {"alive": ALIVE, "inert": INERT}
    return [
        _row(knob, kind, pair, asked(pair[0]), asked(pair[1]))
        for kind in expected
        for knob, pair in expected[kind].items()
    ]


def _row(
    knob: str, kind: str, pair: tuple[Stanza, Stanza], left: Mapping[str, list[int]], right: Mapping[str, list[int]]
) -> dict[str, Any]:
    changed = sum(_differ(left[query], right[query]) for query in left)
    counts = {"queries": len(left), "changed": changed, "alive": changed > 0}
    return {"knob": knob, "values": list(pair), "expected": kind, **counts}


def _differ(left: list[int], right: list[int]) -> bool:
    """Whether two orders differ on the rows that both requests asked for: a longer list alone is no other order."""
    shared = min(len(left), len(right))
    return left[:shared] != right[:shared]


def require(report: Mapping[str, Any]) -> None:
    """Refuse (exit 2) an engine with a dead knob, or one whose default is not what it is written to be."""
    for row in report["rows"]:
        if row["alive"] != (row["expected"] == "alive"):
            raise LossmapError(
                "a knob of the engine is dead" if row["expected"] == "alive" else "a written default is not inert",
                where=f"{row['knob']}: {row['values']}",
                observed=f"{row['changed']} of {row['queries']} orders changed",
                expected="some" if row["expected"] == "alive" else "none",
                next_command="LOSSMAP_ENGINES=embedded lossmap engine up, or a cluster of OpenSearch 3.6",
                exit_code=2,
            )
