"""Questions with an answer, asked of each answerer in every wording, over an index that is proved to be whole.

A count over a half-built index looks like any other count, so nothing is asked before files, chunks and rows are those
of the injection. A question whose files were not all injected is dropped, and every drop is counted with its reason.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg
from opensearchpy import OpenSearch
from psycopg import sql

from lossmap import canon
from lossmap.engine import opensearch, postgres
from lossmap.errors import LossmapError
from lossmap.index import build, mapping, settle
from lossmap.judge import answers
from lossmap.judge.answers import Gold, Policy
from lossmap.layout import Layout
from lossmap.search.aggregate import Answer, Answerer, Nobody, Reference
from lossmap.search.product import Product
from lossmap.studies.measure import index_block

SCHEMA_VERSION = 1
SETTLE = (60.0, 1.0)
STRICT = Policy()
LATER = 31
REASONS = {
    "unknown_kind": "an answer of this kind is not scored here",
    "gold_not_injected": "a meeting that the answer counts is not in the index, so the right answer over the index is "
    "another one",
    "related_not_injected": "a meeting that the answer must leave out is not in the index: a filter that leaves out "
    "nothing would be right for the wrong reason",
}
ROWS = """
SELECT count(DISTINCT file.file_uuid), count(segment.segment_id)
FROM {0}.file AS file LEFT JOIN {0}.segment AS segment USING (file_uuid) WHERE file.corpus = %s
"""


def study(
    at: Layout,
    key: str,
    folder: Path,
    policy: Policy = STRICT,
    timing: tuple[float, float] = SETTLE,
    routed: Callable[[str], bool] | None = None,
) -> dict[str, Any]:
    """answers.json: the answer-scored queries of the generated ``folder`` over the injection of corpus ``key``.

    ``routed``: whether the router sends a question to the counting tier, for the product's answerer. ``timing``:
    seconds to wait for the index to settle, and between two polls. Raises with exit 3 where the index, the chunk count
    or the database is not the one that was injected and built.
    """
    injected = list(canon.read_jsonl(at.injection(key) / "files.jsonl"))
    queries = [q for q in canon.read_jsonl(folder / "queries.jsonl") if q["scored_on"] == "answer"]
    kept, dropped = select(queries, {row["meeting_id"] for row in injected})
    manifest, client = canon.read_json(at.index_folder / "manifest.json"), opensearch.client()
    with postgres.connect() as conn:
        require_whole(at, key, manifest, client, conn, timing)
        place = (client, at.index_name, conn, at.schema, key)
        before = Product(*place, routed=routed, injected_on=after_the_last([row["recorded_date"] for row in injected]))
        answerers: list[Answerer] = [Nobody(), before, Product(*place, routed=routed), Reference(*place)]
        found = examine(_head(at, key), kept, answerers, policy)
    return {
        "schema_version": SCHEMA_VERSION,
        "scale": at.scale,
        "corpus": canon.read_json(at.injection(key) / "manifest.json")["corpus"],
        "index": index_block(manifest),
        "injected": {"files": len(injected), "undated": sum(row["recorded_date"] is None for row in injected)},
        "hashes": _hashes(kept, manifest),
        "policy": policy.card(),
        "asked": len(queries),
        "scored": len(kept),
        "dropped": dropped,
        **found,
    }


def after_the_last(dates: Iterable[str | None]) -> datetime.date:
    """A day of injection for the arm without recorded dates: in a month after every recording, as of a back-catalogue.

    Any later day gives the same answers, and today's would make two runs differ. Without a date, the first day of all.
    """
    known = [datetime.date.fromisoformat(date) for date in dates if date]
    return max(known) + datetime.timedelta(days=LATER) if known else datetime.date.min


def select(queries: Iterable[Mapping[str, Any]], injected: set[str]) -> tuple[list[Mapping[str, Any]], dict[str, Any]]:
    """Queries that the injected meetings can answer, by id; and the others with reasons, counts and what is missing."""
    kept, rows = [], []
    for query in sorted(queries, key=lambda q: q["query_id"]):
        reason, missing, needed = _obstacle(query, injected)
        if not reason:
            kept.append(query)
            continue
        who = {name: query[name] for name in ("query_id", "surface", "rule")}
        rows.append({**who, "reason": reason, "files_missing": missing, "files_needed": needed})
    counts = Counter((row["reason"], row["surface"], row["rule"]) for row in rows)
    table = [dict(zip(("reason", "surface", "rule"), group), n=n) for group, n in sorted(counts.items())]
    return kept, {"n": len(rows), "reasons": REASONS, "counts": table, "queries": rows}


def _obstacle(query: Mapping[str, Any], injected: set[str]) -> tuple[str | None, int, int]:
    """The first reason against a query (None for none), and how many of the files it needs are missing."""
    if query["answer_kind"] not in answers.KINDS:
        return "unknown_kind", 0, len(query["gold_files"])
    for reason, files in (("gold_not_injected", query["gold_files"]), ("related_not_injected", query["related_files"])):
        if missing := set(files) - injected:
            return reason, len(missing), len(set(files))
    return None, 0, 0


def examine(
    head: Mapping[str, Any], queries: Sequence[Mapping[str, Any]], answerers: Sequence[Answerer], policy: Policy
) -> dict[str, Any]:
    """Cards of the ``answerers``, rows and details of each over the same queries; no rows where no query is left."""
    gold = [Gold(q["query_id"], q["surface"], q["rule"], q["answer_kind"], q["answer"]) for q in queries]
    cards, rows, details = [], [], []
    for answerer in answerers:
        submitted: dict[str, Answer | None] = {q["query_id"]: answerer.answer(q["text"]) for q in queries}
        card = answerer.describe()
        cards.append(card)
        if not gold:
            continue
        scored = answers.score(gold, submitted, policy)
        rows += answers.rows({**head, "answerer": card["answerer"]}, scored)
        noted = {q["query_id"]: answerer.note(q["text"]) for q in queries}
        for row in answers.details(scored, submitted):
            details.append({"answerer": card["answerer"], **row, **noted[row["query_id"]]})
    return {"answerers": cards, "rows": rows, "details": details}


def require_whole(
    at: Layout,
    key: str,
    manifest: Mapping[str, Any],
    client: OpenSearch,
    conn: psycopg.Connection,
    timing: tuple[float, float] = SETTLE,
) -> None:
    """Pass when the live index is the manifest's and settled, and every injected file, chunk and row is there."""
    injections = {name: canon.read_json(at.injection(name) / "manifest.json")["counts"] for name in at.documents}
    build.require(client, at.index_name, manifest["identity"])
    expected = sum(counts["files"] for counts in injections.values())
    settle.await_settled(client, at.index_name, settle.Expected(expected), *timing)
    chunks = sum(settle.chunk_counts(client, at.index_name).values())
    _equal("chunks", at.index_name, chunks, manifest["chunking"]["chunks"], mapping.REBUILD)
    rows = conn.execute(sql.SQL(ROWS).format(sql.Identifier(at.schema)), (key,)).fetchone()
    wanted = tuple(injections[key][name] for name in ("files", "segments"))
    _equal("files and segments", f"schema {at.schema}", rows, wanted, f"./run lossmap inject {key}")


def _equal(what: str, where: str, observed: object, expected: object, mend: str) -> None:
    if observed != expected:
        raise LossmapError(
            f"{what} are not those that were injected: a count over them would be wrong",
            where=where,
            observed=observed,
            expected=expected,
            next_command=mend,
            exit_code=3,
        )


def _head(at: Layout, key: str) -> dict[str, Any]:
    corpus = canon.read_json(at.injection(key) / "manifest.json")["corpus"]
    return {"corpus": corpus["key"], "tier": corpus["tier"], "judged_by": corpus["judged_by"]}


def _hashes(queries: Sequence[Mapping[str, Any]], manifest: Mapping[str, Any]) -> dict[str, str]:
    return {
        "query_ids": canon.digest([q["query_id"] for q in queries]),
        "gold": canon.digest([[q["query_id"], q["text"], q["answer_kind"], q["answer"]] for q in queries]),
        "index": manifest["index_sha256"],
        "engine": canon.digest(manifest["engine"]),
    }
