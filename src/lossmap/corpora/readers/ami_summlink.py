"""AMI summary links: sentence of the abstractive summary -> dialogue acts -> words -> the turns that hold them.

Overlaps the AMI part of ExplainMeetSum, which was built from the same links: the two are never independent.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from lossmap.corpora import alignment, nxt
from lossmap.corpora.nxt import Act
from lossmap.corpora.readers import Reading
from lossmap.corpora.registry import Stanza
from lossmap.transcript import GoldSpan, Meeting, Query

VERSION = "1"
PLACEHOLDER = "NA"


def read(
    stanza: Stanza, folder: Path, selection: Mapping[str, int] | None = None, *, documents: Sequence[Meeting]
) -> Reading:
    """One query a linked summary sentence, one gold turn (grade 1) for every turn that holds a word of a linked act."""
    reading, counts, kinds = Reading(), Counter(), Counter()
    dated = nxt.sessions(folder)
    for meeting in documents:
        if meeting.meeting_id not in dated:
            continue
        turns_of = _turns_of_acts(stanza, folder, meeting, dated[meeting.meeting_id].agents)
        linked: dict[str, set[int]] = defaultdict(set)
        for sentence, act in nxt.links(folder, meeting.meeting_id):
            counts["links"] += 1
            counts["mapped"] += bool(turns_of[act])
            linked[sentence] |= turns_of[act]
        counts["meetings"] += 1
        for position, (sentence, kind, text) in enumerate(nxt.sentences(folder, meeting.meeting_id)):
            counts["sentences"] += 1
            if text.strip("*.") == PLACEHOLDER:
                counts["placeholder"] += 1
            elif not linked[sentence]:
                counts["unlinked"] += 1
            else:
                query_id = f"{stanza.key}:{meeting.meeting_id}:{position:04d}"
                kinds[kind] += 1
                reading.queries.append(Query(query_id, text, "lookup", meeting.domain))
                reading.gold += [GoldSpan(query_id, meeting.meeting_id, t, t, 1) for t in sorted(linked[sentence])]
    reading.report = {
        "meetings_with_queries": counts["meetings"],
        "sentences": {"all": counts["sentences"], "kept": dict(sorted(kinds.items()))},
        "skipped": {"placeholder": counts["placeholder"], "without_linked_turns": counts["unlinked"]},
        "links": {"all": counts["links"], "mapped": counts["mapped"]},
        "gold_turns_per_query": round(len(reading.gold) / len(reading.queries), 3) if reading.queries else 0.0,
        "query_domains": dict(Counter(q.domain for q in reading.queries)),
    }
    return reading


def _turns_of_acts(stanza: Stanza, folder: Path, meeting: Meeting, agents: Mapping[str, str]) -> dict[str, set[int]]:
    """Dialogue act id -> turns that hold at least one of its words or events."""
    places = alignment.align(meeting, nxt.channels(stanza.options, folder, meeting), events=True).places
    found = {}
    for label, role in stanza.options["roles"].items():
        for act_id, act in nxt.acts(folder, meeting.meeting_id, agents[role]).items():
            found[act_id] = _turns(act, label, places)
    return found


def _turns(act: Act, label: str, places: Mapping[tuple[str, int], int]) -> set[int]:
    met = (places.get((label, position)) for position in range(act.first, act.last + 1))
    return {turn for turn in met if turn is not None}
