"""A root with scored arms whose values a test chooses: what a chapter's studies read, without legs or engines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lossmap import canon, layout
from lossmap.judge.evaluate import CLASSES, PER_QUERY_HEADER
from lossmap.judge.measures import NAMES
from lossmap.layout import Layout
from lossmap.transcript import GoldSpan, Meeting, Query, Turn, write_corpus

LEGS = {
    "bm25": {"kind": "text", "scope": "corpus"},
    "exact": {"kind": "exact", "scope": "corpus"},
    "hnsw": {"kind": "hnsw", "scope": "corpus", "k": 192},
}
ARMS = {
    "bm25": {"mode": "keyword", "legs": ["bm25"]},
    "dense-exact": {"mode": "semantic", "legs": ["exact"]},
    "rrf30-exact": {"mode": "hybrid", "legs": ["bm25", "exact"]},
    "dense-hnsw": {"mode": "semantic", "legs": ["hnsw"]},
    "rrf30-hnsw": {"mode": "hybrid", "legs": ["bm25", "hnsw"]},
}
EXACT, GRAPH = ("bm25", "dense-exact", "rrf30-exact"), ("dense-hnsw", "rrf30-hnsw")
Values = Mapping[str, float | Mapping[str, float]]
"""Query id to the value of every measure, or to a value a measure."""


def root(
    folder: Path, patch: pytest.MonkeyPatch, indexes: Mapping[str, Any], stage: str, chapter: Mapping[str, Any]
) -> Layout:
    """A root at smoke scale with one chapter, its arms the five of ARMS."""
    config = {
        "scale": "smoke", "model": "m", "header": "none",
        "scales": {"smoke": {"indexes": indexes, "chapters": {stage: chapter}}},
    }  # fmt: skip
    canon.write_json(folder / "workflow/config/config.yaml", config)
    canon.write_json(folder / "workflow/config/arms.yaml", {"legs": LEGS, "stages": {stage: {"arms": ARMS}}})
    patch.setenv("LOSSMAP_ROOT", str(folder))
    return layout.load()


def corpus(at: Layout, key: str, classes: Mapping[str, str], of: str | None = None) -> None:
    """A corpus whose queries have these classes; ``of``: the corpus whose questions it words again."""
    meetings = sorted({query_id.split(":")[1] for query_id in classes})
    queries = [Query(q, "what ?", query_class, key) for q, query_class in classes.items()]
    gold = [GoldSpan(q, q.split(":")[1], 0, 0) for q in classes]
    spoken = [Meeting(m, m, key, "en", None, (Turn(0, "A", "so"),)) for m in meetings]
    card = {"key": key, "tier": "A", "judged_by": "human", **({"documents": of} if of else {})}
    write_corpus(at.corpus(key), spoken, queries, gold, card)


def arm(
    folder: Path, values: Values, classes: Mapping[str, str], index: str = "i", qrels: str = "q", ann: Any = None
) -> Path:
    """An arm folder as studies.measure writes it, for the queries of one corpus."""
    each = {q: v if isinstance(v, Mapping) else dict.fromkeys(NAMES, v) for q, v in values.items()}
    present = [name for name in CLASSES if name == "all" or name in classes.values()]
    document = {
        "arm": {"id": folder.name}, "ann": ann, "index": {"chunks": 3, "files": 1},
        "hashes": {"query_ids": canon.digest(sorted(values)), "qrels": qrels, "index": index, "engine": "e"},
        "rows": [_row(name, [q for q in each if name in ("all", classes[q])], each) for name in present],
    }  # fmt: skip
    canon.write_json(folder / "metrics.json", document)
    rows = [(folder.name, q, name, repr(each[q][name])) for q in sorted(each) for name in NAMES]
    canon.write_csv_gz(folder / "per_query.csv.gz", PER_QUERY_HEADER, rows)
    return folder


def _row(name: str, mine: list[str], each: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    head = {"corpus": mine[0].split(":")[0], "tier": "A", "judged_by": "human", "query_class": name}
    means = {m: sum(each[q][m] for q in mine) / len(mine) for m in NAMES}
    rest = {"meetings": 1, "empty": 0, "intervals": {}, "ceilings": {}}
    return {**head, "queries": len(mine), "metrics": means, **rest}


def manifest(at: Layout, index: str, texts: Mapping[str, list[str]], **identity: Any) -> None:
    """chunks.jsonl of these files and texts, and a manifest that says so."""
    folder = layout.load(at.scale, index).index_folder
    rows = [{"file_uuid": file, "text": text} for file, some in texts.items() for text in some]
    canon.write_jsonl(folder / "chunks.jsonl", rows)
    chunking = {
        "files": len(texts), "chunks": len(rows), "splitter": {"name": "punkt"},
        "chunks_sha256": canon.file_sha256(folder / "chunks.jsonl"),
    }  # fmt: skip
    state = {"docs_count": len(rows), "docs_deleted": 0, "segments": 1, "indexing_total": len(rows)}
    canon.write_json(folder / "manifest.json", {"chunking": chunking, "identity": identity, "state": state})
