"""The band of a chapter's controls: how far a score moves when an unchanged corpus is indexed again.

A control whose band nobody measured is no control (seed 000): every later delta is printed beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from lossmap import canon, transcript
from lossmap.judge.evaluate import CLASSES
from lossmap.judge.measures import NAMES
from lossmap.layout import Layout

STAGE = "stability"
MEASURE = "nDCG@10"
TOTAL = "total"
OF_ROW = ("corpus", "judged_by", "query_class")


def spreads(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A band for each corpus and class, from the rows of one arm over several builds of one index.

    ``lowest``, ``highest`` and ``band`` are of nDCG@10; ``bands`` holds that of every measure.
    """
    key = itemgetter("corpus", "query_class")
    ordered = sorted(rows, key=lambda row: (row["corpus"], CLASSES.index(row["query_class"])))
    return [_spread(list(some)) for _, some in groupby(ordered, key=key)]


def _spread(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    values = {name: [row["metrics"][name] for row in rows] for name in NAMES}
    bands = {name: max(some) - min(some) for name, some in values.items()}
    return {
        **{name: rows[0][name] for name in OF_ROW},
        "tier": transcript.worst(row["tier"] for row in rows),
        "queries": rows[0]["queries"],
        "builds": len(rows),
        "lowest": min(values[MEASURE]),
        "highest": max(values[MEASURE]),
        "band": bands[MEASURE],
        "bands": bands,
    }


@dataclass(frozen=True)
class Bands:
    """What the chapter on stability measured, to print beside a delta of another chapter."""

    rows: Sequence[Mapping[str, Any]]

    def of(self, arm: str, corpus: str, query_class: str) -> dict[str, Any]:
        """``band`` (nDCG@10), ``bands`` and where they were measured; all None for an arm that was not rebuilt.

        The rebuilt index holds one corpus: a class that it does not have, or another corpus, gets the band of the
        nearest row there is, and ``band_from`` says which.
        """
        mine = [row for row in self.rows if row["arm"] == arm]
        for near in ((corpus, query_class), (None, query_class), (corpus, "all"), (None, "all")):
            found = [r for r in mine if r["query_class"] == near[1] and near[0] in (None, r["corpus"])]
            if found:
                widest = max(found, key=itemgetter("band"))
                where = {name: widest[name] for name in ("source", "corpus", "query_class")}
                return {"band": widest["band"], "bands": widest["bands"], "band_from": where}
        return {"band": None, "bands": None, "band_from": None}


def band_of(at: Layout) -> Bands:
    """The bands of exact arms under the total order, and of graph arms over the build paths, from stability's parts."""
    order = canon.read_json(at.stage(STAGE) / "order.json")["bands"]
    graph = canon.read_json(at.stage(STAGE) / "graph.json")["band"]
    kept = [{"source": "order", **row} for row in order if row["order"] == TOTAL]
    return Bands([*kept, *({"source": "graph", **row} for row in graph)])
