"""Questions whose answer is a count, a set of meetings or a person: R3 to R7 of spec/harness 4.5."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from lossmap.synthetic.draft import Draft
from lossmap.synthetic.wording import Subject
from lossmap.synthetic.world import Series
from lossmap.transcript import MONTHS

COUNTED = (3, 12)  # sessions with the marker of R3
LISTED = (2, 8)  # sessions with the marker of R4
EVENTFUL, REPEATS = (2, 6), (1, 3)  # sessions with the phrase of R5, and its turns in each
DATED = (4, 14)  # sessions with the marker of R7
ATTENDED_AT_LEAST = 6  # sessions of a series of R6, where the world has enough of them
TRIES = 50


def ask(draft: Draft, wanted: int) -> tuple[dict[str, int], int]:
    """R3 to R7 in turn. How many of each were wanted, and the least sessions of a series that R6 asked about."""
    names = ("R3", "R4", "R5", "R6", "R7")
    rules = [names[place % len(names)] for place in range(wanted)]
    shares = {rule: rules.count(rule) for rule in names}
    ranked = [series for series in draft.world.series if leader(draft, series)]
    least = least_sessions(ranked, ATTENDED_AT_LEAST, shares["R6"])
    deck = draft.rng.shuffle([series for series in ranked if len(series.sessions) >= least])
    made: dict[str, Callable[[], None]] = {
        "R3": lambda: _count(draft),
        "R4": lambda: _list(draft),
        "R5": lambda: _events(draft),
        "R6": lambda: _top(draft, deck),
        "R7": lambda: _dated(draft),
    }
    for rule in rules:
        made[rule]()
    return shares, least


def least_sessions(series: Sequence[Series], usual: int, wanted: int) -> int:
    """``usual``, or as many fewer (2 at least) as it takes to find ``wanted`` series in a small world."""
    for least in range(usual, 2, -1):
        if sum(len(one.sessions) >= least for one in series) >= wanted:
            return least
    return 2


def _several(draft: Draft, bounds: tuple[int, int]) -> list[str]:
    """Keys of sessions anywhere, within ``bounds`` but at most a third of a small world."""
    low, high = bounds
    count = draft.rng.randint(low, max(low, min(high, len(draft.world.sessions) // 3)))
    return sorted(session.key for session in draft.rng.sample(draft.world.sessions, count))


def _planted(draft: Draft, rule: str, subject: Subject, keys: Sequence[str]) -> str:
    query_id = draft.number("ag")
    for key in keys:
        draft.plant_phrase(rule, query_id, subject, key)
    return query_id


def _count(draft: Draft) -> None:
    """R3: in how many meetings does a marker stand."""
    if (subject := draft.phrase("markers", "marker")) is not None:
        keys = _several(draft, COUNTED)
        draft.ask(_planted(draft, "R3", subject, keys), "aggregation", "R3", subject, gold_files=keys,
                  answer=len(keys), answer_kind="integer", scored_on="answer")  # fmt: skip


def _list(draft: Draft) -> None:
    """R4: which meetings hold a marker."""
    if (subject := draft.phrase("markers", "marker")) is not None:
        keys = _several(draft, LISTED)
        draft.ask(_planted(draft, "R4", subject, keys), "aggregation", "R4", subject, gold_files=keys, answer=keys,
                  answer_kind="file_set", scored_on="answer")  # fmt: skip


def _events(draft: Draft) -> None:
    """R5: how many times was something put off, in all its meetings together."""
    if (subject := draft.phrase("deferrals", "deferral")) is None:
        return
    query_id, total = draft.number("ag"), 0
    keys = _several(draft, EVENTFUL)
    for key in keys:
        times = draft.rng.randint(*REPEATS)
        draft.plant_phrase("R5", query_id, subject, key, times)
        total += times
    draft.ask(query_id, "aggregation", "R5", subject, gold_files=keys, answer=total, answer_kind="integer",
              scored_on="answer")  # fmt: skip


def leader(draft: Draft, series: Series) -> tuple[str, int] | None:
    """Who attended most sessions of ``series``, and how many; None where two did or there is one session alone."""
    present = Counter(p.name for key in series.sessions for p in draft.world.session(key).attendees)
    ranking = present.most_common(2)
    alone = len(ranking) == 1 or ranking[0][1] > ranking[1][1]
    return ranking[0] if alone and len(series.sessions) > 1 else None


def _top(draft: Draft, deck: list[Series]) -> None:
    """R6: who attended the most sessions of a series; every series is asked about once."""
    if deck and (found := leader(draft, series := deck.pop())) is not None:
        draft.ask(draft.number("ag"), "aggregation", "R6", draft.subject(series), gold_files=sorted(series.sessions),
                  answer={"speaker": found[0], "sessions": found[1]}, answer_kind="speaker_count", scored_on="answer",
                  **draft.place(series))  # fmt: skip


def _dated(draft: Draft) -> None:
    """R7: in how many meetings of one month; the marker stands in other months too, or the month would not matter."""
    for _ in range(TRIES):
        keys = _several(draft, DATED)
        months = Counter(draft.world.session(key).date[:7] for key in keys)
        if len(months) > 1:
            break
    else:
        return
    if (subject := draft.phrase("markers", "marker")) is None:
        return
    month = min(months, key=lambda name: (-months[name], name))
    inside = [key for key in keys if draft.world.session(key).date.startswith(month)]
    subject = replace(subject, month=MONTHS[int(month[5:]) - 1], year=month[:4])
    draft.ask(_planted(draft, "R7", subject, keys), "aggregation", "R7", subject, gold_files=inside,
              related_files=[key for key in keys if key not in inside], answer=len(inside), answer_kind="integer",
              scored_on="answer")  # fmt: skip
