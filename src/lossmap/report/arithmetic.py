"""The arithmetic that printed numbers must satisfy, and how exactly they do: the identities of paper/published.yaml."""

from __future__ import annotations

import fnmatch
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from lossmap.memory.cut import pool_gate
from lossmap.memory.kept import K
from lossmap.report import documents
from lossmap.report.documents import step

Term = tuple[float, float]
"""A value and the rounding that it may hide."""


def _ratio(a: Term, b: Term) -> Term:
    value = a[0] / b[0]
    return value, value * (a[1] / a[0] + b[1] / b[0])


def _last_rank(pool: Term) -> Term:
    """The last rank, from 0, at which a row of the lexical list alone passes the gate of a pool: 1 / (K + 1 + rank) is
    held against 3 m(P) / (K + 1) (spec/replay 4.2); -1 where none passes."""
    return math.floor((K + 1) / (3 * pool_gate(round(pool[0]))) - (K + 1)), 0.0


# A name, and how the operands (value, rounding slack) give (value, slack).
IDENTITIES: dict[str, Callable[..., Term]] = {
    "sum": lambda *terms: (sum(v for v, _ in terms), sum(s for _, s in terms)),
    "difference": lambda a, b: (a[0] - b[0], a[1] + b[1]),
    "ratio": _ratio,
    # a / (a + b): the part of two.
    "share": lambda a, b: (a[0] / (a[0] + b[0]), 0.0),
    # 1 - a / (a + b + ...): what all but the first take of the whole.
    "others_share": lambda *terms: (1 - terms[0][0] / sum(v for v, _ in terms), 0.0),
    # (a - b) / a: the share of a that is lost on the way to b.
    "lost_share": lambda a, b: (1 - b[0] / a[0], _ratio(b, a)[1]),
    "weighted_mean": lambda *pairs: (
        sum(n[0] * v[0] for n, v in pairs) / sum(n[0] for n, _ in pairs),
        max(v[1] for _, v in pairs),
    ),
    "least": min,
    "most": max,
    # The first of (name, value) pairs whose value is the largest.
    "argmax": lambda *pairs: (max(pairs, key=lambda pair: pair[1][0])[0][0], 0.0),
    # How many of the others do not exceed, or reach, the first.
    "at_most": lambda bound, *terms: (sum(v <= bound[0] for v, _ in terms), 0.0),
    "at_least": lambda bound, *terms: (sum(v >= bound[0] for v, _ in terms), 0.0),
    "last_rank": _last_rank,
}
SEVERAL = 6
"""A part of more identities than these is tallied as a whole."""
NAMES = 0.01
"""An ``argmax`` prints a name, here a weight; two names are never one rounded."""


def check_published() -> list[dict[str, Any]]:
    """The arithmetic of published numbers: one record per identity.

    A record: id, document, part, kind, identity (in words), printed, computed, ok, why, apart. ``ok`` allows for the
    rounding of every operand and of the printed result; ``about`` in published.yaml widens it where the document says
    "roughly". ``why``: the reason where the document's own numbers are known not to agree (``fails``), else empty.
    ``apart``: how many units of its last place the printed number lies from what the printed operands give, 0 where
    they round to it; None where "roughly" stands, and of a number in words that does not agree.
    """
    numbers = documents.published()
    rules = _expanded(documents.data("published.yaml")["identities"])
    return [*(_checked(numbers, rule) for rule in rules), *_six_decimals(numbers)]


def _checked(numbers: Mapping[str, dict[str, Any]], rule: Mapping[str, Any]) -> dict[str, Any]:
    said, kind = numbers[rule["id"]], rule["kind"]
    computed, slack = IDENTITIES[kind](*_operands(numbers, rule["of"]))
    half = NAMES / 2 if kind == "argmax" else step(said["printed"])
    off = abs(computed - said["value"])
    ok = off <= slack + half + rule.get("about", 0.0) + 1e-12
    return {
        **_place(rule["id"], rule.get("part")),
        "kind": kind,
        "identity": rule["says"],
        "printed": said["printed"],
        "computed": computed,
        "ok": ok,
        "why": rule.get("fails", ""),
        "apart": None if "about" in rule else _apart(off, half, ok),
    }


def _place(name: str, part: str | None = None) -> dict[str, str]:
    document, second = name.split(".")[:2]
    return {"id": name, "document": document, "part": part or second}


def _apart(off: float, half: float, ok: bool) -> int | None:
    """Last-place units (twice ``half``) in ``off``, none within ``half``; of words, which have no place, none if ok."""
    if not half:
        return 0 if ok else None
    return max(0, math.ceil(off / (2 * half) - 0.5 - 1e-6))


def _operands(numbers: Mapping[str, dict[str, Any]], terms: Sequence[Any]) -> Iterator[Any]:
    """Each operand as a Term, a pair as a pair of them; a name with ``*`` stands for every number that fits."""
    for term in terms:
        if isinstance(term, list):
            yield tuple(_operand(numbers, part) for part in term)
        elif "*" in term:
            yield from (_operand(numbers, name) for name in fnmatch.filter(numbers, term))
        else:
            yield _operand(numbers, term)


def _operand(numbers: Mapping[str, dict[str, Any]], name: str) -> Term:
    if name not in numbers:
        return float(name), 0.0
    return numbers[name]["value"], 0.0 if "." not in numbers[name]["printed"] else step(numbers[name]["printed"])


def tally_published(document: str) -> list[dict[str, Any]]:
    """How exactly one document adds up: numbers printed ``exact``, ``one`` last digit off, or ``more``.

    One row per ``part`` and identity, one for all identities of a part, and one for all; a part of more than SEVERAL
    identities is told as a whole. Numbers that hold only roughly are left out, as they have no ``apart``.
    """
    parts: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for record in check_published():
        if record["document"] == document and (record["apart"] is not None or record["why"]):
            parts.setdefault(record["part"], {}).setdefault(record["identity"], []).append(record)
    rows, every = [], []
    for name, part in parts.items():
        whole = list(itertools.chain(*part.values()))
        if len(part) <= SEVERAL:
            rows += [{"part": name, "identity": identity, **_tally(some)} for identity, some in part.items()]
        if len(part) > 1:
            rows.append({"part": name, "identity": "together", **_tally(whole)})
        every += whole
    return [*rows, {"part": "all", "identity": "together", **_tally(every)}]


def _tally(records: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    apart = [record["apart"] for record in records]
    one, exact = apart.count(1), apart.count(0)
    beyond = sum(not record["ok"] for record in records)
    return {
        "checked": len(apart),
        "exact": exact,
        "one": one,
        "more": len(apart) - exact - one,
        "beyond_rounding": beyond,
    }


def _expanded(rules: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A rule with ``rows`` or ``columns`` stands for one rule each, ``{row}`` and ``{column}`` replaced in its ids."""

    def fill(value: Any, row: str, column: str) -> Any:
        if isinstance(value, str):
            return value.replace("{row}", row).replace("{column}", column)
        if isinstance(value, list):
            return [fill(item, row, column) for item in value]
        return {k: fill(v, row, column) for k, v in value.items()} if isinstance(value, dict) else value

    return [
        fill({k: v for k, v in rule.items() if k not in ("rows", "columns")}, row, column)
        for rule in rules
        for row in rule.get("rows", [""])
        for column in rule.get("columns", [""])
    ]


def _six_decimals(numbers: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Each printed number against the committed six-decimal one: it must round to what was printed."""
    return [
        {
            **_place(name),
            "kind": "rounding",
            "identity": "committed value rounds to the printed one",
            "printed": record["printed"],
            "computed": record["spec"],
            "ok": abs(record["spec"] - record["value"]) <= step(record["printed"]) + 1e-12,
            "why": "",
            "apart": None,
        }
        for name, record in numbers.items()
        if record["spec"] is not None
    ]
