"""Request bodies of the chat retrieval path (spec/harness 2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

FIELDS = ("content", "content.exact", "title")
CHUNK_PLANE = {"term": {"doc_type": "chunk"}}
DIGEST_PLANE = {"term": {"doc_type": "digest"}}


def text_clause(text: str) -> dict[str, Any]:
    """The epic-time clause: a quoted query is a phrase; otherwise fuzzy best fields, cross fields, sloppy phrase."""
    stripped = text.strip()
    if len(stripped) > 2 and stripped[0] == stripped[-1] == '"':
        return {"multi_match": {"query": stripped[1:-1], "fields": list(FIELDS), "type": "phrase"}}
    should = [_match(text, type="best_fields", fuzziness="AUTO", prefix_length=2, boost=1.5)]
    if sum(len(word) >= 2 for word in text.split()) > 1:
        should.append(_match(text, type="cross_fields", operator="or", boost=0.8))
        should.append(_match(text, type="phrase", slop=3, boost=2.0))
    return {"bool": {"should": should, "minimum_should_match": 1}}


def _match(text: str, **options: Any) -> dict[str, Any]:
    return {"multi_match": {"query": text, "fields": list(FIELDS), **options}}


def plane(
    files: Sequence[str] | None = None, corpus: str | None = None, speakers: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """Filter clauses: the chunk plane, and the files, the corpus or the speakers where the scope names them."""
    return [
        CHUNK_PLANE,
        *([] if files is None else [{"terms": {"file_uuid": sorted(files)}}]),
        *([] if corpus is None else [{"term": {"corpus": corpus}}]),
        *([] if speakers is None else [{"terms": {"speaker": sorted(speakers)}}]),
    ]


def on_digests(clause: Any) -> Any:
    """A leg, or a whole request, with the digest plane where the chunk plane stood; everything else as it was."""
    if clause == CHUNK_PLANE:
        return DIGEST_PLANE
    if isinstance(clause, dict):
        return {name: on_digests(part) for name, part in clause.items()}
    return [on_digests(part) for part in clause] if isinstance(clause, list) else clause


def text_leg(text: str, **scope: Any) -> dict[str, Any]:
    """The text leg; ``scope`` as ``plane`` takes it."""
    return {"bool": {"must": [text_clause(text)], "filter": plane(**scope)}}


def knn_leg(vector: Sequence[float], k: int, inside: bool = False, **scope: Any) -> dict[str, Any]:
    """The vector leg. ``inside``: the filter restricts the graph search itself (exact for few files); otherwise it
    stands beside it and cuts the k nearest of the whole index afterwards, which leaves few in a narrow scope.
    """
    knn: dict[str, Any] = {"vector": list(vector), "k": k}
    if inside:
        knn["filter"] = {"bool": {"filter": plane(**scope)}}
    return {"bool": {"must": [{"knn": {"embedding": knn}}], "filter": plane(**scope)}}


def exact_leg(vector: Sequence[float], **scope: Any) -> dict[str, Any]:
    """The engine's brute-force cosine over the filtered documents, as a clause that fits a hybrid body."""
    params = {"field": "embedding", "query_value": list(vector), "space_type": "cosinesimil"}
    script = {"lang": "knn", "source": "knn_score", "params": params}
    return {"script_score": {"query": {"bool": {"filter": plane(**scope)}}, "script": script}}


def request(query: dict[str, Any], size: int) -> dict[str, Any]:
    return {"query": query, "size": size, "_source": False, "track_total_hits": False}


def hybrid(legs: Sequence[dict[str, Any]], size: int) -> dict[str, Any]:
    """A hybrid request; each leg contributes its first ``size`` hits. Send it with a pipeline only: without one the
    engine answers with sentinel scores near -9.5e9.
    """
    return request({"hybrid": {"queries": list(legs)}}, size)
