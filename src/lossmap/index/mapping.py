"""Settings and mapping of the chunk index (spec/harness 2.1), and the identity by which two indexes are compared."""

from __future__ import annotations

from typing import Any

from lossmap import canon
from lossmap.engine import marker

EF_CONSTRUCTION = 256
M = 16
HNSW = {
    "name": "hnsw",
    # FAISS, the default engine, creates the index and then kills the node with the first document where its native
    # library is absent: Lucene is named in every vector field.
    "engine": "lucene",
    "space_type": "cosinesimil",
    "parameters": {"ef_construction": EF_CONSTRUCTION, "m": M},
}

REBUILD = "./run lossmap index --force, with the --scale and --bench of this index"

ANALYSIS = {
    "filter": {
        "english_stop": {"type": "stop", "stopwords": "_english_"},
        "english_stem": {"type": "snowball", "language": "English"},
        "word_shingles": {"type": "shingle", "min_shingle_size": 2, "max_shingle_size": 3, "output_unigrams": True},
    },
    "analyzer": {
        "transcript": {
            "type": "custom",
            "tokenizer": "standard",
            "filter": ["lowercase", "english_stop", "english_stem", "word_shingles"],
        }
    },
}


def body(
    dimension: int, meta: dict[str, Any], shards: int = 1, graph: bool = True, digests: bool = False
) -> dict[str, Any]:
    """The create-index request: one shard, no replica, sorted by (file, chunk) so that doc ids follow the corpus.

    Without ``graph`` the vectors are stored and scored exactly, and the engine builds no HNSW graph over them.
    With ``digests`` a document may be one of the digest plane; an index without keeps the mapping that it had.
    """
    keyword, integer, number, text = ({"type": kind} for kind in ("keyword", "integer", "float", "text"))
    transcript = {"type": "text", "analyzer": "transcript"}
    properties = {
        "file_uuid": keyword,
        "chunk_index": integer,
        "doc_type": keyword,
        "corpus": keyword,
        "meeting_id": keyword,
        "domain": keyword,
        "language": keyword,
        "title": {**text, "analyzer": "standard", "fields": {"keyword": keyword}},
        "content": {**transcript, "fields": {"exact": {"type": "text", "analyzer": "standard"}}},
        "speaker": keyword,
        "speakers": keyword,
        "start_time": number,
        "end_time": number,
        "recorded_date": {"type": "date"},
        "indexed_at": {"type": "date"},
        "embedding_model": keyword,
        **({"digest_section": integer} if digests else {}),
        "embedding": {"type": "knn_vector", "dimension": dimension, **({"method": HNSW} if graph else {})},
    }
    return {
        "settings": {
            "index": {
                "knn": graph,
                "number_of_shards": shards,
                "number_of_replicas": 0,
                "sort.field": ["file_uuid", "chunk_index"],
                "sort.order": ["asc", "asc"],
            },
            "analysis": ANALYSIS,
        },
        "mappings": {"dynamic": "strict", "_meta": {**marker.META, **meta}, "properties": properties},
    }


def sha256(dimension: int, shards: int = 1, graph: bool = True, digests: bool = False) -> str:
    """Hash of settings and mapping without the run's own metadata."""
    return canon.digest(body(dimension, {}, shards, graph, digests))
