"""Canonical bytes and files that appear whole or not at all."""

from __future__ import annotations

import errno
import gzip
from pathlib import Path

import pytest

from lossmap import canon
from lossmap.errors import LossmapError


def test_documents_have_sorted_keys_six_decimals_and_a_final_newline() -> None:
    assert (
        canon.dumps({"b": 1 / 3, "a": [-0.0000001, "é"]})
        == '{\n  "a": [\n    0.0,\n    "é"\n  ],\n  "b": 0.333333\n}\n'
    )


def test_a_number_that_json_does_not_know_is_an_error() -> None:
    with pytest.raises(ValueError):
        canon.dumps({"a": float("nan")})


def test_a_failed_write_leaves_the_old_file_and_no_scrap(tmp_path: Path) -> None:
    target = tmp_path / "a.json"
    canon.write_json(target, {"old": True})
    with pytest.raises(RuntimeError), canon.atomic(target) as handle:
        handle.write(b"half")
        raise RuntimeError
    assert canon.read_json(target) == {"old": True}
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_a_full_disk_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(LossmapError, match="could not be written"), canon.atomic(tmp_path / "a") as handle:
        handle.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_gzip_bytes_depend_on_the_text_alone(tmp_path: Path) -> None:
    for name in ("a.csv.gz", "b.csv.gz"):
        canon.write_csv_gz(tmp_path / name, ["x", "y"], [[1, 0.1], ["a,b", 2]])
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()
    assert gzip.open(tmp_path / "a.csv.gz", "rt").read() == 'x,y\n1,0.1\n"a,b",2\n'
    assert list(canon.read_csv_gz(tmp_path / "a.csv.gz")) == [["1", "0.1"], ["a,b", "2"]]


@pytest.mark.parametrize(
    ("damaged", "shown"),
    [(b'{"a": 1, "b": "cut sho', "cut sho"), (b'{"a": "\xff"}\n', "{"), (b"x" * 200, "x" * 80), (b"\n", r"\n")],
)
def test_a_damaged_line_is_named(tmp_path: Path, damaged: bytes, shown: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a":1}\n{"a":2}\n' + damaged)
    rows = canon.read_jsonl(path)
    assert [next(rows), next(rows)] == [{"a": 1}, {"a": 2}]
    with pytest.raises(LossmapError) as error:
        next(rows)
    said = str(error.value)
    assert f"{path}, line 3" in said and shown in said and "x" * 81 not in said and "next: remove the file" in said


def test_a_damaged_document_is_named(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text('{"rows": [')
    with pytest.raises(LossmapError, match="metrics.json(?s:.*)next: remove the file"):
        canon.read_json(tmp_path / "metrics.json")


def test_sums_name_the_first_file_that_differs(tmp_path: Path) -> None:
    with pytest.raises(LossmapError, match="no checksums"):
        canon.check_sums(tmp_path, "mend it")
    for name in ("a", "b/c"):
        canon.write_text(tmp_path / name, name)
    canon.write_sums(tmp_path)
    canon.write_text(tmp_path / canon.WORKFLOW_MARK, "")
    assert canon.check_sums(tmp_path, "mend it") == 2
    canon.write_text(tmp_path / "b" / "c", "other")
    with pytest.raises(LossmapError, match="b/c(?s:.*)mend it"):
        canon.check_sums(tmp_path, "mend it")
    canon.write_text(tmp_path / "a1", "not listed")
    with pytest.raises(LossmapError, match="a1(?s:.*)does not list it"):
        canon.check_sums(tmp_path, "mend it")
