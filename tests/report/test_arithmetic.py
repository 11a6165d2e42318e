"""The identities of cited numbers: each formula by hand, what is known to fail, and how exactly a document adds up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lossmap.errors import LossmapError
from lossmap.report import arithmetic, documents, tables
from lossmap.report.claims import Book


@pytest.mark.parametrize(
    ("kind", "operands", "value"),
    [
        ("share", [(3, 0), (1, 0)], 0.75),
        ("others_share", [(1, 0), (2, 0), (5, 0)], 0.875),
        ("least", [(3, 0), (-1, 0)], -1),
        ("most", [(3, 0), (-1, 0)], 3),
        ("argmax", [((0, 0), (7.1, 0)), ((0.1, 0), (7.1, 0)), ((0.5, 0), (6, 0))], 0),
        ("at_most", [(0.1, 0), (0, 0), (0.1, 0), (0.25, 0)], 2),
        ("at_least", [(0.5, 0), (0, 0), (0.5, 0), (1, 0)], 2),
        ("last_rank", [(30, 0)], -1),
        ("last_rank", [(31, 0)], 0),
        ("last_rank", [(196, 0)], 21),
        ("last_rank", [(500, 0)], 40),
    ],
)
def test_a_formula(kind: str, operands: list[Any], value: float) -> None:
    assert arithmetic.IDENTITIES[kind](*operands)[0] == pytest.approx(value)


def test_what_fails_is_known_and_still_fails() -> None:
    for record in arithmetic.check_published():
        assert record["ok"] == (not record["why"]), record["id"]


@pytest.mark.parametrize(
    ("off", "half", "ok", "apart"),
    [(0.0, 0.005, True, 0), (0.005, 0.005, True, 0), (0.01, 0.005, True, 1), (0.9, 0.005, False, 90), (0, 0, True, 0),
     (0.1, 0, False, None)],
)  # fmt: skip
def test_how_far_a_number_is_from_what_the_others_give(off: float, half: float, ok: bool, apart: int | None) -> None:
    assert arithmetic._apart(off, half, ok) == apart


def test_a_weight_is_a_name_and_is_never_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = {name: dict(record) for name, record in documents.published().items()}
    numbers["004.stages.mid.SciFact.best"]["value"] = 0.1
    monkeypatch.setattr(documents, "published", lambda: numbers)
    wrong = {record["id"] for record in arithmetic.check_published() if not record["ok"] and not record["why"]}
    assert wrong == {"004.stages.mid.SciFact.best"}


def test_the_stage_tables_of_the_note_are_off_by_rounding_alone() -> None:
    rows = {(row["part"], row["identity"]): row for row in arithmetic.tally_published("004")}
    whole = rows["stages", "together"]
    assert (whole["checked"], whole["one"], whole["more"], whole["beyond_rounding"]) == (132, 28, 0, 0)
    assert rows["split", "the mean of the split weighted by its queries"]["beyond_rounding"] == 5
    assert [identity for part, identity in rows if part == "prose"] == ["together"]
    last = rows["all", "together"]
    assert last["checked"] == last["exact"] + last["one"] + last["more"]


def test_the_tally_is_cited_by_part(root: Path) -> None:
    book = Book(root)
    assert (book.tally("004", "stages"), book.tally("004", "stages", "one")) == ("132", "28")
    with pytest.raises(LossmapError, match="unknown part 'stage'"):
        book.tally("004", "stage")


@pytest.mark.parametrize("name", [name for name in tables.specifications() if name.startswith("replay.published")])
def test_every_cited_table_of_the_note_is_rendered(root: Path, name: str) -> None:
    table = tables.build(Book(root), name)
    assert table.rows and all(len(row) == len(table.columns) for row in table.rows)
    if name == "replay.published-groups":
        assert table.rows[-1] == ("others-to", "1,967", "–", "–", "−0.01")
