"""What the indexes of a chapter hold: one chunk plane under all of them, the digests beside it, what the window cuts,
what digests do to the scores of chunks, and that nobody wrote between control and treatment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lossmap import canon, layout, transcript
from lossmap.engine import opensearch
from lossmap.errors import LossmapError
from lossmap.index import build, mapping, plane, settle, table, vectors
from lossmap.index.header import embedding_text
from lossmap.layout import Layout
from lossmap.search import legs
from lossmap.search.legs import Leg
from lossmap.studies import scores

NO_HEADER = "none"
DEPTHS = (10, 48)
TEXT_LEG = "bm25"
SHARED = ("chunks_sha256", "header")
"""What two indexes have in common whose difference is the digest plane."""
STATE = ("docs_count", "docs_deleted", "segments", "indexing_total")


def card(at: Layout, stage: str) -> dict[str, Any]:
    """index.json; asks the live engine, for what it has counted since the indexes settled."""
    held = [_index(at, stage, index) for index in indexes(at, stage)]
    return {
        "indexes": held,
        "chunk_planes": len({row["chunk_plane_sha256"] for row in held}),
        "windows": windows(at, stage),
        "cross_talk": [row for pair in _pairs_apart_by_digests(at, stage) for row in _cross_talk(at, stage, *pair)],
        "unwritten": unwritten(at, stage),
    }


def indexes(at: Layout, stage: str) -> list[str]:
    """Every index that a contrast of the chapter names, controls first."""
    pairs = [names[1:] for names in scores.chapter(at, stage)["contrasts"]]
    return list(dict.fromkeys([*(control for _, control in pairs), *(treatment for treatment, _ in pairs)]))


def _manifest(at: Layout, index: str) -> dict[str, Any]:
    return canon.read_json(layout.load(at.scale, index).index_folder / "manifest.json")


def _index(at: Layout, stage: str, index: str) -> dict[str, Any]:
    manifest = _manifest(at, index)
    identity, state, chunking = manifest["identity"], manifest["state"], manifest["chunking"]
    return {
        "index": index,
        "header": identity["header"],
        "window": identity["encoder"]["window"],
        "digests": identity.get("digests", {}).get("header"),
        "graph": identity["graph"],
        "files": chunking["files"],
        "chunks": chunking["chunks"],
        "digest_documents": state.get("planes", {}).get("digest", 0),
        # Of the file itself: the manifest says what was there when it was written.
        "chunk_plane_sha256": canon.file_sha256(layout.load(at.scale, index).index_folder / "chunks.jsonl"),
        "index_sha256": manifest["index_sha256"],
        **{name: state[name] for name in ("docs_count", "docs_deleted", "indexing_total")},
        "ann": _ann(at, stage, index),
    }


def _ann(at: Layout, stage: str, index: str) -> list[dict[str, Any]]:
    """How much of the exact leg the graph finds, for each corpus's queries; none without a graph."""
    spec, arms = scores.chapter(at, stage), list(scores.over_graph(at, stage))
    if index not in spec["graphs"] or not arms:
        return []
    found = []
    for key in spec["corpora"]:
        document = canon.read_json(scores.scored(at, f"{index}/{key}", stage) / arms[0] / "metrics.json")
        found.append({**_about(at, key), **document["ann"]})
    return found


def _about(at: Layout, key: str) -> dict[str, Any]:
    found = transcript.read_card(at.corpus(key))
    return {"corpus": key, "tier": found["tier"], "judged_by": found["judged_by"]}


def windows(at: Layout, stage: str) -> list[dict[str, Any]]:
    """What each window of the chapter cuts, with and without each header, by plane and corpus."""
    identities = {index: _manifest(at, index)["identity"] for index in indexes(at, stage)}
    sizes = sorted({identity["encoder"]["window"] for identity in identities.values()})
    policies = sorted({NO_HEADER, *(identity["header"] for identity in identities.values())})
    found = []
    for name, index, rows in _planes(at, identities):
        for key in layout.load(at.scale, index).documents:
            mine = [row for row in rows if row.corpus == key]
            for policy in policies:
                texts = [embedding_text(policy, row) for row in mine]
                cut = vectors.cut_by(identities[index]["encoder"]["name"], texts, sizes)
                found.append({"plane": name, "index": index, **_about(at, key), "header": policy, **cut})
    return found


def _planes(at: Layout, identities: dict[str, Any]) -> Iterator[tuple[str, str, list[Any]]]:
    """(plane, index, rows): the chunks that all indexes share, and the digests of the first that has them."""
    first = next(iter(identities))
    yield "chunk", first, table.load(layout.load(at.scale, first).index_folder)
    for index, identity in identities.items():
        if "digests" in identity:
            yield "digest", index, plane.load(layout.load(at.scale, index).index_folder)
            return


def _pairs_apart_by_digests(at: Layout, stage: str) -> list[tuple[str, str]]:
    """Contrasts whose indexes differ in the digest plane, over one chunk table and under one header."""
    found = []
    for _, *pair in scores.chapter(at, stage)["contrasts"]:
        beside, alone = (_manifest(at, index)["identity"] for index in pair)
        if "digests" in beside and "digests" not in alone and all(beside[name] == alone[name] for name in SHARED):
            found.append((pair[0], pair[1]))
    return found


def _cross_talk(at: Layout, stage: str, treatment: str, control: str) -> list[dict[str, Any]]:
    """BM25 over chunks with digests in the same index, against without: digests count in document frequencies."""
    found = []
    for key in scores.chapter(at, stage)["corpora"]:
        legs_of = (legs.load(layout.load(at.scale, f"{i}/{key}").leg(TEXT_LEG)) for i in (treatment, control))
        beside = _manifest(at, treatment)["state"]["planes"]
        head = {"treatment": treatment, "control": control, **_about(at, key), "planes": beside}
        found.append({**head, **moved(*legs_of)})
    return found


def moved(treatment: Leg, control: Leg) -> dict[str, Any]:
    """Queries whose first rows differ, what share of the rows is kept, and how far the score of one row moves.

    ``ratio`` = treatment / control over rows that both lists hold; ``share`` is the mean over queries.
    """
    if treatment.query_ids != control.query_ids:
        raise LossmapError(
            "two legs do not answer the same queries",
            where=f"{treatment.meta.get('leg')} over two indexes",
            observed=len(treatment.query_ids),
            expected=len(control.query_ids),
            next_command="freeze both again: ./run lossmap freeze LEG",
            exit_code=3,
        )
    ratios = np.concatenate([np.ones(0), *(_ratios(treatment, control, i) for i in range(len(control.query_ids)))])
    return {
        "queries": len(control.query_ids),
        "depths": [_kept(treatment, control, depth) for depth in DEPTHS],
        "ratio_lowest": float(ratios.min()) if len(ratios) else None,
        "ratio_highest": float(ratios.max()) if len(ratios) else None,
        "ratio_largest_change": float(np.abs(ratios - 1).max()) if len(ratios) else None,
        "rows_compared": len(ratios),
    }


def _kept(treatment: Leg, control: Leg, depth: int) -> dict[str, Any]:
    tops = [(treatment.top(i, depth), control.top(i, depth)) for i in range(len(control.query_ids))]
    shares = [len(set(mine) & set(theirs)) / len(theirs) if theirs else 1.0 for mine, theirs in tops]
    return {
        "depth": depth,
        "queries_differ": sum(mine != theirs for mine, theirs in tops),
        "queries_with_other_rows": sum(set(mine) != set(theirs) for mine, theirs in tops),
        "share_kept": float(np.mean(shares)) if shares else None,
    }


def _ratios(treatment: Leg, control: Leg, i: int) -> np.ndarray:
    """Score ratios of the rows that both hold among their first DEPTHS[-1], for query ``i``."""
    deep = DEPTHS[-1]
    _, mine, theirs = np.intersect1d(treatment.top(i, deep), control.top(i, deep), return_indices=True)
    return treatment.scores[i, mine].astype(np.float64) / control.scores[i, theirs].astype(np.float64)


def unwritten(at: Layout, stage: str) -> list[dict[str, Any]]:
    """indexing.total of every index of the chapter, as it settled and now; raises (exit 3) where somebody wrote.

    The engine counts from its own start. After a restart the count is 0 until somebody writes, and the documents, the
    deleted ones and the segments must be those that settled; ``counter`` says which of the two it was.
    """
    client, found = opensearch.client(), []
    for index in indexes(at, stage):
        name, manifest = layout.load(at.scale, index).index_name, _manifest(at, index)
        build.require(client, name, manifest["identity"])
        settled, now = {k: manifest["state"][k] for k in STATE}, settle.state(client, name)
        restarted = settled["indexing_total"] > 0 and now["indexing_total"] == 0
        if now != {**settled, **({"indexing_total": 0} if restarted else {})}:
            raise LossmapError(
                "the index was written to after it settled", where=name, observed=now, expected=settled,
                next_command=mapping.REBUILD, exit_code=3,
            )  # fmt: skip
        totals = {"indexing_total_at_settle": settled["indexing_total"], "indexing_total_now": now["indexing_total"]}
        resumed = settled["indexing_total"] < settled["docs_count"]
        counter = "restarted" if restarted else "restarted while it was built" if resumed else "kept"
        found.append({"index": index, **totals, "counter": counter})
    return found
