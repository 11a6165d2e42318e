"""The control of Stage 4: no value of any query may differ, and the first that does is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import planted
import pytest

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.judge.measures import NAMES
from lossmap.studies import unmoved

VALUES = {"real:m1:000": 0.1 + 0.2, "real:m1:001": 0.25, "real:m2:000": 0.5}
CLASSES = {"real:m1:000": "lookup", "real:m1:001": "summarize", "real:m2:000": "lookup"}


def rows(folder: Path, values: dict[str, float], **other: Any) -> list[dict[str, Any]]:
    planted.arm(folder / "before", "rrf30-exact", VALUES, CLASSES)
    planted.arm(folder / "again", "rrf30-again", values, CLASSES, **other)
    return unmoved.rows(folder / "again", folder / "before", CLASSES)


def test_equal_arms_have_a_row_a_class_and_no_difference(tmp_path: Path) -> None:
    found = rows(tmp_path, VALUES)
    assert [(row["query_class"], row["queries"]) for row in found] == [("lookup", 2), ("summarize", 1), ("all", 3)]
    assert all(row["largest_difference"] == 0.0 and row["measures"] == len(NAMES) == 7 for row in found)
    assert {(row["corpus"], row["tier"], row["judged_by"]) for row in found} == {("real", "A", "human")}


def test_the_last_bit_of_one_value_raises_and_names_the_first_query(tmp_path: Path) -> None:
    """0.1 + 0.2 and 0.3 are one number in a document of six decimals, and two here."""
    with pytest.raises(LossmapError, match="query real:m1:000 is not what it was") as moved:
        rows(tmp_path, {**VALUES, "real:m1:000": 0.3, "real:m2:000": 0.4})
    assert moved.value.exit_code == 3
    assert "nDCG@10 0.3," in str(moved.value) and "nDCG@10 0.30000000000000004" in str(moved.value)


def test_a_query_that_only_one_arm_scored_is_a_difference(tmp_path: Path) -> None:
    with pytest.raises(LossmapError, match="query real:m2:000 is not what it was") as moved:
        rows(tmp_path, {query_id: VALUES[query_id] for query_id in list(VALUES)[:2]})
    assert moved.value.exit_code == 3 and "not scored" in str(moved.value)


@pytest.mark.parametrize("name", ["query_ids", "qrels", "index", "engine"])
def test_equal_values_of_another_index_are_no_control(tmp_path: Path, name: str) -> None:
    with pytest.raises(LossmapError, match="hashes is not what it was") as moved:
        rows(tmp_path, VALUES, hashes={**planted.HASHES, name: "other"})
    assert moved.value.exit_code == 3 and f'"{name}": "other"' in str(moved.value)


def test_a_row_that_says_something_else_is_a_difference(tmp_path: Path) -> None:
    rows(tmp_path, VALUES)
    document = canon.read_json(tmp_path / "again/metrics.json")
    document["rows"][0]["metrics"]["RR"] += 1e-6
    canon.write_json(tmp_path / "again/metrics.json", document)
    with pytest.raises(LossmapError, match="rows is not what it was") as moved:
        unmoved.rows(tmp_path / "again", tmp_path / "before", CLASSES)
    assert moved.value.exit_code == 3 and '"RR"' in str(moved.value)


def test_an_arm_is_not_its_own_control(tmp_path: Path) -> None:
    with pytest.raises(LossmapError, match="a control is compared with itself"):
        rows(tmp_path, VALUES, legs_of={"rrf30-exact-leg": "s"})
