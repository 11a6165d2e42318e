"""What the digest tier is worth as a choice of files: recorded beside the ranked list, never merged into it.

Judgements are over chunks. A digest in the ranked list would be unjudged, score as irrelevant and push chunks down:
every reading of that number would be wrong. So the list stays the chunk plane's, and the leg is asked what it claims to
do: to name the right recording where the chunks do not.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lossmap import transcript
from lossmap.errors import LossmapError
from lossmap.judge import intervals
from lossmap.search.route import LABELS, Route

FIRST = 10
"""Files of the chunk leg that a reader would reach: what the digest leg finds among them, it finds again."""
CLASS = "summarize"
TOGETHER = "together"
COUNTED = (
    "queries_scored", "routed", "returned", "digest_found_gold", "chunk_found_gold", "found_again", "rescued",
    "intent_by_query_class", "reconciliation",
)  # fmt: skip
CARD = {
    "measures": "the digest leg as a choice of files, over the queries that were routed to it",
    "ranked_plane": "chunk: digest hits stand beside the ranked list and never in it",
    "rescued_definition": f"gold files among the digest leg's files and not among the chunk leg's first {FIRST} "
    "distinct files",
    "caveat": "a file that both legs find is found again and worth nothing here: rescued, not found_gold, is the gain",
}


@dataclass(frozen=True)
class RouteRecord:
    """One scored query as it was routed; ``digest_files`` and ``chunk_files`` distinct, in rank order.

    ``literal``: a quoted phrase, ``speaker``: a speaker filter barred the digest tier.
    """

    query_id: str
    query_class: str
    intent: str
    tiers: tuple[str, ...]
    digest_files: tuple[str, ...]
    chunk_files: tuple[str, ...]
    literal: bool = False
    speaker: bool = False

    @property
    def routed(self) -> bool:
        return "digest" in self.tiers


def record(
    query_id: str,
    query_class: str,
    found: Route,
    digest_files: Iterable[str],
    chunk_files: Iterable[str],
    speaker: bool = False,
) -> RouteRecord:
    """The record of one query; files in rank order, each kept where it first occurs."""
    digests, chunks = (tuple(dict.fromkeys(files)) for files in (digest_files, chunk_files))
    return RouteRecord(query_id, query_class, found.intent, found.tiers, digests, chunks, bool(found.literal), speaker)


def digest_block(records: Sequence[RouteRecord], gold_files: Mapping[str, Collection[str]]) -> dict[str, Any]:
    """What the digest leg found; ``gold_files``: the files with gold of every scored query.

    Raises where the records are not one of each scored query, or where a query has digest files that was not routed to
    the tier: a block over a part of the queries reads like one over all.
    """
    _require_whole(records, gold_files)
    routed = sorted((r for r in records if r.routed), key=lambda r: r.query_id)
    gold = [set(gold_files[r.query_id]) for r in routed]
    by_digest = [files & set(r.digest_files) for r, files in zip(routed, gold)]
    by_chunk = [files & set(r.chunk_files[:FIRST]) for r, files in zip(routed, gold)]
    rescued = [digest - chunk for digest, chunk in zip(by_digest, by_chunk)]
    return {
        **CARD,
        "first_files": FIRST,
        "queries_scored": len(records),
        "routed": len(routed),
        "returned": sum(bool(r.digest_files) for r in routed),
        "digest_found_gold": _found(by_digest),
        "chunk_found_gold": _found(by_chunk),
        "found_again": _found([digest & chunk for digest, chunk in zip(by_digest, by_chunk)]),
        "rescued": {
            **_found(rescued),
            **_rate([bool(files) for files in rescued], ["|".join(sorted(files)) for files in gold]),
            "rate_of_scored": sum(map(bool, rescued)) / len(records),
            "query_ids": [r.query_id for r, files in zip(routed, rescued) if files],
        },
        "intent_by_query_class": _intents(records),
        "reconciliation": reconciliation(records),
    }


def together(blocks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts of several corpora's ``blocks`` added up, as the seed printed them; no rate, which would be a mean over
    corpora. Of the blocks' tiers the worst.
    """
    counts: list[dict[str, Any]] = [{name: block[name] for name in COUNTED} for block in blocks]
    for count in counts:
        count["rescued"] = {name: count["rescued"][name] for name in ("queries", "files")}
    return {
        "corpus": TOGETHER,
        "corpora": [block["corpus"] for block in blocks],
        "tier": transcript.worst(block["tier"] for block in blocks),
        "judged_by": " + ".join(sorted({block["judged_by"] for block in blocks})),
        "first_files": FIRST,
        **_added(counts),
    }


def _added(parts: Sequence[Any]) -> Any:
    """Numbers added, name by name; a name that one part lacks counts nothing there."""
    if not isinstance(parts[0], Mapping):
        return sum(parts)
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: _added([part[name] for part in parts if name in part]) for name in names}


def reconciliation(records: Sequence[RouteRecord]) -> dict[str, int]:
    """From the queries of the summarize class to the routed ones; the parts add up to ``routed``.

    Neither number contains the other: some of the class are barred or read as something else, others leak in.
    """
    own = [r for r in records if r.query_class == CLASS]
    read = [r for r in own if r.intent == CLASS]
    return {
        "of_the_class": len(own),
        "read_as_another_intent": len(read) - len(own),
        "barred_by_a_quoted_phrase": -sum(r.literal for r in read),
        "barred_by_a_speaker_filter": -sum(r.speaker and not r.literal for r in read),
        "of_other_classes": sum(r.routed for r in records if r.query_class != CLASS),
        "routed": sum(r.routed for r in records),
    }


def _found(files: Sequence[Collection[str]]) -> dict[str, int]:
    return {"queries": sum(map(bool, files)), "files": sum(map(len, files))}


def _rate(hits: Sequence[bool], groups: Sequence[str]) -> dict[str, Any]:
    """The share of ``hits`` among routed queries, with intervals over queries and over sets of gold files."""
    if not hits:
        return {"rate": None, "intervals": {"meetings": None, "queries": None}}
    estimate = intervals.means_with_intervals(np.array(hits, float)[:, None], groups)
    return {"rate": float(estimate.mean[0]), "intervals": estimate.interval(0)}


def _intents(records: Sequence[RouteRecord]) -> dict[str, dict[str, int]]:
    """Query class to intent to count; every intent in every class."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for r in records:
        counts[r.query_class][r.intent] += 1
    return {name: {intent: counts[name][intent] for intent in LABELS} for name in sorted(counts)}


def _require_whole(records: Sequence[RouteRecord], gold_files: Mapping[str, Collection[str]]) -> None:
    ids = Counter(r.query_id for r in records)
    strays = [r.query_id for r in records if r.digest_files and not r.routed]
    observed = {
        "records": len(records),
        "without a record": len(gold_files.keys() - ids),
        "not scored": len(ids.keys() - gold_files.keys()),
        "twice": sum(count > 1 for count in ids.values()),
        "digest files without the tier": len(strays),
    }
    if not records or any(list(observed.values())[1:]):
        raise LossmapError(
            "the routes of the scored queries are not there, one of each",
            where="digest leg",
            observed=", ".join(f"{name} {count}" for name, count in observed.items()),
            expected=f"{len(gold_files)} records, none of the others",
            next_command="route every scored query again, and record it where it is ranked",
        )
