"""A generated folder: its files, checksums, qrels and positions, and the same bytes whatever the machine does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.synthetic import generate as module
from lossmap.synthetic.generate import generate, verify
from lossmap.synthetic.rules import Book
from lossmap.synthetic.world import Config, Plant, PlantTurn, World, build

CONFIG = Config(meetings=9, length=0.1, shard_size=4)
ANCHOR = "QX-4821"


def book(world: World) -> Book:
    """One fact of two turns in each session; resolve() of the rules is replaced along with it."""
    plants = {
        session.key: (
            Plant(f"p-{session.key}", session.key, (PlantTurn("Which one was it?"), PlantTurn(ANCHOR, ANCHOR))),
        )
        for session in world.sessions
    }
    return Book(plants, (), ())


def resolve(_: Book, positions: Mapping[str, tuple[int, int]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    facts = [{"plant_id": name, "first": first, "last": last} for name, (first, last) in sorted(positions.items())]
    key = facts[0]["plant_id"].removeprefix("p-")
    return [{"query_id": "lk-00001", "query_class": "lookup", "surface": "exact", "gold_files": [key]}], facts


@pytest.fixture(autouse=True)
def _resolve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.rules, "resolve", resolve)


@pytest.fixture()
def corpus(tmp_path: Path) -> Path:
    generate(CONFIG, tmp_path / "corpus", workers=1, book=book(build(CONFIG)))
    return tmp_path / "corpus"


def rows(folder: Path) -> list[dict[str, Any]]:
    return [row for part in sorted(folder.glob("meetings/part-*.jsonl")) for row in canon.read_jsonl(part)]


def test_the_folder_is_whole(corpus: Path) -> None:
    names = sorted(path.relative_to(corpus).as_posix() for path in corpus.rglob("*") if path.is_file())
    parts = [f"meetings/part-{n:04d}.jsonl" for n in range(3)]
    assert names == sorted(
        [
            "LICENSE",
            "SHA256SUMS",
            "config.json",
            "facts.jsonl",
            *parts,
            "qrels-files.tsv",
            "queries.jsonl",
            "stats.json",
        ]
    )
    assert verify(corpus) == len(names) - 1
    assert "CC0-1.0" in (corpus / "LICENSE").read_text()
    assert [path for path in corpus.parent.iterdir()] == [corpus]
    world = build(CONFIG)
    assert [row["meeting_key"] for row in rows(corpus)] == [session.key for session in world.sessions]
    first = world.sessions[0]
    assert (corpus / "qrels-files.tsv").read_text() == f"lk-00001 0 {first.file_uuid} 1\n"
    assert all(json.dumps(row, sort_keys=True) for row in rows(corpus))


def test_facts_point_at_the_turns_of_their_plants(corpus: Path) -> None:
    meetings = {row["meeting_key"]: row for row in rows(corpus)}
    for fact in canon.read_jsonl(corpus / "facts.jsonl"):
        turns = meetings[fact["plant_id"].removeprefix("p-")]["turns"]
        assert [turn["index"] for turn in turns if ANCHOR in turn["content"]] == [fact["last"]]
        assert fact["last"] == fact["first"] + 1


def test_the_stats_count_what_is_written(corpus: Path) -> None:
    stats, meetings = canon.read_json(corpus / "stats.json"), rows(corpus)
    assert stats["meetings"] == 9 and stats["turns"] == sum(row["turn_count"] for row in meetings)
    assert stats["words"] == sum(row["word_count"] for row in meetings)
    assert stats["queries"] == {"lookup": {"exact": 1}}
    assert sum(register["meetings"] for register in stats["registers"].values()) == 9
    assert stats["near_duplicate_join_probability"] == 0.15


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import test_generate as t
t.module.rules.resolve = t.resolve
t.generate(t.CONFIG, Path(sys.argv[2]), workers=int(sys.argv[3]), book=t.book(t.build(t.CONFIG)))
"""


@pytest.mark.parametrize(
    ("workers", "env"),
    [
        (1, {"PYTHONHASHSEED": "1", "TZ": "Pacific/Auckland", "LC_ALL": "C"}),
        (2, {"PYTHONHASHSEED": "77", "TZ": "America/Lima", "LC_ALL": "tr_TR.UTF-8"}),
        (3, {"PYTHONHASHSEED": "0", "PYTHONUTF8": "0", "LC_ALL": "POSIX"}),
    ],
)
def test_the_bytes_are_the_same_everywhere(tmp_path: Path, corpus: Path, workers: int, env: dict[str, str]) -> None:
    out = tmp_path / "other"
    source = Path(module.__file__).parents[2]
    subprocess.run(
        [sys.executable, "-c", SCRIPT, str(Path(__file__).parent), str(out), str(workers)],
        env={**os.environ, "PYTHONPATH": str(source), **env},
        check=True,
    )
    assert (out / "SHA256SUMS").read_bytes() == (corpus / "SHA256SUMS").read_bytes()
    assert verify(out)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("meetings/part-0001.jsonl", lambda path: path.write_bytes(path.read_bytes().replace(b"e", b"f", 1))),
        ("queries.jsonl", lambda path: path.unlink()),
        ("extra.txt", lambda path: path.write_text("x")),
    ],
)
def test_verify_names_the_file_that_does_not_match(corpus: Path, name: str, change: Any) -> None:
    change(corpus / name)
    with pytest.raises(LossmapError, match=name) as error:
        verify(corpus)
    assert "lossmap synth generate" in str(error.value)


def test_verify_refuses_another_folder(tmp_path: Path) -> None:
    with pytest.raises(LossmapError, match="no checksums"):
        verify(tmp_path)


def test_an_existing_folder_is_left_alone(corpus: Path) -> None:
    before = (corpus / "SHA256SUMS").read_bytes()
    with pytest.raises(LossmapError, match="there already"):
        generate(CONFIG, corpus, workers=1, book=book(build(CONFIG)))
    assert (corpus / "SHA256SUMS").read_bytes() == before


def test_a_failure_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.rules, "resolve", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        generate(CONFIG, tmp_path / "corpus", workers=1, book=book(build(CONFIG)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("plant", [Plant("p", "nowhere", (PlantTurn("x"),)), Plant("p", "T001-S1-0001", ())])
def test_a_plant_without_a_place_is_refused(tmp_path: Path, plant: Plant) -> None:
    with pytest.raises(LossmapError, match="cannot be placed"):
        generate(CONFIG, tmp_path / "corpus", workers=1, book=Book({plant.session: (plant,)}, (), ()))


def test_too_few_meetings_are_refused_as_such_and_the_least_suffice(tmp_path: Path) -> None:
    for meetings in (1, module.LEAST - 1):
        with pytest.raises(LossmapError, match="too few meetings") as error:
            generate(Config(meetings=meetings, length=0.03), tmp_path / "few", workers=1)
        assert error.value.exit_code == 2 and not (tmp_path / "few").exists()
    assert module.rules.build(build(Config(meetings=module.LEAST))).plants
