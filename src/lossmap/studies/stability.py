"""The chapter on stability: one unchanged corpus, indexed again and again, by the broken and by the total order of its
segments, by another splitter, and into graphs that were built along other paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from lossmap import canon, layout
from lossmap.judge import intervals
from lossmap.layout import Layout
from lossmap.studies import bands, boundaries, compare, scores, share
from lossmap.studies.stage import classes

STAGE = bands.STAGE
RECHUNKED = ("index", "qrels")
"""Other chunks are another index and other judged documents: what is under test where boundaries move."""
REBUILT = ("index",)


def order(at: Layout, stage: str) -> dict[str, Any]:
    """order.json: what a reshuffled segment table does to chunks and scores, under either order, and the splitter."""
    spec = scores.chapter(at, stage)
    shuffled = [*spec["broken"], *spec["total"]]
    order_of = {index: _stanza(at, index).get("order", bands.TOTAL) for index in shuffled}
    orders = {name: [i for i in shuffled if order_of[i] == name] for name in dict.fromkeys(order_of.values())}
    return {
        "indexes": [_index(at, stage, index) for index in shuffled],
        "ties": [row for index in (spec["control"], *spec["broken"][:1]) for row in _ties(at, index)],
        "orders": [_order(at, stage, name, indexes) for name, indexes in orders.items()],
        "bands": [row for name, indexes in orders.items() for row in _bands(at, stage, name, indexes)],
        "splitter": _splitter(at, stage, spec["control"], spec["splitter"]),
        "intervals": intervals.card(),
    }


def _stanza(at: Layout, index: str) -> dict[str, Any]:
    return layout.load(at.scale, index).stanza


def _chunking(at: Layout, index: str) -> dict[str, Any]:
    return canon.read_json(layout.load(at.scale, index).index_folder / "manifest.json")["chunking"]


def _index(at: Layout, stage: str, index: str) -> dict[str, Any]:
    stanza, chunking = _stanza(at, index), _chunking(at, index)
    return {
        "index": index,
        "order": stanza.get("order", bands.TOTAL),
        "shuffle": stanza.get("shuffle"),
        "chunks": chunking["chunks"],
        "chunks_sha256": chunking["chunks_sha256"],
        "rows": scores.rows(at, stage, [(index, arm) for arm in scores.without_graph(at, stage)]),
    }


def _ties(at: Layout, index: str) -> list[dict[str, Any]]:
    """Segments that share their start with another of their file, a row a corpus: what the broken order leaves open."""
    held = layout.load(at.scale, index)
    found = []
    for key in held.documents:
        injection = canon.read_json(held.injection(key) / "manifest.json")
        corpus, counts = injection["corpus"], injection["counts"]
        found.append(
            {
                "index": index,
                **{"corpus": corpus["key"], "tier": corpus["tier"], "judged_by": corpus["judged_by"]},
                "timings": injection["timing_sources"],
                "tie_groups": counts["start_tie_groups"],
                "segments": counts["segments_in_start_ties"],
                "of_segments": counts["segments"],
            }
        )
    return found


def _order(at: Layout, stage: str, name: str, indexes: Sequence[str]) -> dict[str, Any]:
    """Whether the builds of one order are one index: the same bytes of chunks, and the same value of every query."""
    tables = {_chunking(at, index)["chunks_sha256"] for index in indexes}
    texts = {index: boundaries.texts(layout.load(at.scale, index).index_folder) for index in indexes}
    pairs = [{"a": a, "b": b, **boundaries.apart(texts[a], texts[b])} for a, b in combinations(indexes, 2)]
    equal = all(_equal(at, stage, indexes, arm) for arm in scores.without_graph(at, stage))
    return {
        "order": name,
        "indexes": list(indexes),
        "identical": len(tables) <= 1 and equal,
        "chunk_tables": len(tables),
        "values_identical": equal,
        "pairs": pairs,
    }


def _equal(at: Layout, stage: str, indexes: Sequence[str], arm: str) -> bool:
    first, *others = [compare.read_arm(scores.scored(at, index, stage) / arm) for index in indexes]
    return all(first.query_ids == o.query_ids and np.array_equal(first.values, o.values) for o in others)


def _bands(at: Layout, stage: str, name: str, indexes: Sequence[str]) -> list[dict[str, Any]]:
    counts = [_chunking(at, index)["chunks"] for index in indexes]
    head = {"order": name, "chunk_counts_min": min(counts), "chunk_counts_max": max(counts)}
    found = []
    for arm in scores.without_graph(at, stage):
        pairs = {(a, b): _compare(at, stage, (a, arm), (b, arm), RECHUNKED) for a, b in combinations(indexes, 2)}
        for row in bands.spreads(scores.rows(at, stage, [(index, arm) for index in indexes])):
            found.append({**head, "arm": arm, **row, "largest_delta": _largest(pairs, row)})
    return found


def _largest(pairs: Mapping[tuple[str, str], Mapping[str, Any]], band: Mapping[str, Any]) -> dict[str, Any] | None:
    """The pair of builds that are furthest apart in nDCG@10; ``delta`` = a minus b, never below zero."""
    if not pairs:
        return None
    of_pair = {
        pair: next(r for r in table["rows"] if all(r[k] == band[k] for k in ("corpus", "query_class")))
        for pair, table in pairs.items()
    }
    (a, b), row = max(of_pair.items(), key=lambda item: abs(item[1]["deltas"][bands.MEASURE]))
    delta, (low, high) = row["deltas"][bands.MEASURE], row["intervals"][bands.MEASURE]["meetings"]
    if delta < 0:
        a, b, delta, low, high = b, a, -delta, -high, -low
    return {"a": a, "b": b, "delta": delta, "interval": [low, high]}


def _splitter(at: Layout, stage: str, control: str, index: str) -> dict[str, Any]:
    """Another rule of sentence ends, over the same segments in the same order."""
    found = boundaries.apart(*(boundaries.texts(layout.load(at.scale, i).index_folder) for i in (control, index)))
    tables = [_compare(at, stage, (index, a), (control, a), RECHUNKED) for a in scores.without_graph(at, stage)]
    return {
        "control": control,
        "index": index,
        "splitters": {i: _chunking(at, i)["splitter"]["name"] for i in (control, index)},
        **{name: found[name] for name in ("files", "files_differ", "chunks_differ")},
        "chunks_control": found["chunks_a"],
        "chunks": found["chunks_b"],
        "only_in_control": found["only_in_a"],
        "only_in_index": found["only_in_b"],
        "rows": [{"arm": table["arm"], **row} for table in tables for row in table["rows"]],
    }


def _compare(
    at: Layout, stage: str, arm: tuple[str, str], control: tuple[str, str], factor: Sequence[str]
) -> dict[str, Any]:
    """Of two (index, arm), the first minus the second."""
    a, b = (scores.scored(at, index, stage) / name for index, name in (arm, control))
    return compare.compare(a, b, classes(layout.load(at.scale, control[0])), factor)


def graph(at: Layout, stage: str) -> dict[str, Any]:
    """graph.json: what the graph finds, and what it scores, along every build path and with every cure."""
    spec = scores.chapter(at, stage)
    builds = {index: _identity(at, index) for index in spec["graphs"]}
    paths = [index for index, identity in builds.items() if "vectors" not in identity]
    return {
        "builds": [_build(at, stage, index, identity) for index, identity in builds.items()],
        "deltas": [row for index in builds for row in _deltas(at, stage, index, spec["control"])],
        "band": [
            {"arm": arm, "indexes": paths, **row}
            for arm in scores.over_graph(at, stage)
            for row in bands.spreads(scores.rows(at, stage, [(index, arm) for index in paths]))
        ],
        "ann_share": [row for index in builds for row in _fusion_share(at, stage, index, spec["control"])],
        "intervals": intervals.card(),
    }


def _identity(at: Layout, index: str) -> dict[str, Any]:
    return canon.read_json(layout.load(at.scale, index).index_folder / "manifest.json")["identity"]


def _build(at: Layout, stage: str, index: str, identity: Mapping[str, Any]) -> dict[str, Any]:
    manifest = canon.read_json(layout.load(at.scale, index).index_folder / "manifest.json")
    arms = scores.over_graph(at, stage)
    document = canon.read_json(scores.scored(at, index, stage) / next(iter(arms)) / "metrics.json")
    found = document["ann"]
    return {
        "index": index,
        "path": path(identity),
        "writing": identity.get("writing", {}),
        "vectors": identity.get("vectors", "own"),
        "segments": manifest["state"]["segments"],
        **{f"recall{found['depth']}{by}_mean": found[f"recall{by}_mean"] for by in ("", "_by_score")},
        "short_share": found["short_share"],
        "hits_mean": found["hits_mean"],
        "arms": scores.rows(at, stage, [(index, arm) for arm in arms]),
    }


WORDS: dict[str, Callable[[Any], str]] = {
    "bulk": lambda size: f"requests of {size} documents",
    "refresh": lambda each: "searchable after each" if each else "",
    "shuffle": lambda _: "in shuffled order",
    "merge": lambda merged: "" if merged else "not merged",
}
VECTORS = {"distinct": "distinct vectors alone, a hit standing for its copies", "jittered": "vectors moved apart"}


def path(identity: Mapping[str, Any]) -> str:
    """How the documents came into the index, in words; what an identity does not name is as for every index."""
    writing = identity.get("writing", {})
    said = [WORDS[name](writing[name]) for name in WORDS if name in writing]
    said.append(VECTORS.get(identity.get("vectors", ""), ""))
    return ", ".join(filter(None, said)) or "as every index: in order, merged to one segment"


def _deltas(at: Layout, stage: str, index: str, control: str) -> list[dict[str, Any]]:
    """A build against the control's graph, arm by arm, and against the exact leg, which has no build path."""
    found = []
    for arm, exact in scores.over_graph(at, stage).items():
        for other in (exact, *([arm] if index != control else [])):
            table = _compare(at, stage, (index, arm), (control, other), REBUILT)
            head = {"index": index, "control": control, "arm": arm, "control_arm": other}
            found.append({**head, "factor": table["factor"], "rows": table["rows"]})
    return found


def _fusion_share(at: Layout, stage: str, index: str, control: str) -> list[dict[str, Any]]:
    """How much of what fusion seems to add to a dense graph leg is a repair of that graph."""
    over_graph, arms = scores.over_graph(at, stage), layout.arms(at)["stages"][stage]["arms"]
    of_mode = {arms[arm]["mode"]: arm for arm in over_graph}
    pair = (of_mode["hybrid"], of_mode["semantic"])
    graph_pair = tuple(scores.scored(at, index, stage) / arm for arm in pair)
    exact_pair = tuple(scores.scored(at, control, stage) / over_graph[arm] for arm in pair)
    rows = share.rows(exact_pair, graph_pair, classes(layout.load(at.scale, control)))  # type: ignore[arg-type]
    head = {"what": "fusion", "index": index, "arm": pair[0], "control_arm": pair[1]}
    return [{**head, **row} for row in rows]


STUDIES: dict[str, Callable[[Layout, str], Any]] = {"order": order, "graph": graph}
