"""How much of an effect is the approximate index: the same contrast over the graph and over the exact leg, and the
difference of the two, query by query.

An effect that is there over the graph alone is a property of the graph.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lossmap import transcript
from lossmap.errors import LossmapError
from lossmap.judge import intervals
from lossmap.judge.measures import NAMES
from lossmap.studies import compare

MEASURE = "nDCG@10"
COLUMN = NAMES.index(MEASURE)
Pair = tuple[Path, Path]
"""Folders of an arm and of its control."""


def rows(exact: Pair, graph: Pair, classes: Mapping[str, str], factor: Collection[str] = ()) -> list[dict[str, Any]]:
    """Per corpus and class the effect over either leg, and ``difference`` = over the graph minus over the exact leg.

    ``factor`` as in compare.compare, for either pair; between the pairs the index may differ and the judgements not.
    """
    _require_comparable(exact[1], graph[1])
    query_ids = compare.read_arm(exact[0]).query_ids
    differences = _effect(graph) - _effect(exact)
    tables = [compare.compare(*pair, classes, factor)["rows"] for pair in (exact, graph)]
    return [
        _row(over_exact, over_graph, _of_row(over_exact, query_ids, classes), query_ids, differences)
        for over_exact, over_graph in zip(*tables, strict=True)
    ]


def _effect(pair: Pair) -> NDArray[np.float64]:
    arm, control = map(compare.read_arm, pair)
    return (arm.values - control.values).reshape(-1, len(NAMES))[:, [COLUMN]]


def _of_row(row: Mapping[str, Any], query_ids: tuple[str, ...], classes: Mapping[str, str]) -> NDArray[np.bool_]:
    wanted, corpus = row["query_class"], row["corpus"]
    mine = [q.split(":", 1)[0] == corpus and (wanted == "all" or classes[q] == wanted) for q in query_ids]
    return np.array(mine)


def _row(
    exact: Mapping[str, Any],
    graph: Mapping[str, Any],
    keep: NDArray[np.bool_],
    query_ids: tuple[str, ...],
    differences: NDArray[np.float64],
) -> dict[str, Any]:
    groups = [compare.meeting_of(query_id) for query_id, kept in zip(query_ids, keep, strict=True) if kept]
    found = intervals.means_with_intervals(differences[keep], groups)
    return {
        **{name: exact[name] for name in ("corpus", "judged_by", "query_class", "queries", "meetings")},
        "tier": transcript.worst((exact["tier"], graph["tier"])),
        "measure": MEASURE,
        "exact": exact["deltas"][MEASURE],
        "hnsw": graph["deltas"][MEASURE],
        "difference": float(found.mean[0]),
        "intervals": {
            "exact": exact["intervals"][MEASURE],
            "hnsw": graph["intervals"][MEASURE],
            "difference": found.interval(0),
        },
    }


def _require_comparable(exact: Path, graph: Path) -> None:
    """Refuse two pairs that were asked or judged differently: their difference would hold that too."""
    one, other = (compare.read_arm(folder).document["hashes"] for folder in (exact, graph))
    for name in ("query_ids", "qrels"):
        if one[name] != other[name]:
            raise LossmapError(
                f"the two effects differ in {name}, not in the leg alone",
                where=f"{graph} against {exact}",
                observed=other[name],
                expected=one[name],
                next_command="measure both pairs again over the same queries and judgements",
                exit_code=2,
            )
