"""Files as rules leave them, small and written by hand: a scale, arms with their values, chunk tables, frozen legs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lossmap import canon, layout, transcript
from lossmap.index import inject
from lossmap.index.table import Row
from lossmap.judge.measures import NAMES
from lossmap.layout import Layout
from lossmap.search import legs
from lossmap.transcript import GoldSpan, Meeting, Query, Turn

INDEX = "i" * 8
HASHES = {"query_ids": "q", "qrels": "r", "index": INDEX, "engine": "e"}


def scale(
    patch: pytest.MonkeyPatch, root: Path, indexes: dict[str, Any], chapters: dict[str, Any], stages: dict[str, Any]
) -> Layout:
    """A root of its own with one scale, as layout.load finds it."""
    config = {"scale": "tiny", "scales": {"tiny": {"indexes": indexes, "chapters": chapters}}}
    canon.write_json(root / "workflow/config/config.yaml", config)
    canon.write_json(root / "workflow/config/arms.yaml", {"stages": stages, "legs": {}})
    patch.setenv("LOSSMAP_ROOT", str(root))
    return layout.load()


def meeting(meeting_id: str, *said: tuple[str, str]) -> Meeting:
    turns = tuple(Turn(i, speaker, text, float(i), i + 0.5) for i, (speaker, text) in enumerate(said))
    return Meeting(meeting_id, f"Meeting {meeting_id}", "demo", "en", None, turns)


def corpus(
    at: Layout, key: str, meetings: Sequence[Meeting], queries: Mapping[str, tuple[str, str]], gold: Mapping[str, str]
) -> None:
    """``queries``: id to text and class; ``gold``: id to the meeting whose first turn it is."""
    card = {"key": key, "version": "1", "tier": "A", "judged_by": "human", "licence": "MIT", "name": key}
    asked = [Query(query_id, text, query_class, "demo") for query_id, (text, query_class) in queries.items()]
    spans = [GoldSpan(query_id, meeting_id, 0, 0) for query_id, meeting_id in gold.items()]
    transcript.write_corpus(at.corpus(key), meetings, asked, spans, card)


def uuid_of(key: str, meeting_id: str) -> str:
    return str(inject.name_uuid("file", key, meeting_id))


def chunk(key: str, meeting_id: str, index: int, speaker: str, text: str, start: float = 0.0) -> Row:
    file = uuid_of(key, meeting_id)
    title = f"Meeting {meeting_id}"
    return Row(
        file, index, key, meeting_id, "demo", "en", title, None, speaker, (speaker,), start, start + 1.0, text
    )  # fmt: skip


def table(at: Layout, rows: Sequence[Row]) -> list[Row]:
    """The chunk table and the manifest of an index."""
    ordered = sorted(rows, key=lambda row: (row.file_uuid, row.chunk_index))
    canon.write_jsonl(at.index_folder / "chunks.jsonl", map(asdict, ordered))
    canon.write_json(at.index_folder / "manifest.json", {"index_sha256": INDEX})
    return ordered


def leg(at: Layout, name: str, hits: Mapping[str, Sequence[int]], index: str = INDEX, depth: int = 48) -> None:
    """Rows of each query, best first."""
    rows, scores = legs.pad([(some, np.arange(len(some), 0, -1.0).tolist()) for some in hits.values()], depth)
    legs.save(at.leg(name), legs.Leg(list(hits), rows, scores, {"leg": name, "index_sha256": index}))


def arm(
    folder: Path,
    name: str,
    values: Mapping[str, float],
    classes: Mapping[str, str] | None = None,
    legs_of: Mapping[str, str] | None = None,
    tier: str = "A",
    **other: Any,
) -> None:
    """metrics.json and per_query.csv.gz: each query has one value in every measure. ``legs_of``: leg name to sha256."""
    key = next(iter(values)).split(":")[0]
    head = {"corpus": key, "tier": tier, "judged_by": "human"}
    names = {**dict.fromkeys(values, "lookup"), **(classes or {})}
    rows = []
    for query_class in (*sorted(set(names.values())), "all"):
        some = [value for query_id, value in values.items() if query_class in ("all", names[query_id])]
        metrics = dict.fromkeys(NAMES, sum(some) / len(some))
        rows.append({**head, "query_class": query_class, "queries": len(some), "metrics": metrics})
    used = dict(legs_of or {f"{name}-leg": "s"})
    document = {"arm": {"id": name, "legs": list(used)}, "legs": used, "rows": rows, "hashes": HASHES, **other}
    canon.write_json(folder / "metrics.json", document)
    lines = [(name, query_id, measure, repr(value)) for query_id, value in values.items() for measure in sorted(NAMES)]
    canon.write_csv_gz(folder / "per_query.csv.gz", ("name", "qid", "measure", "value"), sorted(lines))
