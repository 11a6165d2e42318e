"""Settling against a real OpenSearch, one test for each way in which a moving index once passed for a settled one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from opensearchpy import OpenSearch, helpers

from lossmap.engine import marker
from lossmap.errors import LossmapError
from lossmap.index import mapping, settle
from lossmap.index.settle import Expected

DISPATCH = 1_700_000_000_000
BEFORE, AFTER = DISPATCH - 1, DISPATCH
"""Epoch milliseconds, as long as real ones: the engine takes a number of four digits for a year."""


@pytest.fixture
def index(opensearch: OpenSearch, unique_name) -> Iterator[str]:  # type: ignore[no-untyped-def]
    name = unique_name("settle")
    opensearch.indices.create(index=name, body=mapping.body(8, {}, graph=False, digests=True))
    yield name
    marker.delete_index(opensearch, name)


class Clock:
    """Time that passes in pauses alone, each with one step of the indexing worker: the number of polls is fixed."""

    def __init__(self) -> None:
        self.now = 0.0
        self.steps: Iterator[Callable[[], object]] = iter(())

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        next(self.steps, lambda: None)()

    def plan(self, *steps: Callable[[], object]) -> None:
        self.steps = iter(steps)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(settle, "time", made)
    return made


def put(client: OpenSearch, index: str, file: str, chunks: Sequence[int], at: int = AFTER) -> None:
    actions = [
        {"_index": index, "_id": f"{file}_{i}", "file_uuid": file, "chunk_index": i, "indexed_at": at,
         "doc_type": "chunk"}
        for i in chunks
    ]  # fmt: skip
    helpers.bulk(client, actions, refresh=True)


def drop(client: OpenSearch, index: str, file: str) -> None:
    client.delete_by_query(index=index, body={"query": {"term": {"file_uuid": file}}}, refresh=True)


def refused(client: OpenSearch, index: str, expected: Expected, words: str) -> None:
    with pytest.raises(LossmapError, match=words) as refusal:
        settle.await_settled(client, index, expected, timeout=4, interval=1)
    assert refusal.value.exit_code == 3


def settled(client: OpenSearch, index: str, expected: Expected) -> list[tuple[int, int]]:
    return settle.await_settled(client, index, expected, timeout=9, interval=1).polls


def test_a_reindex_between_deleting_and_writing_a_file_is_not_settled(
    opensearch: OpenSearch, index: str, clock: Clock
) -> None:
    """Two equal polls in the middle: one file has come back while the next was deleted."""
    for file in ("b", "c"):
        put(opensearch, index, file, range(4))

    def next_file() -> None:
        put(opensearch, index, "a", range(4))
        drop(opensearch, index, "b")

    clock.plan(next_file, lambda: put(opensearch, index, "b", range(4)))
    assert settled(opensearch, index, Expected(3, DISPATCH)) == [(2, 8), (2, 8), (3, 12), (3, 12)]


def test_a_plateau_with_files_missing_is_not_settled(opensearch: OpenSearch, index: str) -> None:
    for file in ("a", "b"):
        put(opensearch, index, file, range(4))
    refused(opensearch, index, Expected(3, DISPATCH), "2 of 3 files")


def test_a_count_that_rises_within_the_last_file_is_not_settled(
    opensearch: OpenSearch, index: str, clock: Clock
) -> None:
    put(opensearch, index, "a", range(4))
    put(opensearch, index, "b", [0])
    clock.plan(lambda: put(opensearch, index, "b", [1]), lambda: put(opensearch, index, "b", [2, 3]))
    assert settled(opensearch, index, Expected(2, DISPATCH)) == [(2, 5), (2, 6), (2, 8), (2, 8)]


@pytest.mark.parametrize("old", [2, 1])
def test_a_reindex_that_was_dispatched_and_has_not_come_to_every_file_is_not_settled(
    opensearch: OpenSearch, index: str, old: int
) -> None:
    """Every file carries chunks and no poll differs: the old index, which passes once nothing was dispatched."""
    for number, file in enumerate(("a", "b")):
        put(opensearch, index, file, range(4), at=BEFORE if number < old else AFTER)
    refused(opensearch, index, Expected(2, DISPATCH), f"{4 * old} documents are older")
    assert settled(opensearch, index, Expected(2)) == [(2, 8), (2, 8)]


def test_a_file_that_has_a_digest_and_no_chunk_is_not_settled(opensearch: OpenSearch, index: str) -> None:
    put(opensearch, index, "a", range(4))
    digest: dict[str, Any] = {"file_uuid": "b", "chunk_index": -1, "doc_type": "digest", "indexed_at": AFTER}
    opensearch.index(index=index, id="b_digest_0", body=digest, refresh=True)
    refused(opensearch, index, Expected(2, DISPATCH), "1 of 2 files")
