"""What a query costs under each arm: arms interleaved with their control in one run, several passes.

A single run of one arm after another once showed a rank constant, a mere divisor, to cost half as much again. It did
not come back: whatever the machine did meanwhile fell on one arm.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

from opensearchpy import OpenSearch

from lossmap import progress
from lossmap.engine import opensearch
from lossmap.layout import Layout
from lossmap.search import arms, pin, pins
from lossmap.search.freeze import Bench
from lossmap.search.legs import require_whole

PASSES = 3
CONCURRENCY = 2
Send = Callable[[str, int], object]
"""(arm, number of a query): one whole request."""


def run(
    at: Layout, stage: str, family: str = "fusion", names: Sequence[str] = (), every: int = 1, passes: int = PASSES
) -> dict[str, Any]:
    """{bench, control, concurrency, passes, every, rows} over this bench's text and HNSW legs.

    ``names`` are arms of the family, all of its hybrid ones where none is named; the control is always among them.
    """
    found, bench = arms.families(at, stage)[family], Bench(at)
    chosen, queries = _chosen(found, names), range(0, len(bench.queries), every)
    rows = measure(_sender(bench, chosen, queries), list(chosen), queries, passes)
    card = {"bench": at.bench, "control": found["control"], "every": every, "passes": passes}
    return {**card, "concurrency": CONCURRENCY, "rows": rows}


def _sender(bench: Bench, chosen: Mapping[str, dict[str, Any]], queries: Sequence[int]) -> Send:
    """Requests and pipelines made ready, so that nothing but the request is timed."""
    live, clauses = bench.live, pins.Clauses(bench)
    pipelines = {name: pin.ensure_pipeline(live.client, arm) for name, arm in chosen.items()}
    bodies = {(name, i): clauses.request(arm, i) for name, arm in chosen.items() for i in queries}
    # A client for each worker: one client holds a single connection, and a second request would pay for a new one.
    clients: SimpleQueue[OpenSearch] = SimpleQueue()
    for _ in range(CONCURRENCY):
        clients.put(opensearch.client())

    def send(name: str, i: int) -> None:
        client, params = clients.get(), {"search_pipeline": pipelines[name], "request_timeout": 120}
        try:
            require_whole(client.search(index=live.index, body=bodies[name, i], params=params), live.index)
        finally:
            clients.put(client)

    return send


def _chosen(family: Mapping[str, Any], names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The named arms, the control first, their dense leg the graph's."""
    usable = {name: arm for name, arm in family["arms"].items() if arm["legs"] == pins.EXACT}
    wanted = dict.fromkeys([family["control"], *(names or usable)])
    return {name: {**usable[name], "legs": pins.GRAPH} for name in wanted}


def measure(send: Send, names: Sequence[str], queries: Sequence[int], passes: int = PASSES) -> list[dict[str, Any]]:
    """A row an arm and pass: arm, pass (from 1) and ``summary``. Every query goes to all arms before the next one, and
    which arm comes first changes from query to query, so that a slow minute falls on all alike.
    """
    rows = []
    for turn in range(1, passes + 1):
        jobs = [(names[(j + i) % len(names)], query) for i, query in enumerate(queries) for j in range(len(names))]
        with ThreadPoolExecutor(CONCURRENCY) as pool:
            timed = progress.bar(pool.map(lambda job: _timed(send, *job), jobs), "latency", len(jobs), "requests")
            samples: dict[str, list[float]] = {name: [] for name in names}
            for (name, _), milliseconds in zip(jobs, timed, strict=True):
                samples[name].append(milliseconds)
        rows += [{"arm": name, "pass": turn, **summary(samples[name])} for name in names]
    return rows


def _timed(send: Send, name: str, query: int) -> float:
    begin = time.perf_counter()
    send(name, query)
    return (time.perf_counter() - begin) * 1000


def summary(samples: Sequence[float]) -> dict[str, Any]:
    """{samples, p50, p95, p99, max, mean} in milliseconds to one decimal; nearest rank: index round(f n) - 1."""
    if not samples:
        return {"samples": 0}
    ordered = sorted(samples)
    shares = {"p50": 0.50, "p95": 0.95, "p99": 0.99}
    ranks = {name: ordered[max(round(share * len(ordered)) - 1, 0)] for name, share in shares.items()}
    whole = {**ranks, "max": ordered[-1], "mean": sum(ordered) / len(ordered)}
    return {"samples": len(ordered), **{name: round(value, 1) for name, value in whole.items()}}
