"""A small index of the real engine with many equal texts, and a scale over it, as fusion is held against the engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opensearchpy import OpenSearch

from lossmap import canon, layout
from lossmap.engine import marker
from lossmap.index import build
from lossmap.index.table import Row
from lossmap.index.vectors import Vectors
from lossmap.layout import Layout
from lossmap.search import bodies, freeze, legs
from lossmap.search.legs import Leg, Live
from lossmap.transcript import Query

DIMENSION, CHUNKS, K = 16, 400, 192
WORDS = ["budget", "colour", "battery", "remote", "price", "market", "survey", "design", "button", "screen", "menu"]
LEGS: dict[str, dict[str, Any]] = {
    "bm25": {"kind": "text", "scope": "corpus", "depth": 300},
    "exact": {"kind": "exact", "scope": "corpus", "depth": 300},
    "hnsw": {"kind": "hnsw", "scope": "corpus", "depth": K, "k": K},
}
INDEX_SHA256 = "c" * 8


@contextmanager
def index(client: OpenSearch, name: str) -> Iterator[tuple[Live, Vectors, list[Row]]]:
    random = np.random.default_rng(7)
    rows = [
        Row(f"{i // 50:08d}-0000-0000-0000-000000000000", i % 50, "demo", f"m{i // 50}", "Demo", "en", "Demo", None,
            "A", ("A",), 0.0, 1.0, " ".join(random.choice(WORDS, 3)))
        for i in range(CHUNKS)
    ]  # fmt: skip
    texts = {text: i for i, text in enumerate(dict.fromkeys(r.text for r in rows))}
    values = random.normal(size=(len(texts), DIMENSION)).astype(np.float32)
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    passages = Vectors(values, np.array([texts[r.text] for r in rows], np.int32))
    key = {"encoder": {"name": "model-a", "dimension": DIMENSION}, "graph": True}
    build.build(client, name, rows, passages, key, timing=(20, 0.05))
    yield legs.Live(client, name, {row.doc_id: i for i, row in enumerate(rows)}), passages, rows
    marker.delete_index(client, name)


def queries(count: int = 24) -> list[tuple[str, list[float]]]:
    """Texts with their vectors, of unit length as an encoder gives them."""
    random = np.random.default_rng(11)
    vectors = random.normal(size=(count, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return [(" ".join(random.choice(WORDS, 2)), vector.tolist()) for vector in vectors]


def clauses(asked: tuple[str, list[float]], k: int = K) -> list[dict[str, Any]]:
    return [bodies.text_leg(asked[0]), bodies.knn_leg(asked[1], k)]


def frozen(live: Live, requests: Sequence[dict[str, Any]], name: str, spec: dict[str, Any]) -> Leg:
    """One leg of the live engine, query by query."""
    hits = list(legs._search(live, [bodies.request(clause, spec["depth"]) for clause in requests]))
    ids = [f"q{i:02d}" for i in range(len(requests))]
    return Leg(ids, *legs.pad(hits, spec["depth"]), {"leg": name, "index_sha256": INDEX_SHA256, **spec})


def graph_legs(live: Live) -> dict[str, Leg]:
    """The text leg and the HNSW leg of all ``queries``."""
    pairs = [clauses(asked) for asked in queries()]
    return {
        name: frozen(live, [pair[i] for pair in pairs], name, LEGS[name]) for i, name in enumerate(("bm25", "hnsw"))
    }


def scale(patch: pytest.MonkeyPatch, root: Path, stages: Mapping[str, Any]) -> Layout:
    """A root of its own whose arms.yaml holds ``stages`` over LEGS."""
    indexes = {"small": {"documents": ["demo"], "scored": ["demo"]}}
    canon.write_json(root / "workflow/config/config.yaml", {"scale": "tiny", "scales": {"tiny": {"indexes": indexes}}})
    canon.write_json(root / "workflow/config/arms.yaml", {"stages": stages, "legs": LEGS})
    patch.setenv("LOSSMAP_ROOT", str(root))
    return layout.load("tiny", "small/demo")


def bench(at: Layout, live: Live, rows: list[Row]) -> freeze.Bench:
    """The bench of ``scale`` over the crafted index, its legs not yet frozen."""
    found, asked = freeze.Bench(at), queries()
    vars(found).update(
        rows=rows,
        row_of=live.row_of,
        queries=[Query(f"q{i:02d}", text, "lookup", "demo") for i, (text, _) in enumerate(asked)],
        query_vectors=np.array([vector for _, vector in asked], np.float32),
        manifest={"index_sha256": INDEX_SHA256, "engine": {"name": "opensearch", "version": "3.6.0"}},
        live=live,
    )
    return found


def freeze_legs(at: Layout, live: Live, passages: Vectors) -> None:
    """All three legs, into the files of ``at``."""
    vectors = np.array([vector for _, vector in queries()], np.float32)
    exact = legs.pad(list(legs.Exact(passages).corpus(vectors, 300)), 300)
    found = graph_legs(live)
    found["exact"] = Leg(found["bm25"].query_ids, *exact, {**found["bm25"].meta, "leg": "exact", **LEGS["exact"]})
    for name, leg in found.items():
        legs.save(at.leg(name), leg)
