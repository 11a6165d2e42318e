"""Chunks are compared by file and text, as often as they stand there."""

from __future__ import annotations

from pathlib import Path

from lossmap import canon
from lossmap.studies import boundaries


def test_a_moved_boundary_takes_two_chunks_of_either_side() -> None:
    found = boundaries.apart({"f": ["a b", "c"], "g": ["x"]}, {"f": ["a", "b c"], "g": ["x"]})
    assert found == {
        "files": 2, "files_differ": 1, "chunks_a": 3, "chunks_b": 3, "only_in_a": 2, "only_in_b": 2, "chunks_differ": 4,
    }  # fmt: skip


def test_a_text_counts_as_often_as_its_file_has_it_and_in_its_own_file_alone() -> None:
    assert boundaries.apart({"f": ["yes", "yes"]}, {"f": ["yes"]})["chunks_differ"] == 1
    assert boundaries.apart({"f": ["yes"], "g": ["no"]}, {"f": ["no"], "g": ["yes"]})["chunks_differ"] == 4
    assert boundaries.apart({"f": ["yes"]}, {})["files_differ"] == 1


def test_swapped_chunks_are_another_file_and_the_same_chunks() -> None:
    found = boundaries.apart({"f": ["a", "b"]}, {"f": ["b", "a"]})
    assert (found["files_differ"], found["chunks_differ"]) == (1, 0)


def test_texts_are_read_by_file(tmp_path: Path) -> None:
    rows = [{"file_uuid": f, "text": t} for f, t in (("f", "a"), ("g", "x"), ("f", "b"))]
    canon.write_jsonl(tmp_path / "chunks.jsonl", rows)
    assert boundaries.texts(tmp_path) == {"f": ["a", "b"], "g": ["x"]}
