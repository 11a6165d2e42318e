"""Rows of tables beside other results, beside cited numbers and corpus beside corpus; claims that a scale may lack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tree
from test_chapters import head, stage

from lossmap.errors import LossmapError
from lossmap.report import claims, documents, rows, tables
from lossmap.report.rows import Row

ON = {"file": "stage5/scores.json", "pointer": "/rows", "by": ["arm", "corpus"]}


def moved(arm: str, corpus: str, delta: float, tier: str = "A") -> Row:
    return Row({"arm": arm, "corpus": corpus, "deltas": {"nDCG@10": delta}}, "stage5/deltas.json", tier)


@pytest.fixture
def book(root: Path) -> claims.Book:
    scored = [{**head("all", tier="B"), "arm": "rrf-60", "metrics": dict.fromkeys(tree.NAMES, 0.25)}]
    return stage(root, "stage5", scores={"rows": scored})


def test_a_row_takes_its_fellow_from_another_file_and_its_tier(book: claims.Book) -> None:
    given = [moved("rrf-60", "fixture", 0.1), moved("rrf-10", "fixture", 0.1)]
    found, alone = rows.shaped(book, {"join": {"level": ON}}, given)
    assert rows.field(found.fields, "level.metrics.nDCG@10") == 0.25 and found.tier == "B"
    assert alone.fields["level"] == {} and alone.tier == "A"
    assert "stage5/scores.json" in book.results.used


def cited(**more: Any) -> dict[str, Any]:
    cells = {"delta": "000.stage5.fusion.{name}.{corpus}_delta"}
    return {"cited": {"by": "arm", "real": "qmsum", "names": {"rrf-60": "rrf-60"}, "cells": cells, **more}}


def test_the_cited_number_is_of_the_corpus_whose_part_ours_plays(book: claims.Book) -> None:
    given = [moved("rrf-60", "fixture", 0.1), moved("rrf-60", "synthetic", 0.1), moved("bm25", "fixture", 0.1)]
    real, made, other = rows.shaped(book, cited(), given)
    assert [row.fields["cited"].get("delta") for row in (real, made, other)] == ["−0.0003", "+0.0063", None]
    assert [len(rows.shaped(book, cited(keep=kept), given)) for kept in ("named", "others")] == [2, 1]


def test_what_no_document_printed_is_no_number(book: claims.Book) -> None:
    assert rows.printed(book, "000.stage5.fusion.rrf-30-default.qmsum_delta") is None
    assert rows.printed(book, "000.stage5.fusion.rrf-60.nothing") is None


def test_corpora_stand_beside_each_other_in_one_row(book: claims.Book) -> None:
    spec = {"by": ["arm"], "sides": {"real": "{corpus}", "made": "synthetic"}, "verdict": "deltas.nDCG@10"}
    given = [moved("a", "fixture", 0.1), moved("b", "fixture", 0.1), moved("a", "synthetic", -0.2, tier="B"),
             moved("a", "another", 0.3)]  # fmt: skip
    first, second = rows.shaped(book, {"pivot": spec}, given)
    assert rows.field(first.fields, "made.deltas.nDCG@10") == -0.2 and first.tier == "B"
    assert first.fields["verdict"] == "split" and second.fields["verdict"] == "gain" and "made" not in second.fields


@pytest.mark.parametrize(
    ("deltas", "word"),
    [([0.1, 0.2], "gain"), ([-0.1, -0.2], "loss"), ([0.0, 0.0], "equal"), ([0.1, -0.1], "split"),
     ([0.0, 0.1], "one-sided"), ([None], None)],
)  # fmt: skip
def test_the_verdict_reads_signs(deltas: list[float | None], word: str | None) -> None:
    assert rows.verdict(deltas) == word


def test_a_printed_table_is_rendered_as_it_stands(root: Path) -> None:
    table = tables.build(claims.Book(root), "stage5.rerank-published")
    assert table.rows[0] == ("none", "0.0942", "–", "–", "0.2385", "–", "–")
    assert table.rows[3][:4] == ("pool-48", "0.0748", "−0.0194", "−20.6%") and len(table.rows) == 5


LIST = {"id": "s5.{arm}", "file": "stage5/scores.json", "pointer": "/rows", "fields": {"one": "f4", "two/three": "f4"}}


def test_a_field_that_an_item_may_lack_makes_no_claim(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = [{"arm": "a", "one": 1.0, "two": None}, {"arm": "b", "one": None, "two": {"three": 3.0}}]
    stage(root, "stage5", scores={"rows": given})
    monkeypatch.setattr(documents, "data", lambda _: {"lists": [{**LIST, "absent": ["two/three"]}]})
    assert [name for name, _ in claims._lists(documents.Results(root), "stage5")] == [
        "s5.a.one",
        "s5.b.one",
        "s5.b.two/three",
    ]
    monkeypatch.setattr(documents, "data", lambda _: {"lists": [LIST]})
    with pytest.raises(LossmapError, match="no 'three'"):
        list(claims._lists(documents.Results(root), "stage5"))


def test_a_list_may_keep_some_items_and_their_places(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = [{"arm": arm, "one": 1.0, "two": {"three": 3.0}} for arm in "ab"]
    stage(root, "stage5", scores={"rows": given})
    monkeypatch.setattr(documents, "data", lambda _: {"lists": [{**LIST, "where": {"arm": "b"}}]})
    found = dict(claims._lists(documents.Results(root), "stage5"))
    assert list(found) == ["s5.b.one", "s5.b.two/three"] and found["s5.b.one"]["pointer"] == "/rows/1/one"


def test_only_an_optional_file_may_be_missing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = {"lists": [{**LIST, "file": "stage5/trained.json", "optional": True}], "scalars": {}}
    monkeypatch.setattr(documents, "data", lambda _: book)
    assert not list(claims._lists(documents.Results(root), "stage5"))
    book["lists"][0]["optional"] = False
    with pytest.raises(LossmapError, match="missing"):
        list(claims._lists(documents.Results(root), "stage5"))


def test_formats_of_shares_of_a_control() -> None:
    assert documents.formatted(-20.62, "percent") == "−20.6%"
    assert documents.formatted([-1.25, 0.04], "percent_interval") == "[−1.2%, +0.0%]"
    assert documents.formatted([{"flips": None}, {"flips": True}], "turned") == "yes"
    assert documents.formatted([], "turned") == "–"
