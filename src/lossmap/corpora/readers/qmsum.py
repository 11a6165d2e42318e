"""QMSum (Zhong et al. 2021): one JSON file a meeting, spans as pairs of decimal strings, both ends included."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

from lossmap import transcript
from lossmap.corpora.readers import Reading, load_json, malformed, select
from lossmap.corpora.registry import Stanza
from lossmap.errors import LossmapError
from lossmap.transcript import GoldSpan, Meeting, Query, Turn

VERSION = "1"
SUMMARIZE = ("summarize", "summarise", "describe")
SHARED_AT_LEAST = 2  # one query in common is a coincidence of wording


def read(stanza: Stanza, folder: Path, selection: Mapping[str, int] | None = None) -> Reading:
    """Meetings with every upstream turn (blank ones with empty text), specific queries, their validated spans.

    Raises LossmapError naming the file on malformed JSON, a missing field, an unknown domain, or a span that is
    reversed or leaves its meeting.
    """
    paths = _paths(folder, stanza.options["transcripts"])
    domains = {meeting_id: domain_of(meeting_id, stanza.options["domains"], path) for meeting_id, path in paths.items()}
    reading, skipped = Reading(), Counter()
    for meeting_id in sorted(select(domains.items(), selection)):
        path, document = paths[meeting_id], load_json(paths[meeting_id])
        try:
            reading.meetings.append(_meeting(stanza, meeting_id, domains[meeting_id], document))
            skipped["general_queries"] += len(document["general_query_list"])
            skipped["without_spans"] += _queries(stanza, reading, document["specific_query_list"])
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise malformed(path, f"{type(error).__name__}: {error}", "QMSum's fields") from error
        except LossmapError as error:
            raise malformed(path, str(error).replace("\n", ";"), "spans inside their transcript") from error
    reading.report = _report(stanza, reading, skipped)
    return reading


def _paths(folder: Path, glob: str) -> dict[str, Path]:
    paths: dict[str, Path] = {}
    for path in sorted(folder.glob(glob)):
        if path.stem in paths:
            raise malformed(path, f"the same meeting as {paths[path.stem]}", "one file a meeting")
        paths[path.stem] = path
    return paths


def domain_of(meeting_id: str, domains: Mapping[str, Iterable[str]], path: Path) -> str:
    """The domain whose prefixes fit ``meeting_id``."""
    for domain, prefixes in domains.items():
        if meeting_id.startswith(tuple(prefixes)):
            return domain
    raise malformed(path, f"meeting {meeting_id}", f"an id of a known domain: {dict(domains)}")


def _meeting(stanza: Stanza, meeting_id: str, domain: str, document: Mapping[str, Any]) -> Meeting:
    turns = tuple(
        Turn(index, turn["speaker"].strip(), turn["content"].strip())
        for index, turn in enumerate(document["meeting_transcripts"])
    )
    return Meeting(meeting_id, f"{stanza.name} {domain} — {meeting_id}", domain, stanza.language, None, turns)


def _queries(stanza: Stanza, reading: Reading, rows: Iterable[Mapping[str, Any]]) -> int:
    """Add the queries of the latest meeting; the number skipped for want of spans."""
    meeting, skipped = reading.meetings[-1], 0
    for position, row in enumerate(rows):
        if not row["relevant_text_span"]:
            skipped += 1
            continue
        query_id = f"{stanza.key}:{meeting.meeting_id}:{position:03d}"
        text = row["query"].strip()
        reading.queries.append(Query(query_id, text, query_class(text), meeting.domain))
        for first, last in row["relevant_text_span"]:
            span = GoldSpan(query_id, meeting.meeting_id, int(first), int(last))
            transcript.check_span(span, len(meeting.turns))
            reading.gold.append(span)
    return skipped


def query_class(text: str) -> str:
    """spec/harness 3.2: by the first word, which is how the published split of 404 / 1,172 was made."""
    return "summarize" if text.lower().startswith(SUMMARIZE) else "lookup"


def _report(stanza: Stanza, reading: Reading, skipped: Counter[str]) -> dict[str, Any]:
    turns = [(m.meeting_id, turn) for m in reading.meetings for turn in m.turns]
    spoken = [(meeting_id, turn.speaker) for meeting_id, turn in turns if turn.text]
    return {
        "domains": dict(Counter(m.domain for m in reading.meetings)),
        "turns": {"all": len(turns), "blank": len(turns) - len(spoken), "spoken": len(spoken)},
        "speakers": len(set(spoken)),
        "query_classes": dict(Counter(q.query_class for q in reading.queries)),
        "query_domains": dict(Counter(q.domain for q in reading.queries)),
        "skipped": {"general_queries": skipped["general_queries"], "without_spans": skipped["without_spans"]},
        "spans": {"validated": len(reading.gold)},
        "recurring_queries": _recurring(reading),
        "defects": _defects(stanza, reading),
    }


def _meetings_by_text(reading: Reading) -> dict[str, dict[str, list[str]]]:
    """Query text -> meeting -> query ids."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for query in reading.queries:
        found[query.text][query.query_id.split(":")[1]].append(query.query_id)
    return found


def _recurring(reading: Reading) -> dict[str, Any]:
    """Query strings of several meetings: for each (query, meeting) pair the other meetings' gold counts as wrong."""
    groups = [found for found in _meetings_by_text(reading).values() if len(found) > 1]
    ids = sorted(sorted(query_id for ids in found.values() for query_id in ids) for found in groups)
    return {"strings": len(groups), "pairs": sum(map(len, groups)), "query_ids": ids}


def shared_queries(reading: Reading) -> list[list[str]]:
    """Pairs of meetings where all queries of one are queries of the other, over different transcripts."""
    texts: dict[str, set[str]] = defaultdict(set)
    for text, found in _meetings_by_text(reading).items():
        for meeting_id in found:
            texts[meeting_id].add(text)
    words = {m.meeting_id: [turn.text for turn in m.turns] for m in reading.meetings}
    return [
        [a, b]
        for a, b in combinations(sorted(texts), 2)
        if len(texts[a] & texts[b]) >= max(SHARED_AT_LEAST, min(len(texts[a]), len(texts[b]))) and words[a] != words[b]
    ]


def repeated_queries(reading: Reading) -> list[list[str]]:
    """Meetings that ask one string twice, whose golds count as wrong for each other."""
    by_text = _meetings_by_text(reading).values()
    return [[m] for m in sorted({m for found in by_text for m, ids in found.items() if len(ids) > 1})]


RULES = {"repeated_queries": repeated_queries, "shared_queries": shared_queries}


def _defects(stanza: Stanza, reading: Reading) -> list[dict[str, Any]]:
    """What the rules met, then the reported defects of meetings in hand; ``present`` is None where no rule decides."""
    met = {name: rule(reading) for name, rule in sorted(RULES.items())}
    here = {m.meeting_id for m in reading.meetings}
    reported = [d for d in stanza.known_defects if here.issuperset(d["meetings"])]
    known = [{**d, "present": d["meetings"] in met[d["rule"]] if d["rule"] else None} for d in reported]
    listed = [d["meetings"] for d in known]
    new = [
        {"meetings": group, "rule": name, "note": "met by the reader", "present": True}
        for name, groups in met.items()
        for group in groups
        if group not in listed
    ]
    return new + known
