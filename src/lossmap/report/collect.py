"""The stage rule: listed parts to the stage's results folder, with the ledger that makes them readable."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import yaml

from lossmap import canon
from lossmap.layout import Layout
from lossmap.report import ledger


def digests(at: Layout) -> dict[str, str]:
    """Rule to the content hash of the code it runs now (workflow/config/code.yaml)."""
    with open(at.root / "workflow/config/code.yaml", encoding="utf-8") as handle:
        return {rule: ledger.code_digest(modules) for rule, modules in yaml.safe_load(handle).items()}


def collect(at: Layout, stage: str, parts: Sequence[Path], inputs: Sequence[Path], made: Sequence[str]) -> Path:
    """Copy ``parts`` (below build/<scale>/<stage>) to results; ``made`` holds ``glob=rule`` for who computed what.

    The folder is filled under another name and renamed, so that a killed rule leaves the old one whole.
    """
    target, scratch = at.results / stage, at.results / f".{stage}.new"
    shutil.rmtree(scratch, ignore_errors=True)
    for part in parts:
        copy = scratch / Path(part).absolute().relative_to(at.stage(stage))
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(part, copy)
    now = digests(at)
    makers = {glob: (rule, now[rule]) for glob, _, rule in (pair.partition("=") for pair in made)}
    sources = {Path(p).absolute().relative_to(at.root).as_posix(): canon.file_sha256(p) for p in inputs}
    ledger.write(scratch, stage, at.scale, now[stage], sources, makers)
    shutil.rmtree(target, ignore_errors=True)
    os.replace(scratch, target)
    return target
