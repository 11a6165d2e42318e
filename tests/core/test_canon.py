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
