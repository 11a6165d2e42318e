"""REUSE holds for every file, the texts are those in use, and the citation file has what its format demands."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]

# The required part of the Citation File Format 1.2.0, and the fields that we use.
CITATION = {
    "type": "object",
    "required": ["cff-version", "message", "title", "authors"],
    "additionalProperties": False,
    "properties": {
        "cff-version": {"const": "1.2.0"},
        "message": {"type": "string", "minLength": 1},
        "title": {"type": "string", "minLength": 1},
        "type": {"enum": ["software", "dataset"]},
        "authors": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["name"],
                "additionalProperties": False,
                "properties": {"name": {"type": "string"}},
            },
        },
        "version": {"type": "string"},
        "license": {"const": "MIT"},
        "keywords": {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True},
    },
}


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "reuse", "--root", str(root), "lint"]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(scope="module")
def inventory() -> list[str]:
    """What REUSE says of each of our files, a block a file."""
    command = [sys.executable, "-m", "reuse", "--root", str(ROOT), "spdx"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n\n")


@pytest.fixture
def small_tree(tmp_path: Path) -> Path:
    """Our REUSE.toml and texts over one file of each licence."""
    shutil.copy(ROOT / "REUSE.toml", tmp_path)
    shutil.copytree(ROOT / "LICENSES", tmp_path / "LICENSES")
    for name in ("src/lossmap/a.py", "paper/sections/a.tex.j2", "results/stage1/a.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text\n")
    return tmp_path


def test_the_project_is_reuse_clean() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout


def test_a_sound_small_tree_is_clean(small_tree: Path) -> None:
    done = lint(small_tree)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["notes.txt", "src/lossmap/vendored.js", "paper/figure.png", "tests/corpus.txt"])
def test_a_file_without_licence_is_caught(small_tree: Path, name: str) -> None:
    (small_tree / name).parent.mkdir(exist_ok=True)
    (small_tree / name).write_text("text\n")
    done = lint(small_tree)
    assert done.returncode == 1 and Path(name).name in done.stdout


def test_a_missing_text_is_caught(small_tree: Path) -> None:
    (small_tree / "LICENSES/MIT.txt").unlink()
    assert lint(small_tree).returncode == 1


def test_an_unused_text_is_caught(small_tree: Path) -> None:
    shutil.copy(small_tree / "LICENSES/MIT.txt", small_tree / "LICENSES/ISC.txt")
    done = lint(small_tree)
    assert done.returncode == 1 and "ISC" in done.stdout


@pytest.mark.parametrize(
    ("name", "licence"),
    [
        ("src/lossmap/cli/corpora.py", "MIT"),
        ("tests/fixtures/encoder/make_reference.py", "MIT"),
        ("paper/tables/stage1.yaml", "MIT"),
        ("paper/methodology.md.j2", "CC-BY-4.0"),
        ("paper/sections/method.tex.j2", "CC-BY-4.0"),
        ("tests/fixtures/encoder/sentences.json", "CC0-1.0"),
    ],
)
def test_each_kind_of_file_has_its_licence(inventory: list[str], name: str, licence: str) -> None:
    (entry,) = [block for block in inventory if f"FileName: ./{name}\n" in block]
    assert f"LicenseInfoInFile: {licence}\n" in entry


def test_the_citation_file_is_valid() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    jsonschema.validate(citation, CITATION)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (citation["version"], citation["license"]) == (project["version"], project["license"])


@pytest.mark.parametrize(
    "broken", [{"authors": []}, {"cff-version": "1.1"}, {"authors": [{"nom": "x"}]}, {"title": ""}]
)
def test_a_broken_citation_file_is_caught(broken: dict[str, object]) -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text()) | broken
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(citation, CITATION)
