"""The generated corpus: the chosen meetings, and the ranked queries in one wording."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lossmap import canon
from lossmap.corpora import closure
from lossmap.corpora.readers import Reading
from lossmap.corpora.registry import Stanza
from lossmap.transcript import GoldSpan, Meeting, Query, Turn

VERSION = "1"
RANKED = "retrieval"
AGAIN = "move the folder away, then ./run lossmap synth generate, with the --scale of this folder"

Row = Mapping[str, Any]


def read(
    stanza: Stanza,
    folder: Path,
    selection: Mapping[str, int] | None = None,
    *,
    documents: Sequence[Meeting] | None = None,
) -> Reading:
    """Meetings of the generated ``folder`` and the ranked queries whose wording is ``options.surface``.

    ``selection``: ``{"budget": N}`` by gold closure, ``{"first": N}`` by key, None for every meeting. With
    ``documents`` the queries are about those meetings and none are read. Raises where a file is not the generated one.
    """
    canon.check_sums(folder, AGAIN)
    asked = [row for row in canon.read_jsonl(folder / "queries.jsonl")]
    reading, keys = Reading(), _keys(folder)
    if documents is None:
        reading.meetings = list(_meetings(folder, _chosen(asked, keys, selection)))
    domains = {meeting.meeting_id: meeting.domain for meeting in documents or reading.meetings}
    kept = set(domains)
    mine = [row for row in asked if row["surface"] == stanza.options["surface"] and row["scored_on"] == RANKED]
    closed = [row for row in mine if kept.issuperset(closure.needed(row))]
    for row in closed:
        query_id = ":".join([stanza.key, *_meeting(row), row["query_id"]])
        reading.queries.append(Query(query_id, row["text"], row["query_class"], domains[row["gold_files"][0]]))
        reading.gold += [
            GoldSpan(query_id, meeting, first, last)
            for meeting, spans in sorted(row["gold_turns"].items())
            for first, last in spans
        ]
    reading.report = {
        "generator": canon.read_json(folder / "config.json"),
        "surface": stanza.options["surface"],
        "closure": closure.table(asked, keys, kept),
        "skipped": {"gold_not_selected": closure.uncounted(mine, closed)},
    }
    return reading


def _meeting(row: Row) -> Sequence[str]:
    """The one gold meeting of a query: its cluster where intervals resample meetings. None where there are several."""
    return row["gold_files"] if len(row["gold_files"]) == 1 else ()


def _chosen(queries: Sequence[Row], keys: Sequence[str], selection: Mapping[str, int] | None) -> set[str]:
    if selection is None:
        return set(keys)
    if "first" in selection:
        kept = set(keys[: selection["first"]])
        broken = closure.uncounted(queries, [row for row in queries if kept.issuperset(closure.needed(row))])
        print(f"warning: the first {len(kept)} meetings by key cut gold from queries: {broken}", file=sys.stderr)
        return kept
    return closure.close(queries, keys, min(selection["budget"], len(keys)))


def _shards(folder: Path) -> list[Path]:
    return sorted((folder / "meetings").glob("part-*.jsonl"))


def _keys(folder: Path) -> list[str]:
    return sorted(row["meeting_key"] for path in _shards(folder) for row in canon.read_jsonl(path))


def _meetings(folder: Path, kept: set[str]) -> Iterator[Meeting]:
    for path in _shards(folder):
        for row in canon.read_jsonl(path):
            if row["meeting_key"] in kept:
                turns = tuple(
                    Turn(turn["index"], turn["speaker"], turn["content"], turn["start"], turn["end"])
                    for turn in row["turns"]
                )
                yield Meeting(row["meeting_key"], row["title"], row["register"], "en", row["date"], turns)
