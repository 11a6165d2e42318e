from __future__ import annotations

from pathlib import Path

import pytest

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.report import ledger


def test_changed_byte_is_refused_with_the_mend(root: Path) -> None:
    path = root / "stage1" / "index.json"
    path.write_bytes(path.read_bytes().replace(b"39", b"38", 1))
    with pytest.raises(LossmapError, match=r"index\.json[\s\S]*--forcerun study results/stage1"):
        ledger.check(root / "stage1")


def test_tampered_entry_is_refused(root: Path) -> None:
    document = canon.read_json(root / "stage1" / ledger.NAME)
    document["entries"]["index.json"]["code"] = "f" * 64
    canon.write_json(root / "stage1" / ledger.NAME, document)
    with pytest.raises(LossmapError, match="a ledger was edited"):
        ledger.check(root / "stage1")


def test_unlisted_and_missing_files_are_refused(root: Path) -> None:
    (root / "stage1" / "stray.json").write_text("{}")
    with pytest.raises(LossmapError, match=r"no ledger entry[\s\S]*stray\.json"):
        ledger.check(root / "stage1")
    (root / "stage1" / "stray.json").unlink()
    (root / "stage1" / "peers.json").unlink()
    with pytest.raises(LossmapError, match=r"missing[\s\S]*peers\.json"):
        ledger.check(root / "stage1")


def test_a_stage_without_ledger_is_refused(root: Path) -> None:
    (root / "stage1" / ledger.NAME).unlink()
    with pytest.raises(LossmapError, match="has no ledger"):
        ledger.check(root / "stage1")


def test_snakemake_timestamp_is_nobodys_result(root: Path) -> None:
    (root / "stage1" / ".snakemake_timestamp").write_text("")
    assert ".snakemake_timestamp" not in ledger.check(root / "stage1")["entries"]


def test_merge_prefixes_the_stage_and_stale_compares_code(root: Path) -> None:
    merged = ledger.merge([root / "stage1"], root / "LEDGER.json")
    assert canon.read_json(root / "LEDGER.json") == merged
    present = {"study": "1" * 64, "measure": "changed", "pin": "3" * 64, "stage1": "0" * 64}
    stale = ledger.stale(merged["entries"], present)
    assert stale and all(name.startswith("stage1/arms/") for name in stale)


def _package(folder: Path, **modules: str) -> Path:
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg" / "__init__.py").write_text("")
    for name, text in modules.items():
        (folder / "pkg" / f"{name}.py").write_text(text)
    return folder


def test_code_digest_follows_the_import_closure_and_nothing_else(tmp_path: Path) -> None:
    source = _package(tmp_path, a="from pkg import b\n", b="def f():\n    from . import c\n", c="X = 1\n", d="Y = 1\n")
    assert set(ledger.closure(["pkg.a"], source)) == {"pkg", "pkg.a", "pkg.b", "pkg.c"}
    before = ledger.code_digest(["pkg.a"], source)
    (source / "pkg" / "d.py").write_text("Y = 2\n")
    assert ledger.code_digest(["pkg.a"], source) == before
    (source / "pkg" / "c.py").write_text("X = 2\n")
    assert ledger.code_digest(["pkg.a"], source) != before


def test_a_rule_over_a_deleted_module_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LossmapError, match=r"does not exist[\s\S]*pkg\.gone"):
        ledger.code_digest(["pkg.gone"], _package(tmp_path, a=""))
