"""What a re-ranker says of the pairs that the arms of a bench would show it, frozen like a leg.

Each (query, text) pair is scored once for all arms, scales and checkouts (encode/pairs): an arm then costs no model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from lossmap import canon
from lossmap.encode import pairs, rerankers
from lossmap.index import table, vectors
from lossmap.layout import Layout
from lossmap.search import legs, pipeline, plan
from lossmap.search.legs import Leg


def run(at: Layout, by: str) -> dict[str, Any]:
    """The rule: the scores of re-ranker ``by`` (config.yaml, rerankers) as a leg whose order is no ranking."""
    reranker = rerankers.get(at.config["scales"][at.scale]["rerankers"][by])
    shown = candidates(plan.shown_to(at, at.bench, by), lambda name: legs.of_index(at, name))
    queries, rows = vectors.queries(at), table.load(at.index_folder)
    wanted = [sorted(shown.get(query.query_id, ())) for query in queries]
    asked = [(query.text, rows[row].text) for query, chosen in zip(queries, wanted) for row in chosen]
    scores, scored_now = pairs.pair_scores(reranker, asked)
    legs.save(at.leg(by), _leg(at, by, reranker.provenance(), [q.query_id for q in queries], wanted, scores))
    return {"reranker": reranker.name, "queries": len(queries), "pairs": len(asked), "scored_now": scored_now}


def candidates(stanzas: Iterable[Mapping[str, Any]], load: Any) -> dict[str, set[int]]:
    """Query id to the chunk rows that any of ``stanzas`` re-ranks; ``load(name)`` gives a frozen leg."""
    found: dict[str, set[int]] = {}
    frozen: dict[str, Leg] = {}
    for stanza in _distinct(stanzas):
        frozen |= {name: load(name) for name in stanza["legs"] if name not in frozen}
        for query_id, hits in pipeline.rank(stanza, frozen).items():
            found.setdefault(query_id, set()).update(row for row, _ in hits[: _shown(stanza)])
    return found


def _shown(stanza: Mapping[str, Any]) -> int:
    return min(stanza.get("pool", stanza["size"]), stanza["rerank"]["pairs"])


def _distinct(stanzas: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    """One stanza for each candidate list: what comes after the re-ranker changes no pair."""
    after = ("per_file", "final", "rerank", "pool")
    lists: dict[str, Mapping[str, Any]] = {}
    for stanza in stanzas:
        key = canon.digest({name: value for name, value in stanza.items() if name not in after})
        if key not in lists or _shown(stanza) > _shown(lists[key]):
            lists[key] = stanza
    return lists.values()


def _leg(
    at: Layout, by: str, reranker: Mapping[str, Any], ids: list[str], wanted: list[list[int]], scores: np.ndarray
) -> Leg:
    index = canon.read_json(at.index_folder / "manifest.json")["index_sha256"]
    meta = {"leg": by, "kind": "rerank", "reranker": dict(reranker), "index_sha256": index}
    ends = np.cumsum([len(rows) for rows in wanted])
    hits = [(rows, scores[end - len(rows) : end].tolist()) for rows, end in zip(wanted, ends.tolist())]
    return Leg(ids, *legs.pad(hits, max(map(len, wanted), default=0)), meta)
