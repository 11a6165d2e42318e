"""The router as a classifier, without any engine: which label each question gets, beside the label that it should get.

No label here is a reader's judgement of a benchmark question: QMSum's come from its first word, the synthetic ones from
the rule that made the question, the held-out ones from definitions written down with them. Accuracy over QMSum and the
exact wordings says that the rules know their own surface; the rewordings and the held-out set say how far they carry.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from lossmap import canon, transcript
from lossmap.corpora.readers import qmsum
from lossmap.judge import intervals
from lossmap.search import route
from lossmap.search.route import LABELS, Route
from lossmap.studies.compare import meeting_of

SCHEMA_VERSION = 1
HELDOUT = Path(__file__).with_name("heldout.yaml")
TIER = "A"
AS_ASKED = "as asked"
ALL = "all"
EXPECTED = {
    "lookup": "lookup",
    "verbatim": "lookup",
    "multi_file": "lookup",
    "summarize": "summarize",
    "aggregation": "aggregate",
}
TEMPORAL_RULES = ("R7",)
APART = ("heldout",)
PROVENANCE = {
    "qmsum": "surface: summarize where the lower-cased question begins with one of "
    f"{', '.join(qmsum.SUMMARIZE)}; lookup otherwise",
    "synthetic": "construction: the rule that made the question; multi_file and verbatim are lookups",
    "heldout": "written from the definitions of the classes and committed before the rules; the author of the rules "
    "wrote both",
}
UNGROUNDED = ["temporal"]
CAVEATS = [
    "qmsum and the exact surface share their cues with the rules: accuracy there is a check of the code, not of the "
    "idea",
    "no benchmark label is temporal; a temporal verdict on a qmsum question that begins with when counts as misrouted",
    "temporal and lookup ask the same tiers: such a misroute costs nothing downstream",
    "the bootstrap interval of a rate of 0 or 1 has no width; n says how little that proves",
    "the held-out questions and the rules have one author, who knew the specification's cues when writing both",
]
# What counts as quoted where any apostrophe is a quotation mark: two possessives then quote what is between them.
LOOSE = re.compile(rf"[\"'“”‘’][^\"'“”‘’]{{{route.LITERAL},}}[\"'“”‘’]")


@dataclass(frozen=True)
class Case:
    """One question with its ``expected`` label.

    ``slot`` is the time that it names where ``timed`` (None: it names none); ``group`` its meeting, None where it
    belongs to no single one.
    """

    corpus: str
    judged_by: str
    surface: str
    query_id: str
    text: str
    expected: str
    slot: str | None = None
    timed: bool = False
    group: str | None = None

    @property
    def head(self) -> dict[str, str]:
        return {"corpus": self.corpus, "tier": TIER, "judged_by": self.judged_by, "surface": self.surface}


Routed = list[tuple[Case, Route]]


def study(qmsum_corpus_folder: Path, generated_folder: Path) -> dict[str, Any]:
    """router.json: numbers and query ids, no text of a corpus."""
    cases = [*qmsum_cases(qmsum_corpus_folder), *synthetic_cases(generated_folder), *heldout_cases()]
    groups: defaultdict[tuple[str, str], Routed] = defaultdict(list)
    for case in cases:
        groups[case.corpus, case.surface].append((case, route.route(case.text)))
    parts = list(groups.values())
    timed = [part for part in parts if any(case.timed for case, _ in part)]
    return {
        "schema_version": SCHEMA_VERSION,
        "classifier": route.card(),
        "label_provenance": PROVENANCE,
        "ungrounded_labels": UNGROUNDED,
        "caveats": CAVEATS,
        "heldout_sha256": canon.file_sha256(HELDOUT),
        "intervals": intervals.card(),
        "cases_by_corpus": dict(Counter(case.corpus for case in cases)),
        "rows": [row for part in parts for row in accuracy(part)],
        "confusion": [{**part[0][0].head, "counts": confusion(part)} for part in parts],
        "lookup_leakage": [{**part[0][0].head, **leakage(part)} for part in parts],
        "temporal_slot": [{**part[0][0].head, **slots(part)} for part in timed],
        "literal": [row for part in parts for row in quoted(part)],
        "pooled": pooled(groups),
        "misroutes": [row for part in parts for row in misroutes(part)],
    }


def qmsum_cases(folder: Path) -> Iterator[Case]:
    """Every query, labelled again by its first word: the class field of the corpus must not drift from the rule."""
    key = transcript.read_card(folder)["key"]
    for query in transcript.read_queries(folder):
        expected = EXPECTED[qmsum.query_class(query.text)]
        group = meeting_of(query.query_id)
        yield Case(key, "constructed", AS_ASKED, query.query_id, query.text, expected, group=group)


def synthetic_cases(folder: Path) -> Iterator[Case]:
    """Every generated query in every wording; temporal rules are timed where their gold dates share one month."""
    dates = {row["meeting_key"]: row["date"] for path in sorted(folder.glob("meetings/*.jsonl"))
             for row in canon.read_jsonl(path)}  # fmt: skip
    rows = sorted(canon.read_jsonl(folder / "queries.jsonl"), key=lambda row: (row["surface"], row["query_id"]))
    for row in rows:
        months = {dates[name][:7] for name in row["gold_files"]} if row["rule"] in TEMPORAL_RULES else set()
        slot = min(months) if len(months) == 1 else None
        yield Case(
            "synthetic",
            "constructed",
            row["surface"],
            row["query_id"],
            row["text"],
            EXPECTED[row["query_class"]],
            slot,
            timed=row["rule"] not in TEMPORAL_RULES or slot is not None,
        )


def heldout_cases() -> Iterator[Case]:
    """The questions of heldout.yaml."""
    with open(HELDOUT, encoding="utf-8") as handle:
        questions = yaml.safe_load(handle)["questions"]
    for row in questions:
        yield Case("heldout", "model", AS_ASKED, row["id"], row["text"], row["intent"], row["slot"], timed=True)


def accuracy(part: Routed) -> list[dict[str, Any]]:
    """A row an expected label that occurs, and one over all."""
    rows = []
    for label in (*LABELS, ALL):
        members = [pair for pair in part if label in (ALL, pair[0].expected)]
        if members:
            right = [case.expected == found.intent for case, found in members]
            labels = Counter(found.intent for _, found in members)
            counts = {"expected": label, "n": len(right), "correct": sum(right),
                      "found": {name: labels[name] for name in LABELS}}  # fmt: skip
            rows.append({**part[0][0].head, **counts, **rate("accuracy", members, right)})
    return rows


def rate(name: str, members: Routed, hits: Sequence[bool]) -> dict[str, Any]:
    """The share of ``hits`` with both intervals; None over no case."""
    if not hits:
        return {name: None, "intervals": None}
    names = [case.group for case, _ in members if case.group is not None]
    values = np.array(hits, float)[:, None]
    estimate = intervals.means_with_intervals(values, names if len(names) == len(hits) else None)
    return {name: float(estimate.mean[0]), "intervals": estimate.interval(0)}


def confusion(part: Routed) -> dict[str, dict[str, int]]:
    """Expected label to found label to count; every label in both places."""
    counts = Counter((case.expected, found.intent) for case, found in part)
    return {expected: {found: counts[expected, found] for found in LABELS} for expected in LABELS}


def leakage(part: Routed) -> dict[str, Any]:
    """How many lookups went elsewhere, and where: what they lose is part of their excerpt budget."""
    members = [pair for pair in part if pair[0].expected == "lookup"]
    away = [found.intent != "lookup" for _, found in members]
    to = Counter(found.intent for _, found in members if found.intent != "lookup")
    return {"n": len(members), "misrouted": sum(away), **rate("rate", members, away), "to": dict(to)}


def slots(part: Routed) -> dict[str, Any]:
    """``recovered`` of the ``cases`` that name a time, value by value; ``spurious`` of those that name none."""
    members = [pair for pair in part if pair[0].timed and pair[0].slot]
    without = [pair for pair in part if pair[0].timed and not pair[0].slot]
    hits = [found.temporal is not None and found.temporal.value == case.slot for case, found in members]
    missed = [case.query_id for (case, _), hit in zip(members, hits) if not hit]
    spurious = [case.query_id for case, found in without if found.temporal]
    counts = {"cases": len(members), "recovered": sum(hits), "missed": missed}
    return {**counts, **rate("rate", members, hits), "without": len(without), "spurious": spurious}


def quoted(part: Routed) -> list[dict[str, Any]]:
    """Per expected label: questions with a literal phrase, and how many there are where any apostrophe quotes."""
    rows = []
    for label in LABELS:
        members = [(case, found) for case, found in part if case.expected == label]
        if members:
            literal = sum(bool(found.literal) for _, found in members)
            loose = sum(bool(LOOSE.search(case.text)) for case, _ in members)
            counts = {"n": len(members), "literal": literal, "any_apostrophe": loose}
            rows.append({**part[0][0].head, "expected": label, **counts})
    return rows


def pooled(groups: Mapping[tuple[str, str], Routed]) -> dict[str, Any]:
    """The one place where corpora are pooled: the real one and the exact wordings, as the seed printed its numbers."""
    keys = [key for key in groups if key[0] not in APART and key[1] in (AS_ASKED, "exact")]
    part = [pair for key in keys for pair in groups[key]]
    right = sum(case.expected == found.intent for case, found in part)
    lost, timed = leakage(part), slots(part)
    names = ("cases", "recovered", "rate")
    return {
        "corpus": " + ".join(key for key, _ in keys),
        "tier": TIER,
        "judged_by": "constructed",
        "cases": len(part),
        "correct": right,
        "accuracy": right / len(part) if part else None,
        "confusion": confusion(part),
        "lookup_leakage": {name: lost[name] for name in ("n", "misrouted", "rate", "to")},
        "temporal_slot": {name: timed[name] for name in names},
    }


def misroutes(part: Routed) -> list[dict[str, Any]]:
    """Ids of the questions with a wrong label, by what was expected, what was found and which cues fired."""
    wrong: defaultdict[tuple[str, str, tuple[str, ...]], list[str]] = defaultdict(list)
    for case, found in part:
        if case.expected != found.intent:
            wrong[case.expected, found.intent, found.signals].append(case.query_id)
    return [
        {**part[0][0].head, "expected": expected, "found": intent, "signals": list(names), "query_ids": sorted(ids)}
        for (expected, intent, names), ids in sorted(wrong.items())
    ]
