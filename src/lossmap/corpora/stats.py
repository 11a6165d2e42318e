"""Counts of every normalised corpus of a scale, read from its files, none from memory of what was written."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from lossmap import canon

HEAD = ("key", "tier", "licence", "judged_by", "role", "obtained", "reason", "documents")


def stats(folder: Path) -> list[dict[str, Any]]:
    """One row a normalised corpus below ``folder`` (build/<scale>/corpora), sorted by key.

    key, tier, licence, judged_by, role, obtained, reason (None where obtained), documents (the corpus that holds the
    meetings, or None), meetings, turns, blank_turns, words, queries, gold, gold_turns, query_classes, domains, skipped
    (what the reader dropped, by cause).
    """
    return [_row(path.parent) for path in sorted(folder.glob("*/corpus.json"))]


def _row(corpus: Path) -> dict[str, Any]:
    card = canon.read_json(corpus / "corpus.json")
    head = {name: card.get(name) for name in HEAD}
    classes = Counter(query["query_class"] for query in canon.read_jsonl(corpus / "queries.jsonl"))
    spans, turns = 0, 0
    for span in canon.read_jsonl(corpus / "gold.jsonl"):
        spans += 1
        turns += span["last"] - span["first"] + 1
    return {
        **head,
        **_meetings(corpus / "meetings.jsonl"),
        "queries": classes.total(),
        "query_classes": dict(classes),
        "gold": spans,
        "gold_turns": turns,
        "skipped": card.get("skipped", {}),
    }


def _meetings(path: Path) -> dict[str, Any]:
    counts, domains = Counter(), Counter()
    for meeting in canon.read_jsonl(path):
        domains[meeting["domain"]] += 1
        for turn in meeting["turns"]:
            counts["turns"] += 1
            counts["blank_turns"] += not turn["text"].strip()
            counts["words"] += len(turn["text"].split())
    numbers = {name: counts[name] for name in ("turns", "blank_turns", "words")}
    return {"meetings": domains.total(), **numbers, "domains": dict(domains)}
