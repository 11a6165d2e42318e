"""Normalised corpus to PostgreSQL: files, speakers and one segment a non-empty turn, with a manifest of what was done.

A file whose speakers and texts are unchanged is skipped and only its recorded date is refreshed, so that re-injecting
dates alone moves no chunk; ``force`` rewrites every file. Times are no part of the content hash.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from lossmap import canon, progress, transcript
from lossmap.corpora import selection, timing, timings
from lossmap.engine import marker, postgres
from lossmap.index import shuffle
from lossmap.index.chunk import UNKNOWN_SPEAKER, words
from lossmap.index.schema import TABLES
from lossmap.layout import Layout
from lossmap.transcript import Meeting, Turn

NAMESPACE = uuid.UUID("5d2f6c0e-8c1b-5a37-9d64-0b7c4b1f2e90")
UNIT = "\x1f"
NUDGE = 0.001


@dataclass(frozen=True)
class Placed:
    """A turn with its segment's position, id and times in seconds (3 decimals)."""

    turn: Turn
    position: int
    segment_uuid: uuid.UUID
    start: float
    end: float


def run(at: Layout, key: str, force: bool = False) -> dict[str, Any]:
    """The rule: one corpus of a scale into its schema."""
    with postgres.connect() as conn:
        timed = timings.load(at, at.stanza.get("timings", []))
        report = inject(conn, at.schema, at.corpus(key), at.injection(key), force, timed, at.stanza.get("only"))
        if "shuffle" in at.stanza:
            shuffle.rows(conn, at.schema, at.stanza["shuffle"])
        return report


def name_uuid(*parts: object) -> uuid.UUID:
    return uuid.uuid5(NAMESPACE, UNIT.join(map(str, parts)))


def files_of(at: Layout, key: str, meetings: Iterable[str]) -> dict[str, str]:
    """Meeting id to file uuid, for the meetings that the gold of corpus ``key`` names."""
    owner = transcript.owner(at.corpus(key))
    return {meeting: str(name_uuid("file", owner, meeting)) for meeting in meetings}


def content_sha256(meeting: Meeting) -> str:
    """Hash over speakers and texts in order; times excluded."""
    body = "\x1e".join(f"{turn.speaker}{UNIT}{turn.text}" for turn in meeting.turns)
    return hashlib.sha256(body.encode()).hexdigest()


def place(corpus: str, meeting: Meeting, turns: Sequence[Turn], counts: Counter[str]) -> list[Placed]:
    """Non-empty turns as segments in (start, end, turn) order; every repair of a time is counted.

    A reversed pair is swapped: the interval is kept and only its labels were wrong. A zero-length segment stays (it
    contributes nothing to a judgement). Two segments with equal times and text get distinct ends, 1 ms apart.
    """
    kept = []
    for turn in turns:
        if not turn.text.strip():
            continue
        start, end = round(turn.start, 3), round(turn.end, 3)
        if end < start:
            counts["reversed_swapped"] += 1
            start, end = end, start
        kept.append((start, end, turn.index, turn))
    kept.sort(key=lambda row: row[:3])
    starts = Counter(row[0] for row in kept)
    counts["start_tie_groups"] += sum(n > 1 for n in starts.values())
    counts["segments_in_start_ties"] += sum(n for n in starts.values() if n > 1)
    return [
        Placed(turn, position, name_uuid("segment", corpus, meeting.meeting_id, turn.index), start, end)
        for position, (start, end, turn) in enumerate(_distinct(kept, counts))
    ]


def _distinct(rows: Iterable[tuple[float, float, int, Turn]], counts: Counter[str]) -> list[tuple[float, float, Turn]]:
    seen: set[tuple[float, float, str]] = set()
    out = []
    for start, end, _, turn in rows:
        while (start, end, turn.text) in seen:
            end = round(end + NUDGE, 3)
            counts["duplicate_spans_nudged"] += 1
        seen.add((start, end, turn.text))
        counts["zero_length"] += end == start
        out.append((start, end, turn))
    # A nudged end may pass a neighbour's: positions follow the order of a read.
    return sorted(out, key=lambda row: (row[0], row[1], row[2].index))


def inject(
    conn: psycopg.Connection,
    schema: str,
    corpus_folder: Path,
    out: Path,
    force: bool = False,
    timed: Mapping[str, Mapping[str, Any]] | None = None,
    only: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """One corpus into ``schema``, and manifest.json, files.jsonl, turns.jsonl into ``out``.

    ``timed``: records of corpora.timings by meeting; a meeting without one gets synthetic times. ``only``: a rule of
    corpora.selection by which some meetings are left out.
    """
    ensure_schema(conn, schema)
    card = transcript.read_card(corpus_folder)
    counts: Counter[str] = Counter()
    files, turn_rows, params, tiers = [], [], dict[str, Any](), {card["tier"]}
    meetings = selection.chosen(transcript.read_meetings(corpus_folder), only)
    for meeting in progress.bar(meetings, "inject", len(meetings), "meetings"):
        record = (timed or {}).get(meeting.meeting_id)
        turns, provenance = timing.real(meeting, record)
        meeting = replace(meeting, recorded_date=record["recorded_date"]) if record else meeting
        placed = place(card["key"], meeting, turns, counts)
        params |= provenance["params"]
        tiers.add(provenance.get("tier", card["tier"]))
        row = _file_row(card["key"], meeting, placed, provenance)
        counts[write_file(conn, schema, row, placed, force)] += 1
        files.append(row)
        turn_rows += [_turn_row(row["file_uuid"], p) for p in placed]
    _remove_others(conn, schema, card["key"], [row["file_uuid"] for row in files])
    conn.commit()
    canon.write_jsonl(out / "files.jsonl", files)
    canon.write_jsonl(out / "turns.jsonl", turn_rows)
    head = {k: card[k] for k in ("key", "version", "judged_by")} | {"tier": transcript.worst(tiers)}
    manifest = _manifest(head, canon.file_sha256(corpus_folder / "corpus.json"), files, counts, params)
    canon.write_json(out / "manifest.json", manifest)
    return {**manifest, "actions": {k: counts[k] for k in ("created", "updated", "skipped")}}


def _manifest(
    head: dict[str, Any],
    corpus_sha256: str,
    files: Sequence[dict[str, Any]],
    counts: Counter[str],
    params: dict[str, Any],
) -> dict[str, Any]:
    totals = {"segments": "segment_count", "speakers": "speaker_count", "words": "word_count"}
    return {
        "corpus": head,
        "corpus_sha256": corpus_sha256,
        "counts": {
            "files": len(files),
            **{name: sum(row[field] for row in files) for name, field in totals.items()},
            **{k: counts[k] for k in REPAIRS},
        },
        "timing_sources": dict(Counter(row["timing_source"] for row in files)),
        "timing_params": params,
    }


ALIGNED = ("rule", "reference", "reference_version", "aligned_turns", "rate", "token_match_rate", "interpolated")
"""What a real timing says of itself, file by file."""
REPAIRS = ("zero_length", "reversed_swapped", "duplicate_spans_nudged", "start_tie_groups", "segments_in_start_ties")


def ensure_schema(conn: psycopg.Connection, schema: str) -> None:
    """The tables in a schema of ours; refused where a schema of that name is somebody else's.

    Tables of another version are dropped with what they hold: the next injection writes it again.
    """
    version = f"{marker.COMMENT}, tables {canon.digest(TABLES)[:12]}"
    found = conn.execute("SELECT obj_description(to_regnamespace(%s), 'pg_namespace')", (schema,)).fetchone()
    if marker.require_schema(conn, schema) and found == (version,):
        return
    with conn.transaction():
        marker.drop_schema(conn, schema)
        marker.create_schema(conn, schema)
        name = sql.Identifier(schema)
        conn.execute(sql.SQL(TABLES).format(schema=name))
        conn.execute(sql.SQL("COMMENT ON SCHEMA {} IS {}").format(name, sql.Literal(version)))


def _file_row(corpus: str, meeting: Meeting, placed: Sequence[Placed], provenance: dict[str, Any]) -> dict[str, Any]:
    return {
        "corpus": corpus,
        "meeting_id": meeting.meeting_id,
        "file_uuid": str(name_uuid("file", corpus, meeting.meeting_id)),
        "title": meeting.title,
        "domain": meeting.domain,
        "language": meeting.language,
        "recorded_date": meeting.recorded_date,
        "turn_count": len(meeting.turns),
        "segment_count": len(placed),
        "word_count": sum(len(words(p.turn.text)) for p in placed),
        "speaker_count": len({_speaker(p.turn) for p in placed}),
        "duration_seconds": max((p.end for p in placed), default=0.0),
        "timing_source": provenance["timing_source"],
        **{name: provenance[name] for name in ALIGNED if name in provenance},
        "content_sha256": content_sha256(meeting),
    }


def _state(row: dict[str, Any], placed: Sequence[Placed]) -> str:
    """Hash of all that a file's rows hold but its date: what decides whether it is written again."""
    fixed = {name: value for name, value in row.items() if name != "recorded_date"}
    return canon.digest([fixed, [(p.start, p.end, str(p.segment_uuid)) for p in placed]])


def _turn_row(file_uuid: str, placed: Placed) -> dict[str, Any]:
    return {
        "file_uuid": file_uuid,
        "turn_index": placed.turn.index,
        "segment_position": placed.position,
        "segment_uuid": str(placed.segment_uuid),
        "speaker": _speaker(placed.turn),
        "start": placed.start,
        "end": placed.end,
        "word_count": len(words(placed.turn.text)),
    }


def _speaker(turn: Turn) -> str:
    return turn.speaker.strip() or UNKNOWN_SPEAKER


def write_file(
    conn: psycopg.Connection, schema: str, row: dict[str, Any], placed: Sequence[Placed], force: bool
) -> str:
    """created, updated or skipped; one transaction a file, so that a killed run leaves whole files only."""
    name = sql.Identifier(schema)
    with conn.transaction():
        found = conn.execute(
            sql.SQL("SELECT state_sha256 FROM {}.file WHERE file_uuid = %s").format(name),
            (row["file_uuid"],),
        ).fetchone()
        state = _state(row, placed)
        if found == (state,) and not force:
            conn.execute(
                sql.SQL("UPDATE {}.file SET recorded_date = %s WHERE file_uuid = %s").format(name),
                (row["recorded_date"], row["file_uuid"]),
            )
            return "skipped"
        conn.execute(sql.SQL("DELETE FROM {}.file WHERE file_uuid = %s").format(name), (row["file_uuid"],))
        _insert(conn, name, {**row, "state_sha256": state}, placed)
    return "updated" if found else "created"


def _insert(conn: psycopg.Connection, name: sql.Identifier, row: dict[str, Any], placed: Sequence[Placed]) -> None:
    columns = (
        "file_uuid",
        "corpus",
        "meeting_id",
        "title",
        "domain",
        "language",
        "recorded_date",
        "duration_seconds",
        "timing_source",
        "state_sha256",
    )
    conn.execute(
        sql.SQL("INSERT INTO {}.file VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)").format(name),
        [row[column] for column in columns],
    )
    speakers = {}
    for speaker in sorted({_speaker(p.turn) for p in placed}):
        insert = sql.SQL("INSERT INTO {}.speaker (file_uuid, name) VALUES (%s, %s) RETURNING speaker_id").format(name)
        speakers[speaker] = conn.execute(insert, (row["file_uuid"], speaker)).fetchone()[0]  # type: ignore[index]
    copy = sql.SQL(
        "COPY {}.segment (segment_uuid, file_uuid, speaker_id, start_time, end_time, content) FROM STDIN"
    ).format(name)
    with conn.cursor() as cursor, cursor.copy(copy) as sink:
        for p in placed:
            sink.write_row((p.segment_uuid, row["file_uuid"], speakers[_speaker(p.turn)], p.start, p.end, p.turn.text))


def _remove_others(conn: psycopg.Connection, schema: str, corpus: str, keep: Sequence[str]) -> None:
    """Files of this corpus that its present version no longer holds."""
    statement = sql.SQL("DELETE FROM {}.file WHERE corpus = %s AND NOT file_uuid = ANY(%s::uuid[])")
    conn.execute(statement.format(sql.Identifier(schema)), (corpus, list(keep)))
