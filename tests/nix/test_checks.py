"""Each way in which flake.nix, flake.lock and their records can be wrong is caught, and by which check."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

PARSE = "every .nix file parses"
AGREE = "flake.nix and flake.lock agree"
STABLE = "`nix flake lock` changes nothing"
EVALUATE = "shells, paper and formatter evaluate against recorded attributes"
PIN = "lock and recorded attributes name one nixpkgs"
WHEELS = "wheels are those of the requirements"
COVER = "the shell has what core.in asks, and no attribute is idle"
SNAKEMAKE = "Snakemake is new enough"

REV = "5880666fd9eb563038431edb35c2d0aa595884e6"
HASH = "sha256-OURZPknrTjQrlNyxPdqzyqmU/81Wes1CUP/Ft1Rv/YI="


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text, f"{path.name} has no {old!r}: this test breaks nothing"
    path.write_text(text.replace(old, new))


def failed(checks: ModuleType, tree: Path) -> dict[str, list[str]]:
    return {label: faults for label, faults in checks.check(tree).items() if faults}


@pytest.fixture
def nix(checks: ModuleType) -> None:
    if missing := checks.missing_programs():
        pytest.skip(f"not on PATH: {', '.join(missing)}; mend it with: {checks.INSTALL}")


def test_the_tree_is_sound(checks: ModuleType, tree: Path) -> None:
    assert failed(checks, tree) == {}


@pytest.mark.usefixtures("nix")
@pytest.mark.parametrize(
    ("file", "old", "new", "caught"),
    [
        ("flake.nix", "pkgs.opensearch", "pkgs.opensaerch", EVALUATE),
        ("flake.nix", "ps.onnxruntime", "ps.onnx-runtime", EVALUATE),
        ("flake.nix", "ps.cleveref", "ps.cleverref", EVALUATE),
        ("flake.nix", "pkgs.nixfmt-tree", "pkgs.nixfmt-forest", EVALUATE),
        ("nix/wheels.json", '"lxml"', '"lmxl"', EVALUATE),
        ("flake.nix", "pkgs.postgresql_17\n          ];", "pkgs.postgresql_17\n", PARSE),
        ("flake.nix", "nixpkgs/nixos-26.05", "nixpkgs/nixos-25.11", AGREE),
        ("flake.nix", "nixpkgs/nixos-26.05", "nixpkgs/nixos-25.11", STABLE),
        ("flake.lock", HASH, HASH[:-4] + "=", AGREE),
        ("flake.lock", REV, REV[:-1], AGREE),
    ],
)
def test_a_broken_flake_is_caught(checks: ModuleType, tree: Path, file: str, old: str, new: str, caught: str) -> None:
    replace(tree / file, old, new)
    assert caught in failed(checks, tree)


@pytest.mark.parametrize(
    ("file", "old", "new", "caught", "says"),
    [
        ("flake.lock", REV, "0" * 40, PIN, "flake.lock has 0000"),
        ("nix/stub/attrs.json", '"nixos-26.05"', '"nixos-25.11"', PIN, "attrs.json has nixos-25.11"),
        ("nix/wheels.json", '"0.5.11"', '"0.5.10"', WHEELS, "pytrec-eval-terrier: nix/wheels.json has 0.5.10"),
        ("nix/wheels.json", "6ZVKup2f", "7ZVKup2f", WHEELS, "none of those that the requirements pin"),
        ("nix/stub/attrs.json", '"python313"', '"python314"', WHEELS, "a wheel for cp313"),
        ("requirements/core.in", "tqdm", "tqdm\nstim", COVER, "stim is in requirements/core.in"),
        ("flake.nix", "ps.tqdm", "", COVER, "tqdm is recorded"),
        ("nix/stub/attrs.json", '"9.14.1"', '"9.9.3"', SNAKEMAKE, "recorded Snakemake 9.9.3, the Snakefile needs"),
    ],
)
def test_versions_that_differ_are_said(
    checks: ModuleType, tree: Path, file: str, old: str, new: str, caught: str, says: str
) -> None:
    replace(tree / file, old, new)
    assert says in " ".join(checks.PLAIN[caught](tree))


def test_a_recorded_version_that_differs_is_a_note(checks: ModuleType, tree: Path) -> None:
    replace(tree / "src/lossmap/engine/distribution.py", '_VERSION = "3.6.0"', '_VERSION = "2.19.1"')
    assert not any(note.startswith("opensearch:") for note in checks.version_notes(tree))
    replace(tree / "nix/stub/attrs.json", '"2.19.1"', '"3.1.0"')
    assert "opensearch: nixpkgs 3.1.0 (as recorded), plain machine 2.19.1" in checks.version_notes(tree)


def two_inputs() -> tuple[dict[str, Any], dict[str, Any]]:
    """A flake whose second input follows the first one's nixpkgs, and its lock. (Ours has one input.)"""
    place = {"type": "github", "owner": "o"}
    node = {"rev": REV, "narHash": HASH, **place}
    inputs = {
        "nixpkgs": {"url": "github:o/nixpkgs/b"},
        "tools": {"url": "github:o/tools", "inputs": {"nixpkgs": {"follows": "nixpkgs"}}},
    }
    nodes = {
        "root": {"inputs": {"nixpkgs": "nixpkgs", "tools": "tools"}},
        "nixpkgs": {"original": {"repo": "nixpkgs", "ref": "b", **place}, "locked": {"repo": "nixpkgs", **node}},
        "tools": {
            "original": {"repo": "tools", **place},
            "locked": {"repo": "tools", **node},
            "inputs": {"nixpkgs": ["nixpkgs"]},
        },
    }
    return inputs, {"version": 7, "root": "root", "nodes": nodes}


def test_a_sound_lock_agrees(checks: ModuleType) -> None:
    assert checks.lock_agreement(*two_inputs()) == []


@pytest.mark.parametrize("broken", ["edge missing", "edge elsewhere", "edge not declared"])
def test_follows_edges_are_compared(checks: ModuleType, broken: str) -> None:
    inputs, lock = two_inputs()
    match broken:
        case "edge missing":
            lock["nodes"]["tools"]["inputs"] = {"nixpkgs": "nixpkgs_2"}
        case "edge elsewhere":
            lock["nodes"]["tools"]["inputs"] = {"nixpkgs": ["other"]}
        case "edge not declared":
            del inputs["tools"]["inputs"]
    (fault,) = checks.lock_agreement(inputs, lock)
    assert fault.startswith("input tools: follows edges")


@pytest.mark.parametrize("sri", ["sha256-AAAA", "sha256-" + "!" * 44, "sha512-" + HASH[7:], HASH[7:], ""])
def test_malformed_hashes(checks: ModuleType, sri: str) -> None:
    assert checks.sri_hex(HASH) and checks.sri_hex(sri) is None


def test_every_recorded_attribute_cites_its_file(checks: ModuleType, tree: Path) -> None:
    known = checks.attributes(tree)
    entries = [entry for group in ("packages", "python", "texlive") for entry in known[group].values()]
    assert all(entry["file"].startswith("pkgs/") and len(entry["seen"]) == 40 for entry in entries)


def test_absent_nix_is_said_and_counted(
    checks: ModuleType, tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(checks, "missing_programs", lambda: ["nix"])
    assert checks.main([str(tree)]) == 0
    out = capsys.readouterr().out
    assert f"SKIPPED {len(checks.WITH_NIX)} checks, no nix" in out and f"nix: {len(checks.PLAIN)} checks passed" in out


def test_a_fault_fails_the_command(checks: ModuleType, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "missing_programs", lambda: ["nix"])
    replace(tree / "nix/wheels.json", '"2.2.1"', '"2.2.0"')
    assert checks.main([str(tree)]) == 1
