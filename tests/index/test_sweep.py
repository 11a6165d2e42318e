"""The sweep of orphans against a real OpenSearch: it deletes on a whole tally alone, and never what failed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from opensearchpy import OpenSearch, helpers

from lossmap.engine import marker
from lossmap.errors import LossmapError
from lossmap.index import mapping, settle, sweep
from lossmap.index.sweep import Tally

EVERYTHING: dict[str, Any] = {"match_all": {}}


def files(*numbers: int) -> frozenset[str]:
    return frozenset(f"{n:08d}-0000-0000-0000-000000000000" for n in numbers)


def put(client: OpenSearch, index: str, names: Iterable[str], plane: str = "chunk") -> None:
    actions = [{"_index": index, "_id": f"{n}_{plane}", "file_uuid": n, "doc_type": plane} for n in sorted(names)]
    helpers.bulk(client, actions, refresh=True)


def held(client: OpenSearch, index: str) -> dict[str, int]:
    return settle.file_counts(client, index, EVERYTHING)


@pytest.fixture
def index(opensearch: OpenSearch, unique_name) -> Iterator[str]:  # type: ignore[no-untyped-def]
    name = unique_name("sweep")
    opensearch.indices.create(index=name, body=mapping.body(8, {}, graph=False, digests=True))
    yield name
    marker.delete_index(opensearch, name)


def test_a_coordinator_that_holds_22_of_432_files_deletes_nothing(opensearch: OpenSearch, index: str) -> None:
    """The failure of the seed: another coordinator's batches are missing from this one's tally."""
    every = files(*range(432))
    put(opensearch, index, every)
    with pytest.raises(LossmapError, match="410 neither indexed nor failed") as refusal:
        sweep.sweep(opensearch, index, Tally(every, files(*range(22)), frozenset()))
    assert refusal.value.exit_code == 3
    assert opensearch.count(index=index)["count"] == 432


@pytest.mark.parametrize(
    ("tally", "words"),
    [
        (Tally(files(0, 1, 2), files(0, 1), files()), "1 neither"),
        (Tally(files(0, 1, 2), files(0, 1), files(1, 2)), "1 both"),
        (Tally(files(0, 1), files(0, 1, 2), files()), "1 outside"),
        (Tally(files(0, 1), files(0), files(1, 2)), "1 outside"),
        (Tally(files(0, 1), files(0, 2), files()), "1 neither indexed nor failed, 1 outside"),
        (Tally(files(), files(), files()), "of 0 files"),
    ],
)
def test_a_tally_that_does_not_add_up_deletes_nothing(
    opensearch: OpenSearch, index: str, tally: Tally, words: str
) -> None:
    put(opensearch, index, files(0, 1, 2, 3))
    with pytest.raises(LossmapError, match=words) as refusal:
        sweep.sweep(opensearch, index, tally)
    assert refusal.value.exit_code == 3
    assert held(opensearch, index).keys() == files(0, 1, 2, 3)


def test_a_whole_tally_deletes_both_planes_of_orphans_and_of_nothing_else(
    opensearch: OpenSearch, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(opensearch, index, files(*range(9)))
    put(opensearch, index, files(0, 5, 8), "digest")
    put(opensearch, index, files(9), "digest")
    monkeypatch.setattr(sweep, "AT_ONCE", 2)
    assert sweep.sweep(opensearch, index, Tally(files(*range(5)), files(*range(5)), files())) == 7
    counts = {name: 1 for name in files(*range(5))} | {name: 2 for name in files(0)}
    assert held(opensearch, index) == counts
    assert sweep.sweep(opensearch, index, Tally(files(*range(5)), files(*range(5)), files())) == 0


def test_a_file_that_failed_keeps_its_old_documents(opensearch: OpenSearch, index: str) -> None:
    put(opensearch, index, files(0, 1, 2, 3))
    put(opensearch, index, files(1), "digest")
    assert sweep.sweep(opensearch, index, Tally(files(0, 1, 2), files(0, 2), files(1))) == 1
    assert held(opensearch, index) == {name: 1 for name in files(0, 2)} | {name: 2 for name in files(1)}


def test_an_absent_index_is_a_clear_error(opensearch: OpenSearch, unique_name) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(LossmapError, match="absent") as refusal:
        sweep.sweep(opensearch, unique_name("absent"), Tally(files(0), files(0), files()))
    assert refusal.value.exit_code == 3


def test_an_index_that_is_not_ours_is_not_swept(opensearch: OpenSearch, unique_name) -> None:  # type: ignore[no-untyped-def]
    name = unique_name("foreign")
    opensearch.indices.create(index=name, body={"mappings": {"properties": {"file_uuid": {"type": "keyword"}}}})
    try:
        put(opensearch, name, files(0, 1))
        with pytest.raises(LossmapError) as refusal:
            sweep.sweep(opensearch, name, Tally(files(0), files(0), files()))
        assert refusal.value.exit_code == 2 and opensearch.count(index=name)["count"] == 2
    finally:
        opensearch.indices.delete(index=name)
