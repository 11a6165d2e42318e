"""ExplainMeetSum (Kim et al. 2023): per summary or answer sentence the evidence sentences in QMSum's turns.

A query is the sentence as upstream tokenised it; nothing is detokenised. Central evidence (CES) has grade 2,
peripheral (PES) grade 1; a turn takes the highest grade of its sentences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lossmap.corpora.readers import Reading, load_json, malformed
from lossmap.corpora.readers.qmsum import query_class
from lossmap.corpora.registry import Stanza
from lossmap.transcript import GoldSpan, Meeting, Query

VERSION = "1"
GRADES = {"CES": 2, "PES": 1}

Evidence = Sequence[Mapping[str, Any]]


def read(
    stanza: Stanza, folder: Path, selection: Mapping[str, int] | None = None, *, documents: Sequence[Meeting]
) -> Reading:
    """Queries of the set ``options.block`` with graded turns; every evidence sentence is looked up in its turn.

    Raises LossmapError naming the file on a missing field and on evidence whose speaker, turn or text is not QMSum's.
    """
    meetings = {meeting.meeting_id: meeting for meeting in documents}
    reading, counts, evidence_types = Reading(), Counter(), Counter()
    for path in sorted(folder.glob(stanza.options["evidence"]), key=lambda p: p.stem):
        if path.stem not in meetings:
            continue
        counts["files"] += 1
        meeting = meetings[path.stem]
        try:
            for position, (text, evidence) in enumerate(_items(load_json(path), stanza.options)):
                counts["all"] += 1
                grades = _grades(meeting, evidence)
                evidence_types.update(e["type"] for e in evidence)
                if grades:
                    _add(stanza, reading, meeting, position, text, grades)
        except (KeyError, TypeError, ValueError) as error:
            raise malformed(
                path, f"{type(error).__name__}: {error}", "evidence that stands in its QMSum turn"
            ) from error
    reading.report = _report(reading, counts, evidence_types, meetings)
    return reading


def _items(document: Mapping[str, Any], options: Mapping[str, Any]) -> Iterator[tuple[str, Evidence]]:
    """(query text, evidence) in file order: sentences of a summary, of the answers, or whole queries."""
    block = document[options["block"]]
    for entry in block[options["list"]] if "list" in options else [block] if block else []:
        pairs = list(zip(entry["tokenized_answer"], entry["evidence"], strict=True))
        if options["per"] == "query":
            yield entry["query"].strip(), [e for _, evidence in pairs for e in evidence]
        else:
            yield from ((sentence.strip(), evidence) for sentence, evidence in pairs)


def _grades(meeting: Meeting, evidence: Evidence) -> dict[int, int]:
    """Turn -> highest grade. Raises ValueError where a sentence is not in its turn."""
    grades: dict[int, int] = {}
    for e in evidence:
        index = e["turn_index"]
        turn = meeting.turns[index] if 0 <= index < len(meeting.turns) else None
        if turn is None or e["speaker"].strip() != turn.speaker or e["content"].strip() not in turn.text:
            raise ValueError(f"turn {index} of {meeting.meeting_id} does not hold sentence {e['sent_index']}")
        grades[index] = max(grades.get(index, 0), GRADES[e["type"]])
    return grades


def _add(
    stanza: Stanza, reading: Reading, meeting: Meeting, position: int, text: str, grades: Mapping[int, int]
) -> None:
    query_id = f"{stanza.key}:{meeting.meeting_id}:{position:04d}"
    kind = query_class(text) if stanza.options["per"] == "query" else "lookup"
    reading.queries.append(Query(query_id, text, kind, meeting.domain))
    reading.gold += [
        GoldSpan(query_id, meeting.meeting_id, turn, turn, grade) for turn, grade in sorted(grades.items())
    ]


def _report(
    reading: Reading, counts: Counter[str], evidence_types: Counter[str], meetings: Iterable[str]
) -> dict[str, Any]:
    judged = {span.meeting_id for span in reading.gold}
    return {
        "evidence_files": counts["files"],
        "meetings_with_queries": len(judged),
        "evidence_sentences": {"verified": sum(evidence_types.values()), **dict(sorted(evidence_types.items()))},
        "gold_turns_per_query": round(len(reading.gold) / len(reading.queries), 3) if reading.queries else 0.0,
        "grades": {str(g): n for g, n in sorted(Counter(span.grade for span in reading.gold).items())},
        "skipped": {"without_evidence": counts["all"] - len(reading.queries)},
        "query_classes": dict(Counter(q.query_class for q in reading.queries)),
        "query_domains": dict(Counter(q.domain for q in reading.queries)),
        "placeholders": sum(q.text.strip("*.") == "NA" for q in reading.queries),
    }
