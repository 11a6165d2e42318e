"""The fast reader says what the careful one says, and leaves to it whatever is not as a rule writes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import planted
import pytest

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.judge.evaluate import PER_QUERY_HEADER
from lossmap.studies import compare, per_query

VALUES = {f"qmsum:m{place % 3}:{place:03d}": place / 7 for place in range(12)}
Rows = list[list[str]]


def same(folder: Path) -> None:
    found, careful = per_query.read(folder), compare.read_arm(folder)
    assert (found.query_ids, found.document, found.folder) == (careful.query_ids, careful.document, careful.folder)
    assert found.values.tolist() == careful.values.tolist()


def rewrite(folder: Path, change: Callable[[Rows], Rows]) -> None:
    path = folder / "per_query.csv.gz"
    canon.write_csv_gz(path, PER_QUERY_HEADER, change(list(canon.read_csv_gz(path))))


def spread(rows: Rows) -> Rows:
    """Every value another, so that a column in another's place shows."""
    return [[*row[:3], repr(float(row[3]) + place / 1000)] for place, row in enumerate(rows)]


def test_it_reads_what_the_careful_reader_reads(tmp_path: Path) -> None:
    planted.arm(tmp_path, "arm", VALUES)
    rewrite(tmp_path, spread)
    assert per_query._values(tmp_path / "per_query.csv.gz") is not None
    same(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows[::-1],
        lambda rows: rows[7:] + rows[:7],
        lambda rows: [["a,b", *row[1:]] for row in rows],
        lambda rows: [[name, query_id.replace("m0", 'm"0'), *rest] for name, query_id, *rest in rows],
    ],
    ids=["backwards", "rotated", "comma", "quote"],
)
def test_files_in_another_order_are_read_the_slow_way(tmp_path: Path, change: Callable[[Rows], Rows]) -> None:
    planted.arm(tmp_path, "arm", VALUES)
    rewrite(tmp_path, lambda rows: change(spread(rows)))
    assert per_query._values(tmp_path / "per_query.csv.gz") is None
    same(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: [*rows, rows[0]], "two values"),
        (lambda rows: rows[1:], "lack a measure"),
        (lambda rows: rows[7:], "do not cover"),
        (lambda rows: rows[:7] + rows, "two values"),
    ],
)
def test_what_is_wrong_is_still_refused(tmp_path: Path, change: Callable[[Rows], Rows], message: str) -> None:
    planted.arm(tmp_path, "arm", VALUES)
    rewrite(tmp_path, change)
    with pytest.raises(LossmapError, match=message):
        per_query.read(tmp_path)


def test_a_corpus_that_was_not_obtained_is_an_arm_without_queries(tmp_path: Path) -> None:
    planted.arm(tmp_path, "arm", VALUES)
    document = canon.read_json(tmp_path / "metrics.json")
    canon.write_json(tmp_path / "metrics.json", {**document, "rows": []})
    rewrite(tmp_path, lambda rows: [])
    assert per_query.read(tmp_path).query_ids == ()


def test_an_arm_is_read_once_until_its_files_change(tmp_path: Path) -> None:
    planted.arm(tmp_path, "arm", VALUES)
    first = per_query.read(tmp_path)
    assert per_query.read(tmp_path) is first
    rewrite(tmp_path, spread)
    assert per_query.read(tmp_path).values.tolist() != first.values.tolist()


def test_a_missing_arm_names_the_way_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(LossmapError, match="a file that a rule writes is not there"):
        per_query.read(tmp_path / "nowhere")
