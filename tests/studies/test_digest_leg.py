"""The digest leg: what is routed, found, found again and rescued, and what a block over a part of the queries is."""

from __future__ import annotations

import dataclasses

import pytest

from lossmap.errors import LossmapError
from lossmap.search import route
from lossmap.studies import digest_leg
from lossmap.studies.digest_leg import RouteRecord, digest_block

RESCUE = RouteRecord("q1", "summarize", "summarize", ("digest", "chunk"), ("g",), ("a",))
RECORDS = [
    RESCUE,
    dataclasses.replace(RESCUE, query_id="q2", chunk_files=("a", "g")),
    dataclasses.replace(RESCUE, query_id="q3", digest_files=()),
    dataclasses.replace(RESCUE, query_id="q4", digest_files=(), tiers=("chunk",), literal=True),
    dataclasses.replace(RESCUE, query_id="q5", digest_files=(), tiers=("chunk",), intent="lookup"),
    dataclasses.replace(RESCUE, query_id="q6", query_class="lookup", digest_files=("b",)),
    dataclasses.replace(
        RESCUE, query_id="q7", query_class="lookup", digest_files=(), tiers=("chunk",), intent="lookup"
    ),
    dataclasses.replace(RESCUE, query_id="q8", digest_files=(), tiers=("chunk",), speaker=True),
]
GOLD = {record.query_id: {"g"} for record in RECORDS}


def test_the_digest_block_counts_what_was_routed() -> None:
    block = digest_block(RECORDS, GOLD)
    counts = {name: block[name] for name in ("queries_scored", "routed", "returned")}
    assert counts == {"queries_scored": 8, "routed": 4, "returned": 3}
    assert block["digest_found_gold"] == {"queries": 2, "files": 2}
    assert block["chunk_found_gold"] == block["found_again"] == {"queries": 1, "files": 1}
    rescued = block["rescued"]
    assert (rescued["queries"], rescued["files"], rescued["query_ids"]) == (1, 1, ["q1"])
    assert (rescued["rate"], rescued["rate_of_scored"]) == (1 / 4, 1 / 8)
    assert block["intent_by_query_class"]["lookup"] == {"lookup": 1, "temporal": 0, "summarize": 1, "aggregate": 0}


def test_the_summarize_class_is_reconciled_with_what_was_routed() -> None:
    parts = digest_block(RECORDS, GOLD)["reconciliation"]
    assert parts == {
        "of_the_class": 6, "read_as_another_intent": -1, "barred_by_a_quoted_phrase": -1,
        "barred_by_a_speaker_filter": -1, "of_other_classes": 1, "routed": 4,
    }  # fmt: skip
    assert sum(parts.values()) == 2 * parts["routed"]


def test_a_rescue_is_beyond_the_first_ten_files_of_the_chunk_leg() -> None:
    nine, ten = [tuple(f"f{i}" for i in range(n)) + ("g",) for n in (9, 10)]
    for files, rescued in ((nine, 0), (ten, 1)):
        block = digest_block([dataclasses.replace(RESCUE, chunk_files=files)], {"q1": {"g"}})
        assert block["rescued"]["queries"] == rescued
    many = dataclasses.replace(RESCUE, digest_files=("g", "h", "i"))
    assert digest_block([many], {"q1": {"g", "h"}})["rescued"]["files"] == 2


def test_a_record_keeps_each_file_where_it_first_occurs() -> None:
    found = digest_leg.record("q", "summarize", route.route("Summarise 'the vote'"), ["b", "a", "b"], ["c", "c", "a"])
    assert (found.digest_files, found.chunk_files) == (("b", "a"), ("c", "a"))
    assert found.literal and not found.routed and not found.speaker


@pytest.mark.parametrize(
    ("records", "gold"),
    [([], {}), ([], GOLD), (RECORDS[:-1], GOLD), (RECORDS, {"q1": {"g"}}), ([RESCUE, RESCUE], {"q1": {"g"}}),
     ([dataclasses.replace(RESCUE, tiers=("chunk",))], {"q1": {"g"}})],
)  # fmt: skip
def test_absent_or_stray_records_raise(records: list[RouteRecord], gold: dict[str, set[str]]) -> None:
    with pytest.raises(LossmapError, match="routes of the scored queries are not there"):
        digest_block(records, gold)


def test_no_routed_query_has_no_rate() -> None:
    lookup = dataclasses.replace(RESCUE, tiers=("chunk",), digest_files=(), intent="lookup")
    assert digest_block([lookup], {"q1": {"g"}})["rescued"]["rate"] is None
