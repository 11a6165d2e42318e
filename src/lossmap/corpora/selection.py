"""Which meetings of a corpus an index holds: all, those of one domain, or one session of every series.

A series is one group that meets several times over one scenario; a meeting is named by its series and, last, the letter
of its session (ES2002a).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from lossmap.errors import LossmapError
from lossmap.transcript import Meeting


def series_of(meeting_id: str) -> str:
    return meeting_id[:-1]


def first_sessions(meetings: Iterable[Meeting], domain: str) -> list[Meeting]:
    """Meetings outside ``domain``, and of each of its series the first session by name."""
    first: dict[str, Meeting] = {}
    kept = []
    for meeting in sorted(meetings, key=lambda m: m.meeting_id):
        if meeting.domain != domain or first.setdefault(series_of(meeting.meeting_id), meeting) is meeting:
            kept.append(meeting)
    return kept


def of_domain(meetings: Iterable[Meeting], domain: str) -> list[Meeting]:
    return [meeting for meeting in meetings if meeting.domain == domain]


RULES: dict[str, Callable[[Iterable[Meeting], str], list[Meeting]]] = {
    "domain": of_domain,
    "first_sessions_of": first_sessions,
}


def chosen(meetings: Sequence[Meeting], only: Mapping[str, str] | None) -> list[Meeting]:
    """The meetings that ``only`` ({rule: domain}, from config.yaml) leaves; all of them for None.

    Raises LossmapError (exit 2) on an unknown rule.
    """
    kept = list(meetings)
    for name, domain in (only or {}).items():
        if name not in RULES:
            raise LossmapError("no such selection of meetings", observed=name, expected=sorted(RULES), exit_code=2)
        kept = RULES[name](kept, domain)
    return kept
