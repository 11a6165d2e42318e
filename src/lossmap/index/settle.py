"""An index measured is the index meant: wait until it holds still, then merge it to one segment (spec/harness 9.4).

A plateau in a rising count looks like its end, and a rebuild that was dispatched but has not started looks like a
finished one: so three conditions must hold together. Only chunk documents count.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from opensearchpy import OpenSearch

from lossmap.errors import LossmapError
from lossmap.index import mapping

CHUNKS = {"term": {"doc_type": "chunk"}}
PAGE = 1_000


@dataclass(frozen=True)
class Expected:
    """Files that must have chunks; ``since`` epoch milliseconds of the dispatch, None to skip that condition."""

    files: int
    since: int | None = None


@dataclass
class History:
    polls: list[tuple[int, int]] = field(default_factory=list)
    unmet: str = "not polled"


def chunk_counts(client: OpenSearch, index: str) -> dict[str, int]:
    """Chunks of each file that has any."""
    return file_counts(client, index, CHUNKS)


def file_counts(client: OpenSearch, index: str, query: dict[str, Any]) -> dict[str, int]:
    """Hits of each file, exact: a paged composite aggregation (a cardinality sketch said 1,983 for 1,984)."""
    counts: dict[str, int] = {}
    after: dict[str, Any] = {}
    while True:
        source = {"size": PAGE, "sources": [{"file": {"terms": {"field": "file_uuid"}}}], **after}
        body = {"size": 0, "query": query, "aggs": {"files": {"composite": source}}}
        page = client.search(index=index, body=body)["aggregations"]["files"]
        counts |= {b["key"]["file"]: b["doc_count"] for b in page["buckets"]}
        if "after_key" not in page:
            return counts
        after = {"after": page["after_key"]}


def stale(client: OpenSearch, index: str, since: int) -> int:
    """Documents written before ``since``, or without a time of writing."""
    fresh = {"range": {"indexed_at": {"gte": since, "format": "epoch_millis"}}}
    return client.count(index=index, body={"query": {"bool": {"must_not": [fresh]}}})["count"]


def _unmet(client: OpenSearch, index: str, expected: Expected, history: History) -> str | None:
    client.indices.refresh(index=index)
    counts = chunk_counts(client, index)
    state = (len(counts), sum(counts.values()))
    before = history.polls[-1] if history.polls else None
    history.polls.append(state)
    if state[0] != expected.files:
        return f"{state[0]} of {expected.files} files carry chunks"
    if expected.since is not None and (old := stale(client, index, expected.since)):
        return f"{old} documents are older than this build"
    if state != before:
        return f"(files, chunks) moved from {before} to {state}"
    return None


def await_settled(
    client: OpenSearch, index: str, expected: Expected, timeout: float = 1_800, interval: float = 5
) -> History:
    """Poll until every condition holds; raises with the unmet one (exit 3) after ``timeout`` seconds."""
    history = History()
    deadline = time.monotonic() + timeout
    while True:
        unmet = _unmet(client, index, expected, history)
        if unmet is None:
            return history
        history.unmet = unmet
        if time.monotonic() + interval > deadline:
            raise LossmapError(
                "the index did not settle", where=index, observed=history.unmet,
                expected=f"{expected.files} files, two equal polls, nothing older than the build",
                next_command=mapping.REBUILD, exit_code=3,
            )  # fmt: skip
        time.sleep(interval)


def prepare(client: OpenSearch, index: str, timeout: float = 1_800, merge: bool = True) -> None:
    """Refresh, merge to one segment, refresh: more segments mean more statistics and no fixed doc ids.

    Without ``merge`` the segments are left as they were written, once the engine merges no more of its own accord.
    """
    client.indices.refresh(index=index)
    if merge:
        client.indices.forcemerge(index=index, max_num_segments=1, request_timeout=timeout)
    else:
        _await_quiet(client, index, timeout)
    client.indices.refresh(index=index)


def _await_quiet(client: OpenSearch, index: str, timeout: float, interval: float = 2) -> None:
    """Until no merge has been running for two polls."""
    deadline, quiet = time.monotonic() + timeout, 0
    while quiet < 2:
        running = client.indices.stats(index=index)["_all"]["primaries"]["merges"]["current"]
        quiet = quiet + 1 if not running else 0
        if time.monotonic() > deadline:
            raise LossmapError(
                "the engine is still merging", where=index, observed=f"{running} merges after {timeout:.0f} s",
                expected="none", next_command=mapping.REBUILD, exit_code=3,
            )  # fmt: skip
        time.sleep(interval)


def state(client: OpenSearch, index: str) -> dict[str, int]:
    """docs_count, docs_deleted, segments, and indexing_total: equal before and after means that nothing was written."""
    total = client.indices.stats(index=index)["_all"]["primaries"]
    return {
        "docs_count": total["docs"]["count"],
        "docs_deleted": total["docs"]["deleted"],
        "segments": total["segments"]["count"],
        "indexing_total": total["indexing"]["index_total"],
    }
