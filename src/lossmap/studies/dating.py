"""How far each source of a recording's date can be believed, and their order of precedence, over a labelled set.

The set (studies/dated.py) was committed before the parser (corpora/dating.py), and the parser before it was first
measured: what is reported is that first measurement, its errors left in and listed form by form. Day is compared with
day. A source that shows the day and is not read costs recall; one that is read and gives another day costs precision,
also where nothing shows the day at all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from lossmap.corpora import dating
from lossmap.corpora.dating import Dated, Evidence
from lossmap.judge import intervals
from lossmap.layout import Layout
from lossmap.studies import dated
from lossmap.studies.dated import Recording

HEAD = {"corpus": "dating", "tier": "A", "judged_by": "constructed"}
CHOSEN = tuple(source.name for source in dating.SOURCES)
ORDERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("chosen", CHOSEN),
    ("reverse", CHOSEN[::-1]),
    ("filename-before-container", ("manual", "filename", "container", "transcript")),
    *((f"{name}-alone", (name,)) for name in CHOSEN),
)
COMMITS = {"labelled_set": "ee544258ad29", "parser": "10b89903c0b7"}
CAVEATS = [
    "how often a form occurs is the choice of the set's author: the rates rank sources over this set and estimate no "
    "archive",
    "set and parser have one author, who wrote the forms first and knew them when writing the parser",
    "the day of a recording is that of its own zone: near midnight a time in UTC shows another, which counts as wrong",
]


@dataclass(frozen=True)
class Outcome:
    """What one recording has to tell (``gold``; None: nothing), and the day that was ``given``."""

    day: date
    gold: date | None
    given: date | None

    @property
    def right(self) -> bool:
        return self.given == self.day

    @property
    def wrong(self) -> bool:
        return self.given is not None and not self.right

    @property
    def declined(self) -> bool:
        """Not given although it is there to read."""
        return self.given is None and self.gold is not None


def study(_at: Layout, _stage: str) -> dict[str, Any]:
    """dates.json: the set, each source and all of them by precedence, conflicts, other orders, and what fails."""
    some = dated.recordings()
    found = [dating.resolve(evidence(one)) for one in some]
    by_source = {name: [_of_source(*pair, name) for pair in zip(some, found, strict=True)] for name in CHOSEN}
    return {
        **HEAD,
        "commits": COMMITS,
        "caveats": CAVEATS,
        "labelled": _labelled(some),
        "sources": [{"source": source.name, "why": source.why} for source in dating.SOURCES],
        "rows": [{**HEAD, "source": name, **measured(outcomes)} for name, outcomes in by_source.items()],
        "combined": {**HEAD, "source": "by precedence", **measured(_combined(some, CHOSEN))},
        "conflicts": {**HEAD, **conflicts(some, found)},
        "precedence": orders(some),
        "failures": [row for name in CHOSEN for row in _failures(some, by_source[name], name)],
        "intervals": intervals.card(),
    }


def evidence(one: Recording) -> Evidence:
    """What the parser may see of a recording."""
    shown = {name: one.shown[name].text for name in ("container", "filename", "manual")}
    return Evidence(one.received, transcript=one.said, **shown)


def _of_source(one: Recording, found: Dated, source: str) -> Outcome:
    given = next((candidate.day for candidate in found.candidates if candidate.source == source), None)
    return Outcome(one.day, one.day if one.tells(source) else None, given)


def _combined(some: Iterable[Recording], order: Sequence[str]) -> list[Outcome]:
    return [Outcome(one.day, one.gold, dating.resolve(evidence(one), order).day) for one in some]


def measured(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Counts and shares. Precision is of the days given, recall of the recordings that show theirs."""
    given = [outcome.right for outcome in outcomes if outcome.given]
    shown = [outcome.right for outcome in outcomes if outcome.gold]
    precision, recall = _share(given), _share(shown)
    return {
        "recordings": len(outcomes),
        "tells": len(shown),
        "attempted": len(given),
        "right": sum(given),
        "wrong": sum(outcome.wrong for outcome in outcomes),
        "wrong_with_nothing_to_find": sum(outcome.wrong and outcome.gold is None for outcome in outcomes),
        "declined_with_gold": sum(outcome.declined for outcome in outcomes),
        "precision": precision[0],
        "recall": recall[0],
        "interval": {"precision": precision[1], "recall": recall[1]},
    }


def _share(right: Sequence[bool]) -> tuple[float | None, list[float] | None]:
    """A share and its interval over the recordings that it is of; None of none."""
    if not right:
        return None, None
    estimate = intervals.means_with_intervals(np.array(right, float)[:, None], None)
    return float(estimate.mean[0]), estimate.queries[0].tolist()


def conflicts(some: Sequence[Recording], found: Sequence[Dated]) -> dict[str, Any]:
    """Recordings two of whose sources say different days by construction, whether that is reported, and who wins; and
    how often the date given is right where a conflict is reported, and where none is.
    """
    pairs = list(zip(some, found, strict=True))
    real = [(one, got) for one, got in pairs if one.conflict]
    doubted = [got.day == one.day for one, got in pairs if got.conflict]
    undoubted = [got.day == one.day for one, got in pairs if got.day and not got.conflict]
    return {
        "recordings": len(real),
        "reported": sum(got.conflict for _, got in real),
        "with_a_right_source": sum(one.gold is not None for one, _ in real),
        "won_by_the_right_source": sum(got.day == one.day for one, got in real),
        "reported_without_one": sum(got.conflict and not one.conflict for one, got in pairs),
        **dict(zip(("precision_where_reported", "interval_where_reported"), _share(doubted))),
        **dict(zip(("precision_elsewhere", "interval_elsewhere"), _share(undoubted))),
    }


def orders(some: Sequence[Recording]) -> list[dict[str, Any]]:
    """Each order with the share of recordings that it dates rightly minus that of the chosen one, paired. None was
    chosen by this table: the chosen one was fixed with the parser.
    """
    rows, chosen = [], np.array([outcome.right for outcome in _combined(some, CHOSEN)], float)[:, None]
    for name, order in ORDERS:
        outcomes = _combined(some, order)
        right = np.array([outcome.right for outcome in outcomes], float)[:, None]
        against = intervals.paired(right, chosen, None)
        counts = {
            "right": sum(outcome.right for outcome in outcomes),
            "wrong": sum(outcome.wrong for outcome in outcomes),
            "declined_with_gold": sum(outcome.declined for outcome in outcomes),
        }
        delta = {"delta": float(against.mean[0]), "interval": against.queries[0].tolist()}
        rows.append({**HEAD, "name": name, "order": ", ".join(order), **counts, **delta})
    return rows


def _labelled(some: Sequence[Recording]) -> dict[str, Any]:
    groups: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for one in some:
        for source in CHOSEN:
            groups[source, one.shown[source].kind].append(one.tells(source))
    with_gold = sum(one.gold is not None for one in some)
    return {
        "seed": dated.SEED,
        "recordings": len(some),
        "dated": with_gold,
        "undatable": len(some) - with_gold,
        "by_kind": [
            {"source": source, "kind": kind, "recordings": len(tells), "tells": sum(tells)}
            for (source, kind), tells in sorted(groups.items(), key=lambda item: (CHOSEN.index(item[0][0]), item[0][1]))
        ],
    }


def _failures(some: Sequence[Recording], outcomes: Sequence[Outcome], source: str) -> list[dict[str, Any]]:
    """The kinds of form that a source gave wrongly or left unread, with the first example of each."""
    groups: dict[str, list[tuple[Recording, Outcome]]] = defaultdict(list)
    for one, outcome in zip(some, outcomes, strict=True):
        groups[one.shown[source].kind].append((one, outcome))
    rows = []
    for kind, pairs in sorted(groups.items()):
        failed = [(one, outcome) for one, outcome in pairs if outcome.wrong or outcome.declined]
        if failed:
            counts = {
                "wrong": sum(outcome.wrong for _, outcome in failed),
                "declined_with_gold": sum(outcome.declined for _, outcome in failed),
            }
            example = {"example": failed[0][0].shown[source].text, "day": failed[0][0].day.isoformat()}
            rows.append({**HEAD, "source": source, "kind": kind, "recordings": len(pairs), **counts, **example})
    return rows
