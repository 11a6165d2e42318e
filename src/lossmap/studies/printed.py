"""The printed arms of the published system (paper/published.yaml): deltas in four decimals, and its coefficients."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from lossmap.judge.agreement import Arm
from lossmap.layout import Layout

PAIR = ("qmsum", "synthetic")
CONTROLS = {"fusion": "rrf-30-default", "budget": "budget-48-12-4", "pool": "pool-48"}
LEVELS = {
    "fusion": "000.stage5.fusion.rrf-30-default.{corpus}",
    "budget": "000.stage5.budget.budget-48-12-4.{corpus}_ndcg10",
    "pool": "000.stage5.pool.pool-48.{corpus}_all",
}
# Where deltas of lookup are printed; those of the budget arms are not.
LOOKUP = {"fusion": "000.stage5.fusion-classes.{arm}.{corpus}_lookup", "pool": "000.stage5.pool.{arm}.{corpus}_lookup"}
MINUS = "\N{MINUS SIGN}"


@functools.lru_cache(maxsize=2)
def cells(path: Path) -> dict[str, str]:
    """Every printed number and fact by its id, as printed."""
    with open(path, encoding="utf-8") as handle:
        book = yaml.safe_load(handle)
    found = {fact["id"]: fact["printed"] for fact in book["facts"]}
    for table in book["tables"]:
        for row, printed in table["rows"].items():
            found |= {f"{table['id']}.{row}.{c}": cell for c, cell in zip(table["columns"], printed, strict=True)}
    return found


def of(at: Layout) -> dict[str, str]:
    return cells(at.root / "paper" / "published.yaml")


def number(printed: str) -> float:
    """A printed number: a sign, thousands commas and a percent sign are understood."""
    value = float(printed.replace(MINUS, "-").replace(",", "").rstrip("%"))
    return value / 100 if printed.endswith("%") else value


def names(book: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """family, arm and axis of each printed arm but the controls, in the order of the document."""
    head, tail, out = "000.agreement.arms.", ".axis", []
    for name, axis in book.items():
        if name.startswith(head) and name.endswith(tail):
            family, arm = name[len(head) : -len(tail)].split(".", 1)
            out.append((family, arm, axis))
    return out


def arms(book: Mapping[str, str], query_class: str) -> list[Arm]:
    """The printed arms with their deltas of nDCG@10 in ``all`` or ``lookup``: of lookup, those that are printed."""
    out = []
    for family, arm, axis in names(book):
        source = _sources(family, arm, query_class)
        if source is not None:
            deltas = {c: number(book[source[0].format(corpus=c, arm=arm)]) for c in PAIR}
            levels = {c: number(book[source[1].format(corpus=c, arm=CONTROLS[family])]) for c in PAIR}
            out.append(Arm(arm, family, CONTROLS[family], axis, deltas, levels))
    return out


def _sources(family: str, arm: str, query_class: str) -> tuple[str, str] | None:
    """The ids of an arm's deltas and of its control's levels; None where they are not printed."""
    if query_class == "lookup":
        return (f"{LOOKUP[family]}_delta", LOOKUP[family]) if family in LOOKUP else None
    return f"000.agreement.arms.{family}.{arm}.{{corpus}}", LEVELS[family]


# Which printed coefficients stand beside which set of arms: set and class to id, without the coefficient's own name.
COEFFICIENTS = ("n", "tau_b", "tau_p", "rho", "rho_p", "r", "r_p")
TABLES = {
    **{(name, cls): f"000.agreement.{cls}.{name}" for name in (*CONTROLS, "pooled") for cls in ("all", "lookup")},
    **{("fusion-without-collapse", cls): f"000.agreement.without.{cls}" for cls in ("all", "lookup")},
    ("budget-moved", "all"): "000.agreement.excluding.budget",
    ("pooled-without-collapse", "all"): "000.agreement.without.pooled",
    ("pooled-without-budget-duplicates", "all"): "000.agreement.distinct",
}
PEARSON = {("pooled", "all"): "pooled", ("pooled-without-collapse", "all"): "without"}
DUPLICATES = {"budget": ("budget-24-12-4", "budget-96-12-4"), "pool": ("pool-24", "pool-96")}
"""The same measurement over the synthetic queries, printed in two families."""
WORDS = {"nineteen": 19.0}


def coefficients(book: Mapping[str, str], name: str, query_class: str) -> dict[str, float]:
    """The printed coefficients of a set of arms, by the names of judge/agreement."""
    stem, pearson = TABLES.get((name, query_class)), PEARSON.get((name, query_class))
    ids = {each: f"{stem}.{each}" for each in COEFFICIENTS} if stem else {}
    if pearson:
        ids |= {"r": f"000.agreement.pearson.{pearson}", "r_p": f"000.agreement.pearson.{pearson}_p"}
    printed = {each: book[key] for each, key in ids.items() if key in book}
    return {each: WORDS[text] if text in WORDS else number(text) for each, text in printed.items()}


def signs(book: Mapping[str, str], query_class: str) -> dict[str, Any]:
    """The printed tally of verdicts."""
    head = f"000.agreement.signs.{query_class}."
    return {name[len(head) :]: number(text) for name, text in book.items() if name.startswith(head)}
