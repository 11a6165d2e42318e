"""The chapter on Stage 4: what is routed to digests and what they find there, the control that did not move, overviews
that cover their scope, what a speaker said, and how a recording gets its date.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lossmap import layout
from lossmap.errors import LossmapError
from lossmap.index import plane
from lossmap.layout import Layout
from lossmap.search import legs, pipeline, route
from lossmap.search.freeze import Bench
from lossmap.search.legs import Leg
from lossmap.studies import compare, coverage, dating, digest_leg, measure, scores, speaking, unmoved
from lossmap.studies.digest_leg import RouteRecord
from lossmap.studies.stage import classes

AGAIN = "rrf30-again"
"""The arm of this chapter: its legs are frozen again, from the index as the router and the digests left it."""
BEFORE = ("stage3", "rrf30-exact")
"""The stage and the arm that it must not have moved from."""
DIGESTS = "digests"
"""The digest leg: the chat path's request over the other plane, fused as it fuses."""


def routed(at: Layout, stage: str) -> dict[str, Any]:
    """routed.json: every scored query routed, and what the digest leg found as a choice of files, corpus by corpus."""
    # A corpus that could not be had has no query, and no block: its numbers read "not obtained".
    asked = [name for name in benches(at, stage) if compare.read_arm(scores.scored(at, name, stage) / AGAIN).query_ids]
    blocks = [_block(at, stage, name) for name in asked]
    return {
        "router": route.card(),
        "digest_leg": layout.arm(at, stage, DIGESTS),
        "rows": blocks,
        "together": digest_leg.together(blocks),
    }


def benches(at: Layout, stage: str) -> list[str]:
    """The index of the chapter with the queries of each of its corpora."""
    spec = scores.chapter(at, stage)
    return [f"{spec['index']}/{key}" for key in spec["corpora"]]


def _block(at: Layout, stage: str, name: str) -> dict[str, Any]:
    bench = Bench(layout.load(at.scale, name))
    scored = compare.read_arm(scores.scored(at, name, stage) / AGAIN)
    gold = {query_id: bench.gold_files.get(query_id, []) for query_id in scored.query_ids}
    row = next(row for row in scored.document["rows"] if row["query_class"] == "all")
    head = {field: row[field] for field in ("corpus", "tier", "judged_by")}
    return {**head, **digest_leg.digest_block(list(_records(bench, stage, gold)), gold)}


def _records(bench: Bench, stage: str, scored: dict[str, list[str]]) -> Iterator[RouteRecord]:
    """One record of each scored query that both rankings hold; the block refuses to be made without the others."""
    ranked = measure.ranking(bench.at, layout.arm(bench.at, stage, AGAIN))
    arm = layout.arm(bench.at, stage, DIGESTS)
    digests = pipeline.rank(arm, {name: _leg(bench, name) for name in arm["legs"]})
    of_digest = [row.file_uuid for row in plane.load(bench.at.index_folder)]
    for query in bench.queries:
        if query.query_id in scored and query.query_id in ranked and query.query_id in digests:
            found = route.route(query.text)
            asked = digests[query.query_id] if "digest" in found.tiers else []
            files = (document.rpartition("_")[0] for document, _ in ranked[query.query_id])
            yield digest_leg.record(
                query.query_id, query.query_class, found, (of_digest[row] for row, _ in asked), files
            )


def _leg(bench: Bench, name: str) -> Leg:
    """A frozen digest leg of the present index."""
    leg = legs.load(bench.at.leg(name))
    if leg.meta["index_sha256"] != bench.manifest["index_sha256"]:
        raise LossmapError(
            "a digest leg was frozen over another index",
            where=bench.at.leg(name),
            observed=leg.meta["index_sha256"],
            expected=bench.manifest["index_sha256"],
            next_command=f"./run --forcerun freeze {bench.at.leg(name)}",
            exit_code=3,
        )
    return leg


def control(at: Layout, stage: str) -> dict[str, Any]:
    """control.json: the rows of this chapter's arm beside those of Stage 3; any difference raises with exit 3."""
    rows = []
    for name in benches(at, stage):
        before = scores.scored(at, name, BEFORE[0]) / BEFORE[1]
        rows += unmoved.rows(scores.scored(at, name, stage) / AGAIN, before, classes(layout.load(at.scale, name)))
    return {
        "arm": AGAIN,
        "control": {"stage": BEFORE[0], "arm": BEFORE[1]},
        "rows": rows,
        "per_query_equal": all(row["largest_difference"] == 0.0 for row in rows),
        "queries": sum(row["queries"] for row in rows if row["query_class"] == "all"),
    }


def covered(at: Layout, stage: str) -> dict[str, Any]:
    """coverage.json: overviews of scopes of the chapter's ``coverage`` corpus, asked of the live engines."""
    spec = scores.chapter(at, stage)
    index, key = layout.load(at.scale, spec["index"]), spec["coverage"]
    sections = [
        {"file_uuid": row.file_uuid, "section": row.section, "text": row.text}
        for row in plane.load(index.index_folder)
        if row.corpus == key
    ]
    return coverage.study(index, key, at.generated, sections)


STUDIES: dict[str, Callable[[Layout, str], Any]] = {
    "routed": routed,
    "control": control,
    "coverage": covered,
    "speaker": speaking.study,
    "dates": dating.study,
}
