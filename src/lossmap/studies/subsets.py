"""How often does a part of the queries tell another story than all of them?

The published evaluation scored some arms on the first 400 queries of a corpus by id, a quarter of it, and saw the sign
of one turn when the rest came in. Here: the share of random quarters, of the queries and of the meetings, whose mean
delta has the other sign than the whole set's, and what the first queries by id say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lossmap.judge import intervals
from lossmap.judge.measures import NAMES
from lossmap.layout import Layout
from lossmap.studies.stacks import HEADLINE, Family, Floats, Stack, stacks

DRAWS = 2_000
SEED = 20_240_919
PART = 4
FIRST = 400
"""The published subset: its ``--limit-queries``, per corpus."""
Row = dict[str, Any]


def study(at: Layout, families: Sequence[Family]) -> dict[str, Any]:
    """The document: one row an arm, bench, corpus and class, of nDCG@10.

    ``queries_drawn`` and ``meetings_drawn`` have ``units`` (a quarter, of the corpus), ``draws`` (those that hold a
    query of the class), ``flips`` (share of them with the opposite sign), ``zero`` (share with a delta of nothing) and
    ``range`` (95 % of the draws' deltas). Shares are null where the whole set's delta is zero: it has no sign to lose.
    ``first``: the first queries by id. ``summary``: per family, bench, corpus and class, over arms with a sign.
    """
    found = stacks(at, families)
    rows = [row for stack in found for row in _rows(stack)]
    how = {"draws": DRAWS, "seed": SEED, "generator": "PCG64", "one_in": PART, "first": FIRST, "measure": HEADLINE}
    return {"subsets": how, "summary": _summary(rows), "rows": rows}


@lru_cache(maxsize=8)
def draws(units: int) -> NDArray[np.uint8]:
    """(DRAWS, units) of 0 and 1: a quarter of the units each (rounded down, one at least), without replacement."""
    generator = np.random.Generator(np.random.PCG64(SEED))
    taken = max(1, units // PART)
    order = np.argsort(generator.random((DRAWS, units)), axis=1, kind="stable")
    drawn = np.zeros((DRAWS, units), np.uint8)
    np.put_along_axis(drawn, order[:, :taken], 1, axis=1)
    drawn.setflags(write=False)
    return drawn


def _rows(stack: Stack) -> Iterator[Row]:
    """All arms and classes as columns of one product per kind of unit."""
    exact, grid = intervals.on_grid(stack.deltas(NAMES.index(HEADLINE)))
    parts = list(stack.parts())
    columns = np.concatenate([np.column_stack((exact * keep[:, None], keep)) for _, keep in parts], axis=1)
    meeting = np.unique(np.asarray(stack.groups, object), return_inverse=True)[1]
    drawn = {
        "queries_drawn": _totals(columns, np.arange(len(columns))),
        "meetings_drawn": _totals(columns, meeting),
    }
    width = exact.shape[1] + 1
    for place, (name, keep) in enumerate(parts):
        some = {kind: totals[:, place * width : (place + 1) * width] for kind, totals in drawn.items()}
        units = {"queries_drawn": len(columns), "meetings_drawn": int(meeting.max()) + 1}
        for arm, contrast in enumerate(stack.contrasts):
            whole = float(exact[keep, arm].sum())
            head = {
                **contrast.names,
                "query_class": name,
                "queries": int(keep.sum()),
                "delta": whole / grid / keep.sum(),
            }
            yield {
                **head,
                **{k: _drawn(t[:, arm] / grid, t[:, -1], whole, max(1, units[k] // PART)) for k, t in some.items()},
                "first": list(_first(exact[:, arm] / grid, keep, whole)),
            }


def _totals(columns: Floats, unit: NDArray[np.intp]) -> Floats:
    """Sums (DRAWS, columns) over the units drawn; exact, so that a sign does not hang on the order of summation."""
    sums = np.zeros((int(unit.max()) + 1, columns.shape[1]))
    np.add.at(sums, unit, columns)
    return draws(len(sums)).astype(float) @ sums


def _drawn(sums: Floats, counts: Floats, whole: float, units: int) -> Row:
    """What the draws say of one arm: ``sums`` of its deltas over ``counts`` queries, draw by draw."""
    held = counts > 0
    signs = np.sign(sums[held]) * np.sign(whole)
    shares = {"flips": float((signs < 0).mean()), "zero": float((signs == 0).mean())} if whole and held.any() else {}
    ends = np.quantile(sums[held] / counts[held], (0.025, 0.975)).tolist() if held.any() else None
    return {"units": units, "draws": int(held.sum()), "flips": None, "zero": None, **shares, "range": ends}


def _first(deltas: Floats, keep: NDArray[np.bool_], whole: float) -> Iterator[Row]:
    """The published rule at its own number, and at a quarter of this corpus; nothing where that is all of it."""
    for limit in sorted({FIRST, max(1, len(deltas) // PART)}):
        some = deltas[:limit][keep[:limit]]
        if limit < len(deltas) and len(some):
            total = float(some.sum())
            row = {"limit": limit, "queries": len(some), "delta": total / len(some)}
            yield {**row, "flips": bool(np.sign(total) * np.sign(whole) < 0) if whole else None}


def _summary(rows: Sequence[Row]) -> list[Row]:
    keys = ("family", "bench", "corpus", "query_class")
    together: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        together.setdefault(tuple(row[key] for key in keys), []).append(row)
    return [{**{k: some[0][k] for k in (*keys, "tier", "judged_by")}, **_over_arms(some)} for some in together.values()]


def _over_arms(rows: Sequence[Row]) -> Row:
    """How the shares of flips lie over the arms that have a sign."""
    signed = [row for row in rows if row["queries_drawn"]["flips"] is not None]
    found: Row = {"arms": len(signed), "first_flips": sum(any(f["flips"] for f in row["first"]) for row in signed)}
    for kind in ("queries_drawn", "meetings_drawn"):
        shares = [row[kind]["flips"] for row in signed if row[kind]["flips"] is not None]
        ends = {"median": float(np.median(shares)), "greatest": max(shares)} if shares else None
        found[kind] = ends
    return found
