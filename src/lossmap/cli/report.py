"""Verbs on results: studies, signatures, collecting and rendering."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from lossmap.cli.verbs import layout_of, scaled


def declare(verbs: Any) -> None:
    study = scaled(verbs, "study", _study, "a study over the arms of a stage")
    study.add_argument("name", help="a study of that chapter (studies/chapter.py)")
    study.add_argument("--chapter", default="stage1")
    collect = scaled(verbs, "collect", _collect, "copy a stage's parts into its results folder, with the ledger")
    collect.add_argument("stage")
    collect.add_argument("--parts", type=Path, nargs="+", required=True, help="the files to copy")
    sign = scaled(verbs, "sign", _sign, "record which rule and code wrote these parts, and from what")
    sign.add_argument("rule")
    sign.add_argument("--code", required=True, help="content hash of what the rule runs")
    sign.add_argument("--outputs", type=Path, nargs="+", required=True)
    sign.add_argument("--inputs", type=Path, nargs="+", default=[])
    scaled(verbs, "bench", _bench, "times and memory of the rules that ran")
    for name, text in (
        ("claims", "claims.json and LEDGER.json"),
        ("paper", "the PDF"),
        ("site", "the methodology page"),
    ):
        scaled(verbs, name, _render, text).set_defaults(product=name)


def _study(o: argparse.Namespace) -> None:
    from lossmap.studies import chapter

    chapter.study(layout_of(o), o.chapter, o.name)


def _collect(o: argparse.Namespace) -> None:
    from lossmap.report import collect

    collect.collect(layout_of(o), o.stage, o.parts)


def _sign(o: argparse.Namespace) -> None:
    from lossmap.report import collect

    collect.sign(layout_of(o), o.rule, o.code, o.outputs, o.inputs)


def _bench(o: argparse.Namespace) -> None:
    from lossmap.report import bench

    bench.run(layout_of(o))


def _render(o: argparse.Namespace) -> None:
    from lossmap.report import products

    products.render_product(layout_of(o), o.product)
