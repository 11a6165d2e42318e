"""The workflow's plan on a fresh copy of the tree: what runs, and what an edit reruns."""

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


def plan(folder: Path, *arguments: str) -> Counter[str]:
    """Jobs by rule of a dry run."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SNAKEMAKE")} | {"LOSSMAP_ROOT": str(folder)}
    call = [sys.executable, "-m", "snakemake", "-n", "--cores", "2", *arguments]
    done = subprocess.run(call, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    table = re.search(r"^job +count\n[- ]+\n(.*?)^total", done.stdout, re.MULTILINE | re.DOTALL)
    rows = table.group(1).split("\n") if table else []
    return Counter({row.split()[0]: int(row.split()[1]) for row in rows if row.split()})


def test_a_fresh_clone_plans_the_whole_chain_whatever_is_committed(clone: Path) -> None:
    (clone / "results/stage1").mkdir(parents=True, exist_ok=True)
    jobs = plan(clone, "results/stage1")
    chain = {"obtain", "normalise", "inject", "chunk", "encode", "index", "freeze", "judge", "measure", "pin", "study"}
    assert chain | {"stage1"} == set(jobs)
    assert jobs["freeze"] == 7 and jobs["measure"] == 12 and jobs["pin"] == 5


def test_every_scale_plans_a_paper_and_only_full_writes_results(clone: Path) -> None:
    for scale in ("smoke", "small", "full"):
        jobs = plan(clone, "paper", "--config", f"scale={scale}")
        assert {"claims", "pdf", "site", "paper"} <= set(jobs)


def test_shipped_renders_and_computes_nothing(clone: Path) -> None:
    (clone / "results/stage1").mkdir(parents=True, exist_ok=True)
    (clone / "results/claims.json").touch()
    assert set(plan(clone, "paper", "--config", "scale=shipped")) == {"pdf", "site", "paper"}
