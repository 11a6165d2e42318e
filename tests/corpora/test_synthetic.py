"""Meetings of the generated corpus chosen by gold closure, and its queries in one wording."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from lossmap import canon
from lossmap.corpora import closure, normalise, registry
from lossmap.corpora.readers import synthetic
from lossmap.errors import LossmapError
from lossmap.synthetic import generate
from lossmap.synthetic.world import Config

BUDGET = 14


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("synthetic") / "generated"
    generate.generate(Config(meetings=24, length=0.03), path, workers=1)
    return path


@pytest.fixture(scope="module")
def rows(folder: Path) -> list[dict[str, Any]]:
    return list(canon.read_jsonl(folder / "queries.jsonl"))


def test_closure_keeps_whole_questions_within_the_budget_and_fills_it_by_key(
    folder: Path, rows: list[dict[str, Any]]
) -> None:
    reading = synthetic.read(registry.query_set("synthetic"), folder, {"budget": BUDGET})
    kept = {meeting.meeting_id for meeting in reading.meetings}
    assert len(kept) == BUDGET
    gold = {}
    for span in reading.gold:
        gold.setdefault(span.query_id, set()).add(span.meeting_id)
    by_id = {name: row for row in rows for name in [":".join(["synthetic", *synthetic._meeting(row), row["query_id"]])]}
    assert gold.keys() == {query.query_id for query in reading.queries}
    assert all(gold[name] == set(by_id[name]["gold_files"]) <= kept for name in gold)
    expected = [r for r in rows if r["surface"] == "exact" and r["scored_on"] == "retrieval"]
    left_out = sum(reading.report["skipped"]["gold_not_selected"].values())
    assert len(gold) + left_out == len(expected) and left_out > 0


def test_a_query_that_does_not_fit_is_passed_over_and_a_smaller_one_taken() -> None:
    def row(name: str, kind: str, files: list[str], related: tuple[str, ...] = ()) -> dict[str, Any]:
        return {"query_id": name, "query_class": kind, "surface": "exact", "gold_files": files,
                "related_files": list(related)}  # fmt: skip

    queries = [
        row("mf-1", "multi_file", ["c", "d"]),
        row("mf-2", "multi_file", ["e", "f", "g"]),
        row("ag-1", "aggregation", ["d"], ("h",)),
        row("ag-2", "aggregation", ["c", "h"]),
        row("lk-1", "lookup", ["a"]),
    ]
    assert closure.close(queries, list("abcdefgh"), 4) == {"a", "c", "d", "h"}  # mf-2 would make six; "a" fills up
    assert closure.close(queries, list("abcdefgh"), 8) == set("abcdefgh")


def test_the_first_by_key_warns_of_the_gold_it_cuts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reading = synthetic.read(registry.query_set("synthetic"), folder, {"first": 5})
    assert len(reading.meetings) == 5
    assert "the first 5 meetings by key cut gold from queries" in capsys.readouterr().err


def test_a_rewording_judges_the_meetings_of_the_chosen_corpus(folder: Path) -> None:
    exact = synthetic.read(registry.query_set("synthetic"), folder, {"budget": BUDGET})
    other = synthetic.read(registry.query_set("synthetic-reworded.first"), folder, documents=exact.meetings)
    assert other.meetings == [] and other.report["surface"] == "reworded-1"
    asked = {q.query_id.partition(":")[2].removesuffix("-r1") for q in other.queries}
    assert asked == {q.query_id.partition(":")[2] for q in exact.queries if q.query_class != "verbatim"}
    assert any(q.query_id.count(":") == 2 for q in exact.queries if q.query_class == "lookup")
    assert not {q.text for q in other.queries} & {q.text for q in exact.queries}


def test_an_altered_byte_or_a_shard_too_many_is_refused(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    extra = copy / "meetings" / "part-0001.jsonl"
    extra.write_bytes(b"")
    with pytest.raises(LossmapError, match="part-0001.jsonl"):
        synthetic.read(registry.query_set("synthetic"), copy, {"budget": BUDGET})
    extra.unlink()
    part = copy / "meetings" / "part-0000.jsonl"
    part.write_bytes(part.read_bytes().replace(b"0", b"1", 1))
    with pytest.raises(LossmapError, match="part-0000.jsonl"):
        synthetic.read(registry.query_set("synthetic"), copy, {"budget": BUDGET})


def test_a_corpus_that_was_not_generated_says_how_to_generate_it(tmp_path: Path) -> None:
    with pytest.raises(LossmapError, match="not been generated") as error:
        normalise.normalise("synthetic", tmp_path / "nothing", tmp_path / "out")
    assert "synth generate" in str(error.value) and "fetch" not in str(error.value)
