"""Answers scored as answers: an integer, a file set or a speaker with a count is right or wrong, no rank says which.

Every query of the gold set is in every mean (trec_eval's ``-c``): a mean over what a system chose to answer reads
1.000 where half of the questions went unanswered. No measure and no count shares a name with the ranking table, so
that neither can be read as the other; only IDENTITY, which says where a row comes from, stands in both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lossmap.errors import LossmapError
from lossmap.judge import intervals

KINDS = ("integer", "file_set", "speaker_count")
CREDITS = ("f1", "exact")
NAMES = ("EM", "partial", "answered")
IDENTITY = ("corpus", "tier", "judged_by")
COLUMNS = (*IDENTITY, "answerer", "surface", "rule", "n", "declined", *NAMES, "EM_interval")
ALL = "all"

RULES = {
    "integer": {"EM": "equal within count_tolerance", "partial": "EM: a count has no interpolated credit"},
    "file_set": {
        "EM": "equal as sets: a subset is wrong",
        "partial": "set_credit: f1 = 2|both| / (|gold| + |submitted|), two empty sets 1; exact = EM",
    },
    "speaker_count": {
        "EM": "name and sessions both right; sessions within count_tolerance",
        "partial": "the share of the two fields that is right",
        "names": "case-folded, runs of white space as one blank: the only tolerance for text",
    },
    "declined": {"EM": "0", "partial": "0", "answered": "0: the query stays in every mean and is counted in declined"},
    "kind_mismatch": {"EM": "0", "partial": "0", "answered": "1"},
}
INTERVAL = {
    "of": "EM",
    "over": "queries",
    "why": "a question that needs several files belongs to no one meeting, so there are no clusters to resample; "
    "where every query scored alike the interval has no width, and n says how little that proves",
}


class Submitted(Protocol):
    """What an answerer hands in: one of KINDS and a value of that kind."""

    @property
    def kind(self) -> str: ...

    @property
    def value(self) -> Any: ...


@dataclass(frozen=True)
class Policy:
    """What may be argued about, written into every results document."""

    count_tolerance: int = 0
    set_credit: str = "f1"

    def __post_init__(self) -> None:
        if self.set_credit not in CREDITS:
            raise LossmapError(
                "unknown credit for a file set",
                where="set_credit",
                observed=self.set_credit,
                expected=" or ".join(CREDITS),
                next_command="leave it out for f1",
                exit_code=2,
            )
        if self.count_tolerance < 0:
            raise LossmapError(
                "a tolerance below zero", observed=self.count_tolerance, expected="0 or more", exit_code=2
            )

    def card(self) -> dict[str, Any]:
        """The ``policy`` block of an answers document."""
        mean = "over the gold set: what was declined scores zero and is counted"
        return {**asdict(self), "rules": RULES, "mean": mean, "interval": {**INTERVAL, **intervals.card()}}


@dataclass(frozen=True)
class Gold:
    """One question: its wording (``surface``), its rule, and the right ``value`` of its ``kind``; raises on others."""

    query_id: str
    surface: str
    rule: str
    kind: str
    value: Any

    def __post_init__(self) -> None:
        if not well_formed(self.kind, self.value):
            raise LossmapError(
                "a gold answer is not of its kind",
                where=self.query_id,
                observed=f"{self.kind}: {self.value!r}",
                expected="integer: a whole number; file_set: file ids; speaker_count: {speaker, sessions}",
                next_command="./run lossmap synth validate",
            )


@dataclass(frozen=True)
class Scored:
    """``values`` (Q, len(NAMES)) in the order of ``gold``, which is sorted by query id."""

    gold: tuple[Gold, ...]
    values: NDArray[np.float64]


def well_formed(kind: str, value: Any) -> bool:
    """Whether ``value`` can be an answer of ``kind``; False for a kind that is not one of KINDS."""
    if kind == "integer":
        return _whole(value)
    if kind == "file_set":
        return isinstance(value, (list, tuple, set, frozenset)) and all(isinstance(item, str) for item in value)
    if kind == "speaker_count":
        fields = isinstance(value, Mapping) and set(value) == {"speaker", "sessions"}
        return fields and isinstance(value["speaker"], str) and _whole(value["sessions"])
    return False


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def same_name(one: str, other: str) -> bool:
    return _folded(one) == _folded(other)


def _folded(name: str) -> str:
    return " ".join(name.casefold().split())


def emitted(kind: str, value: Any) -> Any:
    """A value as it is written: every set sorted and unique, whatever order a process iterates it in."""
    return sorted(set(value)) if kind == "file_set" and well_formed(kind, value) else value


def score_one(gold: Gold, submitted: Submitted | None, policy: Policy) -> tuple[float, float, float]:
    """EM, partial, answered of one question, each in [0, 1]."""
    if submitted is None:
        return 0.0, 0.0, 0.0
    if submitted.kind != gold.kind or not well_formed(submitted.kind, submitted.value):
        return 0.0, 0.0, 1.0
    exact, partial = _COMPARE[gold.kind](gold.value, submitted.value, policy)
    return float(exact), float(partial), 1.0


def _integer(gold: int, submitted: int, policy: Policy) -> tuple[float, float]:
    right = float(abs(gold - submitted) <= policy.count_tolerance)
    return right, right


def _file_set(gold: Sequence[str], submitted: Sequence[str], policy: Policy) -> tuple[float, float]:
    mine, theirs = set(gold), set(submitted)
    exact = float(mine == theirs)
    if exact or policy.set_credit == "exact":
        return exact, exact
    return exact, 2 * len(mine & theirs) / (len(mine) + len(theirs))


def _speaker_count(gold: Mapping[str, Any], submitted: Mapping[str, Any], policy: Policy) -> tuple[float, float]:
    name = same_name(gold["speaker"], submitted["speaker"])
    count = abs(gold["sessions"] - submitted["sessions"]) <= policy.count_tolerance
    return float(name and count), (name + count) / 2


_COMPARE: dict[str, Callable[[Any, Any, Policy], tuple[float, float]]] = {
    "integer": _integer,
    "file_set": _file_set,
    "speaker_count": _speaker_count,
}


def score(gold: Sequence[Gold], submitted: Mapping[str, Submitted | None], policy: Policy = Policy()) -> Scored:
    """Every question of ``gold`` scored; answers to other questions are ignored. Raises on no or repeated gold."""
    repeated = sorted(query_id for query_id, count in Counter(one.query_id for one in gold).items() if count > 1)
    if not gold or repeated:
        raise LossmapError(
            "a question stands twice in the gold" if repeated else "there is no gold to score against",
            where=", ".join(repeated[:5]) or None,
            observed=f"{len(gold)} questions",
            expected="one gold answer or more, each once",
            next_command="inject more meetings, so that the gold of a question is whole",
        )
    ordered = tuple(sorted(gold, key=lambda one: one.query_id))
    values = [score_one(one, submitted.get(one.query_id), policy) for one in ordered]
    return Scored(ordered, np.array(values, float))


def rows(head: Mapping[str, Any], scored: Scored) -> list[dict[str, Any]]:
    """Rows under COLUMNS: by surface, the row over all rules first, then one a rule; ``head`` leads each row."""
    surfaces = sorted({one.surface for one in scored.gold})
    found = []
    for surface in surfaces:
        mine = [one.surface == surface for one in scored.gold]
        rules = sorted({one.rule for one, kept in zip(scored.gold, mine) if kept})
        for rule in (ALL, *rules):
            keep = [kept and rule in (ALL, one.rule) for one, kept in zip(scored.gold, mine)]
            found.append({**head, "surface": surface, "rule": rule, **_measured(scored.values[keep])})
    return found


def _measured(values: NDArray[np.float64]) -> dict[str, Any]:
    estimate = intervals.means_with_intervals(values, None)
    return {
        "n": len(values),
        "declined": int((values[:, NAMES.index("answered")] == 0).sum()),
        **dict(zip(NAMES, estimate.mean.tolist())),
        "EM_interval": estimate.queries[NAMES.index("EM")].tolist(),
    }


def details(scored: Scored, submitted: Mapping[str, Submitted | None]) -> list[dict[str, Any]]:
    """One row a question: what was right, what was handed in, and the scores; sets sorted."""
    found = []
    for one, values in zip(scored.gold, scored.values.tolist()):
        mine = submitted.get(one.query_id)
        found.append(
            {
                "query_id": one.query_id,
                "surface": one.surface,
                "rule": one.rule,
                "kind": one.kind,
                "gold": emitted(one.kind, one.value),
                "submitted": None if mine is None else {"kind": mine.kind, "value": emitted(mine.kind, mine.value)},
                "scores": dict(zip(NAMES, values)),
            }
        )
    return found
