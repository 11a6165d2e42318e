"""The control of a stage that should not touch the ranked list: the same rows as before it, byte for byte.

A margin would let a small loss through. What the router, the counted tier and the digest leg may do to the chunk plane
is nothing, so the difference that is allowed is none, in any measure of any query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.judge.measures import NAMES
from lossmap.studies import compare
from lossmap.studies.compare import Arm


def rows(folder: Path, before: Path, class_of: Mapping[str, str]) -> list[dict[str, Any]]:
    """One row a class of the arm in ``folder``, held against the arm in ``before``; raises with exit 3 at a difference.

    ``class_of``: query class of each query. Compared are the values of every query in full precision, the rows of both
    documents as bytes, and the hashes of queries, judgements, index and engine. Raises as well where the two arms read
    one leg: an arm that is compared with itself cannot move.
    """
    again, first = compare.read_arm(folder), compare.read_arm(before)
    _require_two_freezes(again, first)
    _require_equal_queries(again, first)
    for part in ("hashes", "rows"):
        ours, theirs = (canon.dumps(arm.document[part]) for arm in (again, first))
        if ours != theirs:
            raise _moved(part, again, first, _first_line(ours, theirs))
    difference = np.abs(again.values - first.values)
    return [_row(row, difference[_members(row["query_class"], again, class_of)]) for row in again.document["rows"]]


def _members(query_class: str, arm: Arm, class_of: Mapping[str, str]) -> np.ndarray:
    return np.array([query_class in ("all", class_of[query_id]) for query_id in arm.query_ids])


def _row(row: Mapping[str, Any], difference: np.ndarray) -> dict[str, Any]:
    queries, measures = difference.shape
    return {
        **{name: row[name] for name in ("corpus", "tier", "judged_by", "query_class")},
        "queries": queries,
        "measures": measures,
        "largest_difference": float(difference.max()),
    }


def _require_two_freezes(again: Arm, first: Arm) -> None:
    shared = set(again.document["arm"]["legs"]) & set(first.document["arm"]["legs"])
    if shared:
        raise LossmapError(
            "a control is compared with itself",
            where=again.folder,
            observed=f"both arms read {', '.join(sorted(shared))}",
            expected="legs that were frozen again",
            next_command="name the legs of both arms in workflow/config/arms.yaml",
            exit_code=2,
        )


def _require_equal_queries(again: Arm, first: Arm) -> None:
    """The lines of both per-query files without the arm's name; the first query that has another line is named."""
    ours, theirs = (_values(arm.folder) for arm in (again, first))
    for query_id in sorted(ours.keys() | theirs.keys()):
        if ours.get(query_id) != theirs.get(query_id):
            seen, wanted = (_differing(a.get(query_id), b.get(query_id)) for a, b in ((ours, theirs), (theirs, ours)))
            raise _moved(f"query {query_id}", again, first, (seen, wanted))


def _values(folder: Path) -> dict[str, tuple[str, ...]]:
    """Query id to its values as written, by measure name."""
    found: dict[str, dict[str, str]] = {}
    for _, query_id, measure, value in canon.read_csv_gz(folder / "per_query.csv.gz"):
        found.setdefault(query_id, {})[measure] = value
    return {query_id: tuple(f"{name} {mine.get(name)}" for name in NAMES) for query_id, mine in found.items()}


def _differing(mine: Sequence[str] | None, other: Sequence[str] | None) -> str:
    if mine is None:
        return "not scored"
    return ", ".join(value for i, value in enumerate(mine) if other is None or value != other[i])


def _first_line(ours: str, theirs: str) -> tuple[str, str]:
    pairs = zip([*ours.splitlines(), "the end"], [*theirs.splitlines(), "the end"])
    return next((a.strip(), b.strip()) for a, b in pairs if a != b)


def _moved(what: str, again: Arm, first: Arm, lines: tuple[str, str]) -> LossmapError:
    return LossmapError(
        f"the chunk plane moved: {what} is not what it was",
        where=f"{again.folder} against {first.folder}",
        observed=lines[0],
        expected=lines[1],
        next_command="find what wrote to the index or to its code since the control, then freeze and score both again",
        exit_code=3,
    )
