"""A bench of forty queries over six files, legs and a re-ranker's scores drawn from a seed, and its arms on disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import planted
import pytest

from lossmap import canon, layout
from lossmap.index.table import Row
from lossmap.judge import qrels, runs
from lossmap.layout import Layout
from lossmap.search import legs, rerank, staged
from lossmap.studies import judging

KEY, INDEX, CHAPTER, DEPTH = "demo", "v6", "stage5", 100
BENCH = f"{INDEX}/{KEY}"
SHIPPED = "rrf-30-default.cross30.files4.final12"
ARM: dict[str, Any] = {
    "mode": "hybrid", "legs": ["bm25", "exact"], "size": 40, "leg_depth": 40, "rank_constant": 30,
    "rerank": {"by": "cross", "pairs": 30}, "per_file": 4, "final": 12,
}  # fmt: skip
PARTS = {
    SHIPPED: ARM,
    "rrf-30-default.cross30.final12": {k: v for k, v in ARM.items() if k != "per_file"},
    "rrf-30-default.files4.final12": {k: v for k, v in ARM.items() if k != "rerank"},
    "rrf-30-default.final12": {k: v for k, v in ARM.items() if k not in ("rerank", "per_file")},
}
BI = {
    "rrf-30-default.bi30.files4.final12": {**ARM, "rerank": {"by": "bi", "pairs": 30}},
    "rrf-30-default.bi30.final12": {**PARTS["rrf-30-default.cross30.final12"], "rerank": {"by": "bi", "pairs": 30}},
}
WIDE = "rrf-30-default-size96.cross30.files4.final12"
WIDER: dict[str, Any] = {**ARM, "size": 96, "leg_depth": 96}
CLASSES = ("lookup", "multi_file")
QUERIES = {f"{KEY}:m{number % 6}:{number:02d}": CLASSES[number % 2] for number in range(40)}


def make(root: Path, patch: pytest.MonkeyPatch, benches: tuple[str, ...] = (BENCH,)) -> Layout:
    index = {"documents": [KEY], "scored": [KEY]}
    families = {"parts": {"benches": list(benches)}}
    stanzas = [{"axis": "any", **arm} for arm in (PARTS | BI).values()]
    stages = {CHAPTER: {"families": {"budget": {"control": SHIPPED}, "parts": {"arms": stanzas}}}}
    at = planted.scale(patch, root, {INDEX: index, "other": index}, {CHAPTER: {"families": families}}, stages)
    bench = layout.load(at.scale, BENCH)
    rng = np.random.default_rng(11)
    rows = _documents(bench)
    _judgements(bench, rows, rng)
    _legs(bench, rows, rng)
    for arm_id, arm in (PARTS | BI | {WIDE: WIDER}).items():
        write_arm(bench, arm_id, arm, rows)
    return at


def _documents(at: Layout) -> list[Row]:
    said = [planted.meeting(f"m{number}", ("A", "so")) for number in range(6)]
    planted.corpus(at, KEY, said, {q: ("what ?", name) for q, name in QUERIES.items()}, {})
    canon.write_json(at.injection(KEY) / "manifest.json", {"corpus": {"key": KEY, "tier": "B"}})
    return planted.table(at, [planted.chunk(KEY, f"m{file}", n, "A", "so") for file in range(6) for n in range(10)])


def _judgements(at: Layout, rows: list[Row], rng: np.random.Generator) -> None:
    chosen = [np.sort(rng.choice(len(rows), size=4, replace=False)) for _ in QUERIES]
    cover = qrels.Coverage(
        tuple(QUERIES), np.array([row.doc_id for row in rows], object), np.arange(len(QUERIES) + 1) * 4,
        np.concatenate(chosen), rng.choice([0.2, 0.9], 4 * len(QUERIES)), np.zeros(4 * len(QUERIES), np.int64), {}, 0,
    )  # fmt: skip
    judging._save(at, KEY, cover)


def _legs(at: Layout, rows: list[Row], rng: np.random.Generator) -> None:
    for name in ("bm25", "exact"):
        planted.leg(at, name, {q: rng.permutation(len(rows)).tolist() for q in QUERIES}, depth=DEPTH)
    for name in ("cross", "bi"):
        pairs = [(list(range(len(rows))), rng.normal(-6, 2, len(rows)).tolist()) for _ in QUERIES]
        meta = {"leg": name, "index_sha256": planted.INDEX}
        legs.save(at.leg(name), legs.Leg(list(QUERIES), *legs.pad(pairs, DEPTH), meta))


def lists(at: Layout, arm: Mapping[str, Any], rows: list[Row]) -> list[tuple[str, dict[str, list[int]]]]:
    by = arm.get("rerank", {}).get("by", "cross")
    loaded = {name: legs.load(at.leg(name)) for name in ("bm25", "exact", by)}
    return staged.rank(arm, loaded, loaded[by], lambda row: rows[row].file_uuid)


def write_arm(at: Layout, arm_id: str, arm: Mapping[str, Any], rows: list[Row], **other: Any) -> None:
    """metrics.json and run.txt.gz, as far as the studies read them."""
    folder = at.stage(CHAPTER) / "scored" / at.bench / arm_id
    found = {
        query_id: [(rows[row].doc_id, score) for row, score in rerank.positional(mine)]
        for query_id, mine in lists(at, arm, rows)[-1][1].items()
    }
    runs.write_run(folder / "run.txt.gz", found, arm_id)
    head = {"corpus": KEY, "tier": "B", "judged_by": "human", "query_class": "all", "queries": len(QUERIES)}
    document = {"arm": {"id": arm_id, **arm}, "rows": [head], "hashes": planted.HASHES, **other}
    canon.write_json(folder / "metrics.json", document)


def folder(at: Layout, arm_id: str = SHIPPED) -> Path:
    return at.stage(CHAPTER) / "scored" / BENCH / arm_id


def not_obtained(at: Layout, bench: str) -> None:
    """An arm of a bench whose corpus could not be had."""
    place = at.stage(CHAPTER) / "scored" / bench / SHIPPED
    canon.write_json(place / "metrics.json", {"arm": {"id": SHIPPED, **ARM}, "rows": [], "hashes": planted.HASHES})


def of(rows: list[dict[str, Any]], **wanted: Any) -> Iterator[dict[str, Any]]:
    return (row for row in rows if all(row[name] == value for name, value in wanted.items()))
