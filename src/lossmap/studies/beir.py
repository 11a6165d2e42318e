"""The best normalisation on each corpus, relative to reciprocal rank fusion: what stands beside a published average."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lossmap.judge import intervals, multiplicity, permutation
from lossmap.layout import Layout
from lossmap.studies import families
from lossmap.studies.families import Row
from lossmap.studies.stacks import HEADLINE, Family, Stack, stacks


def study(at: Layout, chosen: Sequence[Family]) -> dict[str, Any]:
    """The document: one row a bench and corpus, of nDCG@10 over all queries.

    ``percent`` and ``percent_intervals`` are the delta and its interval over the control's mean, which is taken as it
    is. The arm is chosen for its delta among ``normalisations`` arms on the queries that score it, so the delta is too
    favourable to it; ``holm`` pays for the choice among the whole family. ``above``: how many of them beat the control.
    """
    rows = [row for stack in stacks(at, chosen) for row in _rows(stack)]
    cards = {"intervals": intervals.card(), "permutation": permutation.card(), "multiplicity": multiplicity.card()}
    return {**cards, "measure": HEADLINE, "rows": rows}


def _rows(stack: Stack) -> Iterator[Row]:
    wanted = {(c.bench, c.arm.name) for c in stack.contrasts if "normalization" in c.arm.document["arm"]}
    found: dict[tuple[str, str], list[Row]] = {}
    for row in families.of_stack(stack) if wanted else ():
        if row["query_class"] == "all" and (row["bench"], row["arm"]) in wanted:
            found.setdefault((row["family"], row["bench"]), []).append(row)
    for some in found.values():
        yield _best(some)


def _best(rows: Sequence[Row]) -> Row:
    """The greatest delta, the first by name among equals."""
    best = min(rows, key=lambda row: (-row["deltas"][HEADLINE], row["arm"]))
    carried = ("family", "bench", "arm", "control", "corpus", "tier", "judged_by", "queries", "meetings")
    mean = best["control_means"][HEADLINE]
    ends = best["intervals"][HEADLINE]
    return {
        **{key: best[key] for key in carried},
        "control_mean": mean,
        "delta": best["deltas"][HEADLINE],
        "intervals": ends,
        "percent": best["percent"][HEADLINE],
        "percent_intervals": {unit: [families.percent(end, mean) for end in pair] for unit, pair in ends.items()},
        "p_values": best["p_values"][HEADLINE],
        "holm": best["holm"][HEADLINE],
        "normalisations": len(rows),
        "above": sum(row["deltas"][HEADLINE] > 0 for row in rows),
        "worst": min(rows, key=lambda row: (row["deltas"][HEADLINE], row["arm"]))["arm"],
        "worst_percent": min(
            (row["percent"][HEADLINE] for row in rows if row["percent"][HEADLINE] is not None), default=None
        ),
    }
