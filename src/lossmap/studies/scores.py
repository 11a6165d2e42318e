"""The scored arms of a chapter: where they lie, which ask the graph, and their rows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lossmap import canon, layout
from lossmap.layout import Layout
from lossmap.studies import ann

KEPT = ("query_class", "queries", "meetings", "empty", "metrics", "intervals", "ceilings")


def chapter(at: Layout, stage: str) -> dict[str, Any]:
    """What this scale scores: benches, and the studies that need more than one corpus (config.yaml)."""
    return at.config["scales"][at.scale]["chapters"][stage]


def again(at: Layout, folder: Path) -> str:
    """The command that scores the arm of ``folder`` again: each arm of a chapter has a rule of its own."""
    chapter = folder.relative_to(at.build / "stages").parts[0]
    target = (folder / "metrics.json").relative_to(at.root)
    return f"./run {target} --forcerun score_{chapter}_{folder.name} --config scale={at.scale}"


def scored(at: Layout, bench: str, stage: str) -> Path:
    """The arms of one bench, a folder each."""
    return at.stage(stage) / "scored" / bench


def rows(at: Layout, stage: str, pairs: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    """One row a (bench, arm) of ``pairs``, corpus and class; corpora are never pooled."""
    found = []
    for bench, arm in pairs:
        document = canon.read_json(scored(at, bench, stage) / arm / "metrics.json")
        head = {"bench": bench, "arm": arm, "chunks": document["index"]["chunks"], "hashes": document["hashes"]}
        found += [{**head, **{k: row[k] for k in ("corpus", "tier", "judged_by", *KEPT)}} for row in document["rows"]]
    return found


def over_graph(at: Layout, stage: str) -> dict[str, str]:
    """Each arm of a stage that asks the graph, and the arm that is the same over the exact leg."""
    stanzas, legs = layout.arms(at)["stages"][stage]["arms"], layout.arms(at)["legs"]

    def exact(arm: str) -> list[str]:
        spec = [(name, legs[name]) for name in stanzas[arm]["legs"]]
        return [ann.reference(at, leg["scope"]) if leg["kind"] == "hnsw" else name for name, leg in spec]

    wanted = {arm: exact(arm) for arm in stanzas if exact(arm) != stanzas[arm]["legs"]}
    return {arm: next(a for a in stanzas if stanzas[a]["legs"] == chosen) for arm, chosen in wanted.items()}


def without_graph(at: Layout, stage: str) -> list[str]:
    """The arms of a stage that every index can answer."""
    return [arm for arm in layout.arms(at)["stages"][stage]["arms"] if arm not in over_graph(at, stage)]
