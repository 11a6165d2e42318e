"""Verbs on the generated corpus: write it, check it against its own text, check its bytes."""

from __future__ import annotations

import argparse
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from lossmap.cli.verbs import layout_of, scaled, show
from lossmap.errors import LossmapError

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
    return o.folder or layout_of(o).generated


def _generate(o: argparse.Namespace) -> None:
    from lossmap.synthetic import generate
    from lossmap.synthetic.world import Config

    at = layout_of(o)
    known = {field.name for field in fields(Config)}
    stated = {k: v for k, v in at.config["scales"].get(at.scale, {}).get("synthetic", {}).items() if k in known}
    moved = {name: value for name in SETTINGS if (value := getattr(o, name)) is not None}
    if o.workers is not None and o.workers < 1:
        raise LossmapError(
            "no workers", observed=o.workers, expected="1 or more, or none named: the cores", exit_code=2
        )
    show(generate.generate(Config(**{**stated, **moved}), _folder(o), o.workers))
    print(f"written to {_folder(o)}", file=sys.stderr)


def _validate(o: argparse.Namespace) -> None:
    from lossmap.synthetic import generate, validate

    generate.verify(_folder(o))
    runs = validate.validate(_folder(o))
    for name, check in validate.CHECKS.items():
        print(f"{name:<4} {runs[name]:>7,} runs, 0 failures: {(check.__doc__ or '').partition(chr(10))[0]}")


def _measure(o: argparse.Namespace) -> None:
    from lossmap.studies import realism
    from lossmap.synthetic import generate

    generate.verify(_folder(o))
    print("class        wording     rule  questions  R@1    R@10   median rank")
    for row in realism.study(_folder(o), None)["rows"]:
        where = f"{row['query_class']:<12} {row['surface']:<11} {row['rule'] or '-':<5} {row['queries']:>9}"
        print(f"{where}  {row['R@1']:.3f}  {row['R@10']:.3f}  {row['median_rank']:.1f}")


def _verify(o: argparse.Namespace) -> None:
    from lossmap.synthetic import generate

    print(f"{generate.verify(_folder(o))} files are those of SHA256SUMS")
