"""What an engine must be able to do before a number may come from it."""

from __future__ import annotations

import uuid

from opensearchpy import OpenSearch

from lossmap.engine import marker
from lossmap.errors import LossmapError

PROCESSORS = frozenset({"normalization-processor", "score-ranker-processor"})

# A nine-document probe: ranks in the text leg and in the dense leg. Document 0 wins one leg and is last in the other,
# document 1 is third in both: 1/(c+1) + 1/(c+9) against 2/(c+3), so 0 leads for small c and 1 for large c.
TEXT_RANKS = (1, 3, 2, 4, 5, 6, 7, 8, 9)
DENSE_RANKS = (9, 3, 8, 7, 6, 5, 4, 2, 1)
CONSTANTS = (1, 1000)


def check_capabilities(client: OpenSearch) -> None:
    """Every node has k-NN and both fusion processors; exit 2 otherwise."""
    nodes = client.transport.perform_request("GET", "/_nodes/search_pipelines,plugins")["nodes"]
    for node in nodes.values():
        processors = {row["type"] for row in node["search_pipelines"].get("phase_results_processors", [])}
        plugins = {row["name"] for row in node["plugins"]}
        missing = sorted(PROCESSORS - processors) + sorted({"opensearch-knn"} - plugins)
        if missing:
            raise LossmapError(
                "the engine lacks what hybrid retrieval needs",
                where=f"node {node['name']}, OpenSearch {node['version']}",
                observed=f"missing: {', '.join(missing)}",
                expected="plugins opensearch-knn and opensearch-neural-search (3.x)",
                next_command="LOSSMAP_ENGINES=embedded lossmap engine up, or install both plugins on the cluster",
                exit_code=2,
            )


def check_rank_constant_alive(client: OpenSearch) -> None:
    """Two rank constants must order the probe differently (OpenSearch 2.19 takes 60 whatever is asked); else exit 2."""
    index = f"lossmap-probe-{uuid.uuid4().hex[:12]}"
    client.indices.create(index=index, body=_probe_index())
    try:
        client.bulk(index=index, body=_probe_documents(), refresh=True)
        leaders = [_probe_leader(client, index, constant) for constant in CONSTANTS]
    finally:
        marker.delete_index(client, index)
    if leaders != ["0", "1"]:
        raise LossmapError(
            "the engine's rank_constant is dead: it does not move the order it must move",
            where=f"probe with rank constants {CONSTANTS}",
            observed=f"leading documents {leaders}",
            expected="leading documents ['0', '1']",
            next_command="LOSSMAP_ENGINES=embedded lossmap engine up, or a cluster of OpenSearch 3.x",
            exit_code=2,
        )


def _probe_index() -> dict[str, object]:
    # engine lucene: the default loads a native library that kills the node at the first document.
    method = {"name": "hnsw", "engine": "lucene", "space_type": "l2"}
    return {
        "settings": {"index": {"knn": True, "number_of_shards": 1, "number_of_replicas": 0}},
        "mappings": {
            "_meta": marker.META,
            "properties": {
                "text": {"type": "text"},
                "vector": {"type": "knn_vector", "dimension": 2, "method": method},
            },
        },
    }


def _probe_documents() -> list[dict[str, object]]:
    """Equal lengths, so that term frequency alone orders the text leg; distance orders the dense one."""
    lines: list[dict[str, object]] = []
    for number, (text, dense) in enumerate(zip(TEXT_RANKS, DENSE_RANKS, strict=True)):
        words = ["probe"] * (10 - text) + ["filler"] * text
        lines += [{"index": {"_id": str(number)}}, {"text": " ".join(words), "vector": [float(dense), 1.0]}]
    return lines


def _probe_leader(client: OpenSearch, index: str, constant: int) -> str:
    """Which of documents 0 and 1 stands first under one rank constant."""
    legs = [
        {"match": {"text": "probe"}},
        {"knn": {"vector": {"vector": [0.0, 1.0], "k": len(DENSE_RANKS)}}},
    ]
    fusion = {"score-ranker-processor": {"combination": {"technique": "rrf", "rank_constant": constant}}}
    body = {
        "size": len(DENSE_RANKS),
        "_source": False,
        "query": {"hybrid": {"queries": legs}},
        "search_pipeline": {"phase_results_processors": [fusion]},
    }
    hits = client.search(index=index, body=body)["hits"]["hits"]
    return next(hit["_id"] for hit in hits if hit["_id"] in ("0", "1"))
