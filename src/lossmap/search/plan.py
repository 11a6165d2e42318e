"""Which arms of Stage 5 a scale asks over which benches: families of arms.yaml by chapters of config.yaml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lossmap import layout
from lossmap.layout import Layout
from lossmap.search import arms

STAGE = "stage5"
CHAPTERS = (STAGE, "agreement")
PINNED = ("fusion", "graph", "encoders")
"""Families whose arms are a fusion and nothing else: the engine can be asked for each of them."""


def benches(at: Layout, chapter: str, family: str) -> list[str]:
    """Where a chapter asks the arms of a family; none where it does not ask that family."""
    return _families(at, chapter).get(family, {}).get("benches", [])


def chosen(at: Layout, family: str) -> dict[str, dict[str, Any]]:
    """Id to stanza of the arms of a family that this scale asks; a small scale asks fewer."""
    known = arms.families(at, STAGE)[family]["arms"]
    return {arm: layout.pick(known, arm, "arm") for arm in _families(at, STAGE).get(family, {}).get("arms", known)}


def family(at: Layout, name: str) -> dict[str, Any]:
    """control, arms (id to axis) and factor (hashes under test) of a family at this scale."""
    found = arms.families(at, STAGE)[name]
    axes = {arm: found["axes"][arm] for arm in chosen(at, name)}
    return {"control": found["control"], "arms": axes, "factor": found["factor"]}


def asked(at: Layout) -> dict[str, list[str]]:
    """Arm id to the benches over which it is scored, for all chapters together."""
    found: dict[str, list[str]] = {}
    for chapter in CHAPTERS:
        for family in _families(at, chapter):
            for arm in chosen(at, family):
                found[arm] = sorted({*found.get(arm, []), *benches(at, chapter, family)})
    return found


def stanzas(at: Layout) -> dict[str, dict[str, Any]]:
    """Id to stanza of every arm that this scale asks."""
    return {arm: stanza for family in _families(at, STAGE) for arm, stanza in chosen(at, family).items()}


def shown_to(at: Layout, bench: str, by: str) -> Iterator[dict[str, Any]]:
    """The arms that show their candidates on a bench to the re-ranker ``by``."""
    known = stanzas(at)
    for arm, where in asked(at).items():
        if bench in where and known[arm].get("rerank", {}).get("by") == by:
            yield known[arm]


def _families(at: Layout, chapter: str) -> Mapping[str, Any]:
    return at.config["scales"].get(at.scale, {}).get("chapters", {}).get(chapter, {}).get("families", {})
