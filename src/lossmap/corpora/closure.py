"""Which meetings of a generated corpus an index holds, so that whole questions stay answerable.

Choosing by gold closure takes queries one by one, with every meeting that is gold for them or that their answer must
leave out, as long as the budget holds (spec/harness 5.6); the first N by key would cut most of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

CLOSED_OVER = ("multi_file", "aggregation")

Row = Mapping[str, Any]


def needed(row: Row) -> set[str]:
    """Meetings without which the answer to a query would be another one."""
    return {*row["gold_files"], *row["related_files"]}


def close(queries: Iterable[Row], keys: Sequence[str], budget: int) -> set[str]:
    """``budget`` meetings: those of queries taken in turn, a class after another, then the first keys left over.

    A query whose meetings do not fit any more is passed over; a smaller one after it may still fit.
    """
    exact = sorted((row for row in queries if row["surface"] == "exact"), key=lambda row: row["query_id"])
    turns = [[row for row in exact if row["query_class"] == name] for name in CLOSED_OVER]
    kept: set[str] = set()
    for row in (row for turn in zip_longest(*turns) for row in turn if row is not None):
        if len(kept | needed(row)) <= budget:
            kept |= needed(row)
    rest = (key for key in keys if key not in kept)
    return kept | {key for key, _ in zip(rest, range(budget - len(kept)))}


def table(queries: Iterable[Row], keys: Sequence[str], kept: set[str]) -> dict[str, Any]:
    """Queries per class of the exact wording that the chosen meetings close, beside those of the first N by key."""
    exact = [row for row in queries if row["surface"] == "exact"]
    first = set(keys[: len(kept)])
    return {
        "meetings": len(kept),
        "of": len(keys),
        "classes": [
            {
                "query_class": name,
                "queries": len(mine),
                "closed": sum(kept.issuperset(needed(row)) for row in mine),
                "closed_by_first": sum(first.issuperset(needed(row)) for row in mine),
            }
            for name in sorted({row["query_class"] for row in exact})
            for mine in [[row for row in exact if row["query_class"] == name]]
        ],
    }


def uncounted(queries: Iterable[Row], closed: Iterable[Row]) -> dict[str, int]:
    """Queries per class that are not among the closed ones."""
    left = Counter(row["query_class"] for row in queries)
    left.subtract(row["query_class"] for row in closed)
    return {name: count for name, count in sorted(left.items()) if count}
