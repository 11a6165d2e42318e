"""Stage 5: families of arms against their controls, the pipeline taken apart, and what the engine says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from lossmap import layout
from lossmap.layout import Layout
from lossmap.search import knobs, pins, plan
from lossmap.studies import (
    beir,
    encoders,
    families,
    parts,
    reranker_licences,
    reranker_quality,
    reruns,
    resort,
    scores,
    single_leg,
    stages,
    subsets,
)
from lossmap.studies.stacks import Family, declared

DRAWN = ("fusion", "parts", "pool", "budget")
"""Families over which a verdict is drawn again from a part of the queries."""


def of(at: Layout, chapter: str, names: Sequence[str] = ()) -> list[Family]:
    """The families that a chapter asks at this scale, or the named ones of them."""
    return [found for found in declared(at, chapter, partial(plan.family, at)) if not names or found.name in names]


def levels(at: Layout, chapter: str) -> dict[str, Any]:
    """scores.json: one row a bench, arm, corpus and class; corpora are never pooled."""
    found = of(at, chapter)
    pairs = {(bench, arm) for family in found for bench in family.benches for arm in (family.control, *family.arms)}
    return {"rows": scores.rows(at, chapter, sorted(pairs))}


def pinned(at: Layout, chapter: str) -> dict[str, Any]:
    """pins.json: every fusion held against the live engine; raises where one order differs."""
    report = pins.run(layout.load(at.scale, scores.chapter(at, chapter)["pins"]), chapter, *plan.PINNED)
    for row in report["rows"]:
        pins.require_pinned(row)
    return report


def alive(at: Layout, chapter: str) -> dict[str, Any]:
    """knobs.json: every knob moves an order, and what is written out as the default moves none."""
    report = knobs.run(layout.load(at.scale, scores.chapter(at, chapter)["pins"]))
    knobs.require(report)
    return report


STUDIES: dict[str, Callable[[Layout, str], Any]] = {
    "scores": levels,
    "deltas": lambda at, chapter: families.deltas(at, of(at, chapter)),
    "subsets": lambda at, chapter: subsets.study(at, of(at, chapter, DRAWN)),
    "beir": lambda at, chapter: beir.study(at, of(at, chapter, ("fusion",))),
    "encoders": lambda at, chapter: encoders.study(at, *of(at, chapter, ("encoders",))),
    "single_leg": lambda at, chapter: single_leg.study(at, *of(at, chapter, ("fusion",))),
    "stages": stages.study,
    "parts": parts.study,
    "resort": resort.study,
    "reruns": reruns.study,
    "licences": reranker_licences.study,
    "reranker_quality": reranker_quality.study,
    "pins": pinned,
    "knobs": alive,
}
