"""Verbs on the generated corpus: write it, check it against its own text, check its bytes."""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path
from typing import Any

from lossmap import layout
from lossmap.cli.verbs import scaled, show

SETTINGS = {"meetings": int, "seed": int, "length": float, "near_duplicate_rate": float, "meetings_per_team": int,
            "shard_size": int, "corpus_id": str}  # fmt: skip
"""Settings of the generator that a call may move; what it leaves out is the scale's, then the generator's own."""


def declare(verbs: Any) -> None:
    generate = scaled(verbs, "generate", _generate, "meetings, questions and their gold, from a seed")
    for name, kind in SETTINGS.items():
        generate.add_argument(f"--{name.replace('_', '-')}", type=kind)
    generate.add_argument("--workers", type=int, help="processes (default: cores); the output does not depend on it")
    validate = scaled(verbs, "validate", _validate, "derive the gold again from the written text")
    measure = scaled(verbs, "measure", _measure, "BM25 over its whole meetings: is it easier or harder than real ones")
    verify = scaled(verbs, "verify", _verify, "every file against SHA256SUMS")
    for verb in (generate, validate, measure, verify):
        verb.add_argument("--folder", type=Path, help="the generated folder (default: build/SCALE/synthetic)")


def _folder(o: argparse.Namespace) -> Path:
    return o.folder or layout.load(o.scale, o.bench).generated


def _generate(o: argparse.Namespace) -> None:
    from lossmap.synthetic import generate
    from lossmap.synthetic.world import Config

    at = layout.load(o.scale, o.bench)
    known = {field.name for field in fields(Config)}
    stated = {k: v for k, v in at.config["scales"].get(at.scale, {}).get("synthetic", {}).items() if k in known}
    moved = {name: value for name in SETTINGS if (value := getattr(o, name)) is not None}
    show(generate.generate(Config(**{**stated, **moved}), _folder(o), o.workers))


def _validate(o: argparse.Namespace) -> None:
    from lossmap.synthetic import validate

    show(validate.validate(_folder(o)))


def _measure(o: argparse.Namespace) -> None:
    from lossmap.studies import realism

    show(realism.study(_folder(o), None))


def _verify(o: argparse.Namespace) -> None:
    from lossmap.synthetic import generate

    show(generate.verify(_folder(o)))
