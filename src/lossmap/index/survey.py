"""Which model made the vectors: asked of the documents, never of the settings (seed 000)."""

from __future__ import annotations

from typing import Any

from opensearchpy import OpenSearch

from lossmap.errors import LossmapError
from lossmap.index import mapping

UNKNOWN = "neural"
ABSENT = "__no_embedding__"


def verdict(buckets: dict[str, int]) -> str:
    """empty | mixed | unattributed | partially_unattributed | uniform, from document counts a label (spec 9.3)."""
    counted = {label: n for label, n in buckets.items() if label != ABSENT and n}
    named = counted.keys() - {UNKNOWN}
    if not counted:
        return "empty"
    if len(named) > 1:
        return "mixed"
    if not named:
        return "unattributed"
    return "partially_unattributed" if UNKNOWN in counted else "uniform"


def survey(client: OpenSearch, index: str) -> dict[str, Any]:
    """Labels, verdict and dimension of the vectors of every plane: one query vector is held against all of them."""
    labels = {"terms": {"field": "embedding_model", "size": 50, "missing": ABSENT}}
    reply = client.search(index=index, body={"size": 0, "aggs": {"labels": labels}, "track_total_hits": True})
    buckets = {b["key"]: b["doc_count"] for b in reply["aggregations"]["labels"]["buckets"]}
    properties = client.indices.get_mapping(index=index)[index]["mappings"]["properties"]
    return {
        "embedding_models": sorted(buckets.keys() - {UNKNOWN, ABSENT}),
        "embedding_unattributed": buckets.get(UNKNOWN, 0),
        "embedding_verdict": verdict(buckets),
        "embedding_dimension": properties["embedding"]["dimension"],
    }


def require_one_space(report: dict[str, Any], index: str) -> None:
    """Refuse an index whose vectors come from two models: their cosine is no similarity (exit 3)."""
    if report["embedding_verdict"] == "mixed":
        raise LossmapError(
            "the index holds vectors of more than one model",
            where=index,
            observed=report["embedding_models"],
            expected="one model",
            next_command=mapping.REBUILD,
            exit_code=3,
        )
