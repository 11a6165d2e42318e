"""The workflow's plan on a fresh copy of the tree: what runs, and where it writes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TREE = ("Snakefile", "flake.nix", "flake.lock", "profiles", "workflow", "src", "paper", "results")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    for name in TREE:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif (ROOT / name).exists():
            shutil.copyfile(ROOT / name, tmp_path / name)
    return tmp_path


def plan(folder: Path, *arguments: str) -> tuple[Counter[str], set[str]]:
    """Jobs by rule, and every output, of a dry run."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SNAKEMAKE")} | {"LOSSMAP_ROOT": str(folder)}
    call = [sys.executable, "-m", "snakemake", "-n", "--cores", "2", *arguments]
    done = subprocess.run(call, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    table = re.search(r"^job +count\n[- ]+\n(.*?)^total", done.stdout, re.MULTILINE | re.DOTALL)
    rows = table.group(1).split("\n") if table else []
    outputs = {
        path.strip() for line in re.findall(r"^ +output: (.*)$", done.stdout, re.MULTILINE) for path in line.split(",")
    }
    return Counter({row.split()[0]: int(row.split()[1]) for row in rows if row.split()}), outputs


def test_a_fresh_clone_plans_the_whole_chain_whatever_is_committed(clone: Path) -> None:
    (clone / "results/stage1").mkdir(parents=True, exist_ok=True)
    jobs, _ = plan(clone, "results/stage1")
    chain = {"obtain", "normalise", "inject", "chunk", "encode_passages", "encode_queries", "index", "freeze", "judge"}
    assert chain | {"measure", "pin", "study", "ann", "stage1"} == set(jobs)
    assert jobs["freeze"] == 7 and jobs["measure"] == 12 and jobs["pin"] == 5


@pytest.mark.parametrize("scale", ["smoke", "small", "full"])
def test_every_scale_plans_every_chapter_and_only_full_writes_results(clone: Path, scale: str) -> None:
    jobs, outputs = plan(clone, "paper", "--config", f"scale={scale}")
    assert {"stage1", "corpora", "composition", "synthetic", "claims", "pdf", "site", "paper"} <= set(jobs)
    written = {path for path in outputs if path.startswith("results/")}
    assert bool(written) == (scale == "full")
    assert all(path.startswith(("build/", "results/")) for path in outputs)


def test_tier_b_is_planned_below_its_own_folder_alone(clone: Path) -> None:
    jobs, outputs = plan(clone, "paper", "--config", "accept_noncommercial=true")
    assert {"stage1", "corpora", "claims", "pdf", "site"} <= set(jobs)
    assert all(path.startswith(("build/internal/", "build/corpora/")) for path in outputs if path.startswith("build"))
    assert not any(path.startswith("results/") for path in outputs)


def test_shipped_renders_and_computes_nothing(clone: Path) -> None:
    (clone / "results/stage1").mkdir(parents=True, exist_ok=True)
    (clone / "results/claims.json").touch()
    assert set(plan(clone, "paper", "--config", "scale=shipped")[0]) == {"pdf", "site", "paper"}
