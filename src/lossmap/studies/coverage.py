"""Does an overview cover its scope: composed by mapping against by ranking, each claim checked against PostgreSQL.

The metric that stood here once, recordings that an answer names, is kept as a tombstone: it is measured once more on
what it rewards, a bare list of titles, and on what it punishes, an overview that names none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lossmap import canon
from lossmap.engine import opensearch, postgres
from lossmap.judge import intervals
from lossmap.layout import Layout
from lossmap.search import overview
from lossmap.search.overview import Block, Recording, Section
from lossmap.studies import answering, lexical
from lossmap.studies.measure import index_block

SCHEMA_VERSION = 1
SIZES = (5, 10, 25, 50, 100, 200)
TOGETHER = "What did these meetings cover, taken together?"
ARMS = ("mapping", "ranking")
NAMES = ("recordings_share", "claims_verified")
RETIRED = "recordings that the answer names, of those in scope"
BECAUSE = (
    "it rewards enumeration: asked what many sessions covered, a good answer speaks of themes and names few of them, "
    "and scores near zero, while a bare list of titles scores one"
)
CITED = {"seed": "000", "section": "A metric we replaced", "recordings": 25, "named_before": 1, "named_after": 0}


@dataclass(frozen=True)
class Asked:
    """A question over ``files`` (uuids); ``kind``: series (a summary of the gold of R8) or first (meetings by id)."""

    name: str
    kind: str
    question: str
    files: tuple[str, ...]


def study(
    at: Layout,
    key: str,
    folder: Path,
    sections: Iterable[Section],
    timing: tuple[float, float] = answering.SETTLE,
    words: int = overview.WORDS,
    sizes: Sequence[int] = SIZES,
) -> dict[str, Any]:
    """coverage.json over the injection of corpus ``key``; raises with exit 3 where the index is not whole.

    ``folder`` holds the generated queries.jsonl. ``sections``: digest sections of the corpus as plain data, each with
    ``file_uuid``, ``section``, ``text``; how they were made is not read here.
    """
    uuids = {row["meeting_id"]: row["file_uuid"] for row in canon.read_jsonl(at.injection(key) / "files.jsonl")}
    asked = scopes(canon.read_jsonl(folder / "queries.jsonl"), uuids, sizes)
    held = sorted(sections, key=lambda one: (one["file_uuid"], one["section"]))
    manifest, client = canon.read_json(at.index_folder / "manifest.json"), opensearch.client()
    corpus = canon.read_json(at.injection(key) / "manifest.json")["corpus"]
    head = {"corpus": corpus["key"], "tier": corpus["tier"], "judged_by": corpus["judged_by"]}
    with postgres.connect() as conn:
        answering.require_whole(at, key, manifest, client, conn, timing)
        scope = overview.Scope(client, at.index_name, conn, at.schema, key)
        measured = [measure(scope, one, held, words) for one in asked]
    return {
        "schema_version": SCHEMA_VERSION,
        "scale": at.scale,
        "corpus": corpus,
        "index": index_block(manifest),
        "hashes": _hashes(asked, held, manifest),
        "policy": card(words),
        "sections": len(held),
        "scopes": [{**head, **row} for rows, _ in measured for row in rows],
        "rows": [{**head, **row} for row in summary([row for rows, _ in measured for row in rows])],
        "tombstones": [{**head, **tombstone([named for _, named in measured])}],
    }


def scopes(queries: Iterable[Mapping[str, Any]], uuids: Mapping[str, str], sizes: Sequence[int]) -> list[Asked]:
    """The series of each exact summary question whose meetings are all there; then the first N meetings by id."""
    ordered = sorted((q for q in queries if q["rule"] == "R8" and q["surface"] == "exact"), key=lambda q: q["query_id"])
    series = [
        Asked(q["query_id"], "series", q["text"], tuple(uuids[meeting] for meeting in sorted(q["gold_files"])))
        for q in ordered
        if q["gold_files"] and uuids.keys() >= set(q["gold_files"])
    ]
    meetings = [uuids[meeting] for meeting in sorted(uuids)]
    fitting = [size for size in sizes if size <= len(meetings)]
    return series + [Asked(f"first-{size}", "first", TOGETHER, tuple(meetings[:size])) for size in fitting]


def measure(
    scope: overview.Scope, asked: Asked, sections: Sequence[Section], words: int
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """One row an arm, and the retired metric of a list of titles and of an overview without any."""
    recordings = scope.recordings(asked.files)
    mine = [section for section in sections if section["file_uuid"] in set(asked.files)]
    ranked = rank(asked.question, mine, recordings)
    blocks = {
        "mapping": overview.by_mapping(recordings, mine, words),
        "ranking": overview.by_ranking(recordings, ranked, words),
    }
    truth = scope.truth(asked.files)
    rows = [_row(asked, arm, blocks[arm], overview.verified(blocks[arm].claims, truth)) for arm in ARMS]
    titles = [recording.title for recording in recordings]
    texts = {"list_of_titles": "\n".join(titles), "overview_without_titles": blocks["mapping"].render(titles=False)}
    return rows, {name: named(text, titles) for name, text in texts.items()}


def rank(question: str, sections: Sequence[Section], recordings: Sequence[Recording]) -> list[Section]:
    """Sections that share a term with ``question``, by BM25 over title and text within the scope; ties by place."""
    if not sections:
        return []
    titles = {recording.file_uuid: recording.title for recording in recordings}
    texts = {f"{i:06}": f"{titles.get(one['file_uuid'], '')} {one['text']}" for i, one in enumerate(sections)}
    collection = lexical.read(texts, {"q": question})
    found = lexical.scores(collection, np.arange(len(sections)), np.array([0]))[0]
    order = np.argsort(-found, kind="stable")
    return [sections[i] for i in order if found[i] > 0]


def _row(asked: Asked, arm: str, block: Block, claims: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "scope": asked.name,
        "kind": asked.kind,
        "files": len(asked.files),
        "arm": arm,
        "recordings": len(block.parts),
        "recordings_share": len(block.parts) / len(asked.files),
        "without_text": sum(not part.text for part in block.parts),
        "sections": sum(part.sections for part in block.parts),
        "words": block.words,
        "claims": claims,
        "claims_verified": all(claim["verified"] for claim in claims.values()),
    }


def summary(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Means a kind and arm with intervals over scopes; scopes of first meetings are nested: each stands alone."""
    found = []
    for arm in ARMS:
        mine = [row for row in rows if row["arm"] == arm and row["kind"] == "series"]
        if mine:
            estimate = intervals.means_with_intervals(np.array([[row[n] for n in NAMES] for row in mine], float), None)
            means = dict(zip(NAMES, estimate.mean.tolist(), strict=True))
            # One scope has no spread: an interval would be a point.
            several = len(mine) > 1
            spread = {f"{n}_interval": estimate.queries[i].tolist() if several else None for i, n in enumerate(NAMES)}
            found.append({"kind": "series", "arm": arm, "n": len(mine), **means, **spread})
        for row in (row for row in rows if row["arm"] == arm and row["kind"] == "first"):
            means = {name: float(row[name]) for name in NAMES}
            found.append({"kind": row["scope"], "arm": arm, "n": 1, **means, **{f"{n}_interval": None for n in NAMES}})
    return found


def named(text: str, titles: Sequence[str]) -> float:
    """The retired metric: the share of ``titles`` that stand in ``text``, in any case; zero without titles."""
    there = [re.search(rf"(?<!\w){re.escape(title)}(?!\w)", text, re.IGNORECASE) for title in titles]
    return sum(match is not None for match in there) / len(titles) if titles else 0.0


def tombstone(measured: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """What was retired, why, and the measurement: the published one as cited, and ours over every scope."""
    means = {name: float(np.mean([one[name] for one in measured])) for name in (measured[0] if measured else ())}
    return {
        "metric": RETIRED,
        "retired_because": BECAUSE,
        "measurement": {"scopes": len(measured), **means, "cited": CITED},
        "replaced_by": "claims of the block about its whole scope, each checked against PostgreSQL",
    }


def card(words: int) -> dict[str, Any]:
    """The ``policy`` block: both arms have the same room."""
    return {
        "words": words,
        "sections_of_the_ranking": overview.SECTIONS,
        "ranking": {**lexical.card(), "over": "title and text of the sections in scope; no shared term, not returned"},
        "duration_tolerance_seconds_a_recording": overview.TOLERANCE,
        "claims": "recordings, duration, distinct named speakers: from the chunk plane, against PostgreSQL",
        "llm_required": False,
        "intervals": intervals.card(),
    }


def _hashes(asked: Sequence[Asked], sections: Sequence[Section], manifest: Mapping[str, Any]) -> dict[str, str]:
    return {
        "scopes": canon.digest([[one.name, one.question, list(one.files)] for one in asked]),
        "sections": canon.digest([[one["file_uuid"], one["section"], one["text"]] for one in sections]),
        "index": manifest["index_sha256"],
        "engine": canon.digest(manifest["engine"]),
    }
