"""What fusion does to the top ten: who comes in, which relevant rows go out, and by whose vote (seed 004, 3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lossmap.judge import taxonomy
from lossmap.judge.decompose import share
from lossmap.judge.taxonomy import Membership
from lossmap.layout import Layout
from lossmap.memory import frozen
from lossmap.memory.frozen import Bools
from lossmap.studies.replay import run
from lossmap.studies.replay.columns import POOLED, Row
from lossmap.studies.replay.run import Replayed

ADMITTED, LEXICAL = "admitted", "lexical"
BEFORE, AFTER = "s1", "s2"


def study(at: Layout) -> dict[str, Any]:
    """movement.json: ``rows``, one a model and task, counts summed over queries (spec/replay 5.4).

    An ``intruder`` is an irrelevant row that comes in: ``lexical_only`` where the dense arm did not admit it, else
    ``dense_boosted``. A relevant row that goes out had a lexical vote or none, at any rank of the whole list.
    """
    return {"rows": [_row(each) for each in run.replayed(at)], "before": BEFORE, "after": AFTER}


def _row(found: Replayed) -> Row:
    said = taxonomy.table(moves(found))
    came, into, out, loss = said["intruders"], said["relevant_in"], said["relevant_out"], said["loss"]
    return {
        **run.head(found),
        "mean": POOLED,
        "queries": said["queries"],
        **_split("intruder", came),
        "gold_out": out["total"],
        "gold_out_had_lex_vote": out["second_only"] + out["both"],
        "gold_out_no_lex_vote": out["neither"] + out["first_only"],
        "gold_out_had_lex_vote_share": out["with_vote_share"],
        **_split("gold_in", into),
        "queries_harmed": loss["queries"],
        "loss": loss["total"],
        "harm_reorder": loss["stay"]["queries"],
        "harm_reorder_share": share(loss["stay"]["queries"], loss["queries"]),
        "moved_down_only_share": loss["stay"]["share"],
        "same_relevant_share": loss["same_relevant"]["share"],
        "same_rows_share": loss["same_rows"]["share"],
    }


def _split(name: str, counts: Row) -> Row:
    """Rows that came in, by whether the dense arm had admitted them."""
    return {
        name: counts["total"],
        f"{name}_lexical_only": counts["neither"] + counts["second_only"],
        f"{name}_dense_boosted": counts["first_only"] + counts["both"],
        f"{name}_dense_boosted_share": counts["on_first_share"],
    }


def moves(found: Replayed) -> taxonomy.Moves:
    """The first ten of the admitted list against those of the fusion, with the rows of either arm that are kept."""
    mine = found.frozen
    before, after = (frozen.ranking(mine, frozen.order(mine, stage)) for stage in (BEFORE, AFTER))
    legs = {ADMITTED: _members(found, mine.admitted_row), LEXICAL: _members(found, mine.lex >= 0)}
    return taxonomy.moves(mine.qrels(), before, after, legs)


def _members(found: Replayed, chosen: Bools) -> Membership:
    """Query to the rows of ``chosen`` (R,). What a top ten can hold, and every relevant row, is among the kept rows."""
    ends = np.concatenate([[0], np.cumsum(chosen)])[found.frozen.offsets[1:]].tolist()
    rows = found.frozen.row[chosen].tolist()
    return {q: rows[low:high] for q, low, high in zip(found.frozen.query_ids, [0, *ends], ends)}
