"""Do corpora agree about arms? Each arm is a delta per corpus against its family's control; only sign and rank count.

Levels of two corpora are never compared. Kendall's tau-b leads, since sets of arms hold exact ties; Spearman's rho and
Pearson's r stand beside it.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scipy import stats

from lossmap.errors import LossmapError

PLACES = 6
"""A delta has six decimals; there is no other tolerance, so that a zero is exact."""
SHOWN = 4
LEAST = 3
VERDICTS = ("agree", "disagree", "inert", "one-sided")
COEFFICIENTS = (
    ("tau_b", "tau_p", stats.kendalltau),
    ("rho", "rho_p", stats.spearmanr),
    ("r", "r_p", stats.pearsonr),
)
RANKS = ("tau_b", "tau_p", "rho", "rho_p")
TOO_FEW = f"fewer than {LEAST} arms"
CONSTANT = "every arm has the same delta on one side"
Pair = tuple[str, str]


@dataclass(frozen=True)
class Arm:
    """``deltas`` and the control's ``levels``, each by corpus; an arm lacks a corpus that it was not asked over."""

    name: str
    family: str
    control: str
    axis: str
    deltas: Mapping[str, float]
    levels: Mapping[str, float] = field(default_factory=dict)


def delta(arm: float, control: float) -> float:
    return round(arm - control, PLACES) + 0.0


def verdict(first: float, second: float) -> str:
    """One of VERDICTS. Two zeros are a knob that the measure cannot see, not two corpora that concur."""
    if first == 0 == second:
        return "inert"
    if first == 0 or second == 0:
        return "one-sided"
    return "agree" if (first > 0) == (second > 0) else "disagree"


def inert(arm: Arm) -> bool:
    return not any(arm.deltas.values())


def on(arms: Iterable[Arm], pair: Pair) -> list[Arm]:
    """The arms that have a delta on both corpora."""
    return [arm for arm in arms if all(corpus in arm.deltas for corpus in pair)]


def distinct(arms: Iterable[Arm]) -> list[Arm]:
    """One of those that are the same arm against the same control, in two families: one measurement counts once."""
    return list({(arm.name, arm.control): arm for arm in reversed(list(arms))}.values())[::-1]


def signs(arms: Iterable[Arm], pair: Pair) -> dict[str, Any]:
    """How many arms have each verdict; ``rate`` is agreement over those that moved on both, None where none did."""
    found = Counter(verdict(arm.deltas[pair[0]], arm.deltas[pair[1]]) for arm in on(arms, pair))
    moved = found["agree"] + found["disagree"]
    return {
        **{name.replace("-", "_"): found[name] for name in VERDICTS},
        "rate": found["agree"] / moved if moved else None,
    }


def coefficients(first: Sequence[float], second: Sequence[float]) -> dict[str, Any]:
    """n, tau-b, rho and r (four decimals) with two-sided p (six); all None, and a ``note``, where they say nothing."""
    note = TOO_FEW if len(first) < LEAST else CONSTANT if min(len({*first}), len({*second})) < 2 else None
    out: dict[str, Any] = {"n": len(first), "note": note}
    for name, chance, function in COEFFICIENTS:
        out |= dict.fromkeys((name, chance)) if note else _tested(name, chance, function, first, second)
    return out


def _tested(name: str, chance: str, function: Any, first: Sequence[float], second: Sequence[float]) -> dict[str, float]:
    with warnings.catch_warnings():
        # Values a few units in the last place apart: scipy warns, and the rank coefficients beside it do not care.
        warnings.simplefilter("ignore", stats.NearConstantInputWarning)
        found = function(first, second)
    return {name: round(float(found.statistic), SHOWN) + 0.0, chance: round(float(found.pvalue), PLACES)}


def ranks(arms: Iterable[Arm], pair: Pair) -> dict[str, Any]:
    """:func:`coefficients` of the arms' deltas on the two corpora."""
    both = on(arms, pair)
    return coefficients([arm.deltas[pair[0]] for arm in both], [arm.deltas[pair[1]] for arm in both])


def families(arms: Iterable[Arm]) -> dict[str, list[Arm]]:
    """The arms by family, in the order in which families appear."""
    out: dict[str, list[Arm]] = {}
    for arm in arms:
        out.setdefault(arm.family, []).append(arm)
    return out


def by_axis(arms: Iterable[Arm], pair: Pair) -> dict[str, dict[str, Any]]:
    groups: dict[str, list[Arm]] = {}
    for arm in on(arms, pair):
        groups.setdefault(arm.axis, []).append(arm)
    return {axis: {"arms": len(group), **signs(group, pair)} for axis, group in sorted(groups.items())}


def winner(arms: Iterable[Arm], corpus: str) -> dict[str, Any] | None:
    """The arm with the highest delta on ``corpus``; of equal ones the last by name."""
    known = [(arm.deltas[corpus], arm.name) for arm in arms if corpus in arm.deltas]
    return {"arm": max(known)[1], "delta": max(known)[0]} if known else None


def winners(arms: Iterable[Arm], pair: Pair) -> dict[str, Any]:
    found = {corpus: winner(on(arms, pair), corpus) for corpus in pair}
    picked = [each["arm"] for each in found.values() if each]
    return {**found, "same": len(set(picked)) == 1 if picked else None}


def ranges(arms: Iterable[Arm], pair: Pair) -> dict[str, Any]:
    """How far apart the arms lie on each corpus, and the second range over the first (None over a range of zero)."""
    both = on(arms, pair)
    spread = {c: delta(max(a.deltas[c] for a in both), min(a.deltas[c] for a in both)) if both else None for c in pair}
    first, second = spread[pair[0]], spread[pair[1]]
    return {**spread, "ratio": second / first if first and second is not None else None}


def percents(arms: Iterable[Arm], pair: Pair) -> list[Arm]:
    """The arms with each delta over its control's level; an arm over a control at zero is left out."""
    return [
        Arm(a.name, a.family, a.control, a.axis, {c: a.deltas[c] / a.levels[c] for c in pair})
        for a in on(arms, pair)
        if all(a.levels.get(c) for c in pair)
    ]


def invariance(arms: Iterable[Arm], pair: Pair) -> dict[str, Any]:
    """Rank coefficients of deltas and of delta-percents over the same arms, and whether they are the same."""
    relative = percents(arms, pair)
    kept = {(arm.family, arm.name) for arm in relative}
    absolute = ranks([arm for arm in arms if (arm.family, arm.name) in kept], pair)
    found = ranks(relative, pair)
    same = all(absolute[name] == found[name] for name in RANKS)
    return {"delta": _part(absolute), "percent": _part(found), "same": same}


def _part(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in ("n", *RANKS)}


def family_invariance(arms: Sequence[Arm], pair: Pair) -> dict[str, Any]:
    """:func:`invariance` of each family, and ``pooled``.

    Within a family a percent is a rising function of the delta, one control a corpus, so ranks cannot move: raises
    where they do. Pooled families have several controls, and there the two may part.
    """
    found = {name: invariance(group, pair) for name, group in families(arms).items()}
    for name, each in found.items():
        if not each["same"]:
            raise LossmapError(
                "ranks of deltas and of percents differ within a family",
                where=name,
                observed=each["percent"],
                expected=each["delta"],
                next_command="give every arm of the family one control, then run again",
            )
    return {**found, "pooled": invariance(arms, pair)}


def report(arms: Sequence[Arm], pair: Pair) -> dict[str, Any]:
    """What the two corpora of ``pair`` say of the arms: signs, ranks by family and pooled, axes, winners and ranges.

    ``pooled-distinct`` stands beside ``pooled`` where an arm is in two families under one control.
    """
    groups: dict[str, Sequence[Arm]] = {**families(arms), "pooled": arms}
    if len(distinct(arms)) < len(arms):
        groups["pooled-distinct"] = distinct(arms)
    own = {name: group for name, group in groups.items() if not name.startswith("pooled")}
    return {
        "corpora": list(pair),
        "sign_agreement": {name: signs(group, pair) for name, group in groups.items()},
        "rank_agreement": {name: ranks(group, pair) for name, group in groups.items()},
        "by_axis": by_axis(arms, pair),
        "winner": {name: winners(group, pair) for name, group in own.items()},
        "ranges": {name: ranges(group, pair) for name, group in own.items()},
        "invariance": family_invariance(arms, pair),
    }


def arm_rows(arms: Iterable[Arm], pair: Pair) -> list[dict[str, Any]]:
    """One row an arm: family, control, axis, both deltas and the verdict."""
    return [
        {
            "family": arm.family,
            "arm": arm.name,
            "control": arm.control,
            "axis": arm.axis,
            "deltas": {corpus: arm.deltas[corpus] for corpus in pair},
            "verdict": verdict(*(arm.deltas[corpus] for corpus in pair)),
        }
        for arm in on(arms, pair)
    ]
