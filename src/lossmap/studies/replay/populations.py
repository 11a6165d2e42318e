"""What is stored, what is judged and what either arm can see of it, per task and group; and what was calibrated.

Stored lines are of the store and of no model; the first model's replay of a task names them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lossmap.judge.decompose import share
from lossmap.layout import Layout
from lossmap.memory.frozen import Bools, Ints
from lossmap.studies.replay import columns, run
from lossmap.studies.replay.columns import POOLED, Row
from lossmap.studies.replay.run import Replayed

STORED = ("lines", "stored", "collapsed")
CALIBRATED = ("ok", "method", "source", "proxy", "threshold", "youden_j", "null_admit_rate", "pos_admit_rate")


def study(at: Layout) -> dict[str, Any]:
    """populations.json: ``rows``, one a task and group and one a task of several; ``visibility``, one a model and task;
    ``calibration``, one a model, task and group."""
    found = run.replayed(at)
    return {
        "rows": [row for mine in columns.by_task(found).values() for row in _populations(mine[0])],
        "visibility": [_visibility(each) for each in found],
        "calibration": [_calibrated(each, group) for each in found for group in each.card["groups"]],
    }


def _populations(found: Replayed) -> list[Row]:
    head = {name: value for name, value in run.head(found).items() if name != "model"}
    groups = found.card["groups"]
    rows = [{**head, "part": "group", "name": g["name"], **_counts(found, [g])} for g in groups]
    whole = {**head, "part": "task", "name": found.task, **_counts(found, groups)}
    return [whole, *(rows if len(rows) > 1 else [])]


def _counts(found: Replayed, groups: list[Row]) -> Row:
    """Sums over ``groups``: lines and rows of the store, queries, and relevant rows that the store lacks.

    ``fallback``: queries whose lexical list came from LIKE; ``unmatched``: queries whose lexical list is empty.
    """
    mine, names = found.frozen, {group["name"] for group in groups}
    keep = np.array([group in names for group in mine.groups], bool)
    relevant, missing = int(mine.relevant[keep].sum()), int(mine.missing[keep].sum())
    stored = {name: sum(int(group[name]) for group in groups) for name in STORED}
    return {
        **stored,
        "collapsed_share": share(stored["collapsed"], stored["lines"]),
        "queries": int(keep.sum()),
        "relevant": relevant,
        "gold_missing": missing,
        "gold_missing_share": share(missing, relevant),
        "queries_with_missing": int((mine.missing[keep] > 0).sum()),
        "fallback": int(mine.fallback[keep].sum()),
        "unmatched": int((mine.lexical[keep] == 0).sum()),
    }


def relevant_rows(found: Replayed, chosen: Bools) -> Ints:
    """(Q,): how many of a query's relevant stored rows are among ``chosen`` (R,). Every such row is kept."""
    mine = found.frozen
    return np.bincount(mine.query[chosen & mine.label], minlength=len(mine.query_ids))


def _visibility(found: Replayed) -> Row:
    """Shares of queries, and how long the lists are that the arms see (spec/replay 5.6).

    ``no_gold_on_lexical``: no relevant row anywhere on the whole lexical list. All relevant rows are looked at, not the
    first five recorded ones of the seed.
    """
    mine = found.frozen
    on_list, below = (relevant_rows(found, chosen) for chosen in (mine.lex >= 0, ~mine.admitted_row))
    return {
        **run.head(found),
        "mean": POOLED,
        "queries": len(mine.query_ids),
        "no_gold_on_lexical": float((on_list == 0).mean()),
        "any_gold_below_floor": float((below > 0).mean()),
        "any_gold_missing": float((mine.missing > 0).mean()),
        "fallback_share": float(mine.fallback.mean()),
        "lexical": float(mine.lexical.mean()),
        "lexical_share": float((mine.lexical / mine.size).mean()),
        "admitted": float(mine.admitted.mean()),
        "admitted_share": float((mine.admitted / mine.size).mean()),
        "eligible_median": float(np.median(mine.eligible)),
        "eligible_least": int(mine.eligible.min()),
        "eligible_most": int(mine.eligible.max()),
        "subset_share": float(mine.subset.mean()),
    }


def _calibrated(found: Replayed, group: Row) -> Row:
    """The threshold that was used, and the band of those of other samples: ``band_width`` is largest minus smallest."""
    band, calibration = group.get("band") or [], group["calibration"]
    ends = (min(band), max(band)) if band else (None, None)
    return {
        **run.head(found),
        "name": group["name"],
        "pool": group["pool"],
        **{name: calibration.get(name) for name in CALIBRATED},
        "floor": group["floor"],
        "gate": group["gate"],
        "gate_above_floor": group["gate"] > group["floor"],
        "band_seeds": len(band),
        "band_low": ends[0],
        "band_median": float(np.median(band)) if band else None,
        "band_high": ends[1],
        "band_width": max(band) - min(band) if band else None,
    }
