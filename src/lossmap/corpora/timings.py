"""Real timings of a corpus's meetings from another corpus's word files: one JSONL a rule, all or nothing a meeting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lossmap import canon, progress, transcript
from lossmap.corpora import alignment, fetch, lock, mrda, nxt, registry, timing
from lossmap.corpora.nxt import Word
from lossmap.corpora.registry import Stanza
from lossmap.errors import LossmapError
from lossmap.layout import Layout
from lossmap.transcript import Meeting

TOTALS = ("turns", "blank", "aligned_turns", "tokens", "matched_tokens", "interpolated")
Channels = Callable[[Mapping[str, Any], Path, Meeting], Mapping[str, list[Word]]]


@dataclass(frozen=True)
class Rule:
    """Word files of ``reference``; ``events``: bracketed markers are tokens too."""

    reference: str
    events: bool
    channels: Channels
    dates: Callable[[Path], Mapping[str, str | None]]


RULES = {
    "ami-words": Rule("ami", False, nxt.channels, nxt.dates),
    "ami-events": Rule("ami", True, nxt.channels, nxt.dates),
    "icsi-words": Rule("icsi-mrda", False, mrda.channels, mrda.dates),
    "fixture-events": Rule("fixture-ami", True, nxt.channels, nxt.dates),
}


def run(at: Layout, name: str) -> dict[str, Any]:
    """The rule: build/<scale>/timings/<name>.jsonl (a row a meeting) and <name>.json (the counts), which it returns.

    Where the reference could not be had there are no rows, and the counts say why.
    """
    stanza = registry.select([_rule(name).reference])[0]
    record = at.raw / f"{stanza.key}.json"
    found = canon.read_json(record) if record.exists() else {}
    documents = at.corpus(str(stanza.documents))
    rows: list[dict[str, Any]] = []
    if found.get("obtained", True):
        rows = time_meetings(name, at.raw / stanza.key, transcript.read_meetings(documents))
    out = folder(at)
    canon.write_jsonl(out / f"{name}.jsonl", rows)
    tier = transcript.worst([stanza.tier, transcript.read_card(documents)["tier"]])  # the counts are of both
    head = {"rule": name, "reference": stanza.key, "tier": tier, "licence": stanza.licence}
    report = {**head, "obtained": found.get("obtained", True), "reason": found.get("reason"), **summary(rows)}
    canon.write_json(out / f"{name}.json", report)
    return report


def folder(at: Layout) -> Path:
    return at.build / "timings"


def load(at: Layout, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Meeting id -> row, of all rules ``names``; a later rule wins where two time one meeting."""
    return {row["meeting_id"]: row for name in names for row in canon.read_jsonl(folder(at) / f"{name}.jsonl")}


def time_meetings(name: str, raw_dir: Path, meetings: Iterable[Meeting]) -> list[dict[str, Any]]:
    """Rows ``{meeting_id, turns: [[index, start, end], ...], recorded_date, provenance}`` of the meetings in reach.

    ``turns`` holds every turn with text, in seconds, or is empty where the meeting stays synthetic. Raises
    LossmapError where the raw files are not the locked ones.
    """
    rule = _rule(name)
    stanza = registry.select([rule.reference])[0]
    lock.require(stanza, raw_dir, lock.entry(stanza), f"{fetch.FETCH} --only {stanza.key}")
    dates = rule.dates(raw_dir)
    reached = [meeting for meeting in meetings if meeting.meeting_id in dates]
    return [
        _row(name, rule, stanza, raw_dir, meeting, dates[meeting.meeting_id])
        for meeting in progress.bar(reached, f"align {name}", len(reached), "meetings")
    ]


def _row(
    name: str, rule: Rule, stanza: Stanza, raw_dir: Path, meeting: Meeting, recorded_date: str | None
) -> dict[str, Any]:
    found = alignment.align(meeting, rule.channels(stanza.options, raw_dir, meeting), rule.events)
    turns, interpolated = alignment.complete(meeting, found) if found.real else ([], 0)
    provenance = {
        "timing_source": timing.REAL if found.real else "synthetic",
        "rule": name,
        "reference": stanza.key,
        "reference_version": stanza.version,
        "tier": stanza.tier,
        "turns": found.turns,
        "blank": len(meeting.turns) - found.turns,
        "aligned_turns": len(found.aligned),
        "rate": round(found.rate, 6),
        "tokens": found.tokens,
        "matched_tokens": found.matched,
        "token_match_rate": round(found.matched / found.tokens, 6) if found.tokens else 0.0,
        "interpolated": interpolated,
    }
    rows = [list(turn) for turn in turns]
    return {"meeting_id": meeting.meeting_id, "turns": rows, "recorded_date": recorded_date, "provenance": provenance}


def summary(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Totals over the meetings, and the ten least aligned of them."""
    found = [(row["meeting_id"], row["recorded_date"], row["provenance"]) for row in rows]
    totals: Counter[str] = Counter()
    for _, _, made in found:
        totals.update({k: made[k] for k in TOTALS})
    worst = sorted((made["rate"], meeting_id) for meeting_id, _, made in found)[:10]
    return {
        "meetings": len(found),
        "real": sum(made["timing_source"] == timing.REAL for _, _, made in found),
        "dated": sum(date is not None for _, date, _ in found),
        **{k: totals[k] for k in TOTALS},
        "worst": [{"meeting_id": meeting_id, "rate": rate} for rate, meeting_id in worst],
    }


def _rule(name: str) -> Rule:
    if name not in RULES:
        raise LossmapError("no such timing rule", observed=name, expected=", ".join(RULES), exit_code=2)
    return RULES[name]
