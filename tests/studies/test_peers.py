"""The library table: what three libraries really give, at k = 10."""

from __future__ import annotations

from typing import Any

import pytest

from lossmap import canon
from lossmap.studies import peers


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    pytest.importorskip("ranx")
    pytest.importorskip("sklearn")
    return peers.table()


def rounded(values: dict[str, float | None]) -> list[float | None]:
    return [None if value is None else round(value, 6) for value in values.values()]


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("graded", [0.922495, 0.922495, 0.922495, 0.922495]),
        ("tie, gold sorts first", [0.63093, 1.0, 0.815465, 1.0]),
        ("tie, gold sorts last", [1.0, 0.63093, 0.815465, 0.63093]),
        ("tie, a digest's name", [1.0, 0.0, 0.349505, 0.0]),
        ("single precision", [0.63093, 1.0, 1.0, 1.0]),
        ("unjudged uses a rank", [0.63093] * 4),
        ("ideal truncated", [1.0] * 4),
        ("ideal whole", [0.495936, 0.495936, 1.0, None]),
        ("unanswered query", [1.0, None, None, 0.5]),
        ("empty ranking", [0.0, None, None, 0.0]),
        ("nothing relevant", [0.0] * 4),
    ],
)
def test_values_of_a_case(found: dict[str, Any], case: str, expected: list[float | None]) -> None:
    row = next(row for row in found["cases"] if row["case"] == case)
    assert rounded(row["values"]) == expected
    assert all(row["notes"].get(name) for name, value in row["values"].items() if value is None)


def test_the_table_is_complete_and_canonical(found: dict[str, Any]) -> None:
    assert [row["case"] for row in found["cases"]] == [case.name for case in peers.CASES]
    assert all(found["versions"].values())
    canon.dumps(found)


def test_an_absent_library_is_null_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "_version", lambda package: None)
    row = peers.table()["cases"][0]
    assert row["values"]["ranx"] is None and row["notes"]["ranx"] == "not installed"
    assert row["values"]["lossmap"] is not None
