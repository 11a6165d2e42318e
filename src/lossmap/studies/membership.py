"""The same queries over indexes that hold other meetings: everything, one session a series, one domain alone.

The live pipeline of Stage 1, where the composition study is BM25 over whole meetings. Judgements of a query concern its
own meetings alone, so that they are the same in every index that holds those; this is checked, query by query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lossmap import layout, transcript
from lossmap.errors import LossmapError
from lossmap.judge import intervals, qrels
from lossmap.judge.measures import NAMES
from lossmap.layout import Layout
from lossmap.studies import compare

STAGE = "corpora"
OWN_DOMAIN = "own-domain"


@dataclass(frozen=True)
class Scored:
    """One index under one arm: measures of each query that it can answer, and what it holds."""

    index: str
    head: Mapping[str, Any]
    chunks: int
    files: int
    values: Mapping[str, NDArray[np.float64]]

    def of(self, query_ids: Sequence[str]) -> NDArray[np.float64]:
        return np.array([self.values[query_id] for query_id in query_ids]).reshape(-1, len(NAMES))


def study(at: Layout, spec: Mapping[str, Any]) -> dict[str, Any]:
    """hybrid.json: per arm and index its measures over its own and over the common queries, and deltas to the whole.

    ``spec`` (config.yaml): ``whole`` and ``deduplicated``, an index each, and ``domains``, an index a domain. The
    pseudo-index own-domain answers each query from the index of its own domain.
    """
    names = [spec["whole"], spec["deduplicated"], *spec["domains"]]
    _require_same_judgements(at, names)
    rows, contrasts = [], []
    for arm in layout.arms(at)["stages"][STAGE]["arms"]:
        whole, deduplicated, *domains = [_read(at, name, arm) for name in names]
        common = sorted(whole.values.keys() & deduplicated.values.keys())
        for held in (whole, deduplicated, *domains, _union(domains)):
            for queries, ids in (("own", sorted(held.values)), ("common", [q for q in common if q in held.values])):
                if ids:
                    head = {**held.head, "index": held.index, "arm": arm, "query_set": queries}
                    rows.append({**head, "chunks": held.chunks, "files": held.files, **_measures(held.of(ids), ids)})
                    if held is not whole:
                        delta = held.of(ids) - whole.of(ids)
                        worst = transcript.worst([held.head["tier"], whole.head["tier"]])
                        contrasts.append({**head, "tier": worst, "control": whole.index, **_measures(delta, ids)})
    return {"rows": rows, "contrasts": contrasts, "intervals": intervals.card()}


def _read(at: Layout, name: str, arm: str) -> Scored:
    found = compare.read_arm(at.stage(STAGE) / "scored" / name / arm)
    row, index = found.document["rows"][0] if found.document["rows"] else {}, found.document["index"]
    head = {field: row.get(field) for field in ("corpus", "tier", "judged_by")} if row else {}
    return Scored(name, head, index["chunks"], index["files"], dict(zip(found.query_ids, found.values, strict=True)))


def _union(domains: Sequence[Scored]) -> Scored:
    values = {query_id: value for held in domains for query_id, value in held.values.items()}
    heads = [held.head for held in domains if held.head]
    head = {**heads[0], "tier": transcript.worst(head["tier"] for head in heads)} if heads else {}
    return Scored(OWN_DOMAIN, head, sum(h.chunks for h in domains), sum(h.files for h in domains), values)


def _measures(values: NDArray[np.float64], query_ids: Sequence[str]) -> dict[str, Any]:
    estimate = intervals.means_with_intervals(values, [compare.meeting_of(query_id) for query_id in query_ids])
    return {
        "queries": estimate.query_count,
        "meetings": estimate.meeting_count,
        "metrics": dict(zip(NAMES, estimate.mean.tolist())),
        "intervals": {name: estimate.interval(column) for column, name in enumerate(NAMES)},
    }


def _require_same_judgements(at: Layout, names: Sequence[str]) -> None:
    """Raise (exit 3) where two indexes judge one query differently: their scores could not be compared."""
    first: dict[str, tuple[str, dict[str, int]]] = {}
    for name in names:
        held = layout.load(at.scale, name)
        for key in held.scored:
            judged = qrels.read_qrels(held.judged(key).with_name(f"{key}.qrels.gz"))
            for query_id, docs in judged.items():
                index, before = first.setdefault(query_id, (name, docs))
                if before != docs:
                    raise LossmapError(
                        "two indexes judge one query differently",
                        where=query_id,
                        observed=f"{len(docs)} chunks in {name}",
                        expected=f"the {len(before)} chunks of {index}",
                        next_command="give both indexes the same timings, then run again",
                        exit_code=3,
                    )
