"""Measures by trec_eval, with every query of the judgements in the mean (its ``-c``).

An unjudged document counts nothing and uses its rank. ``ndcg_cut`` truncates the ideal at k, the bare ``ndcg`` does
not; the gain is linear.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np
import pytrec_eval
from numpy.typing import NDArray

from lossmap.errors import LossmapError

MEASURES = {
    "nDCG@5": "ndcg_cut_5",
    "nDCG@10": "ndcg_cut_10",
    "nDCG@20": "ndcg_cut_20",
    "R@5": "recall_5",
    "R@10": "recall_10",
    "R@20": "recall_20",
    "RR": "recip_rank",
}
NAMES = tuple(MEASURES)
RECALL_CUTS = {"R@5": 5, "R@10": 10, "R@20": 20}
WRAPPER = "pytrec-eval-terrier"
# The wrapper does not say which trec_eval it compiled; its build script does.
TREC_EVAL_OF_WRAPPER = {"0.5.11": "9.0.8"}


@dataclass(frozen=True)
class PerQuery:
    """Scores of one run: ``values`` (Q, len(NAMES)) and ``judged`` (Q,) in the order of ``query_ids`` (sorted).

    ``unanswered``: judged queries that the run does not name. ``empty``: those it answers with an empty ranking.
    Both score zero.
    """

    query_ids: tuple[str, ...]
    values: NDArray[np.float64]
    judged: NDArray[np.int64]
    unanswered: tuple[str, ...]
    empty: tuple[str, ...]

    def subset(self, keep: NDArray[np.bool_]) -> PerQuery:
        """The queries where ``keep`` (Q,) is true."""
        ids = tuple(query_id for query_id, kept in zip(self.query_ids, keep) if kept)
        chosen = set(ids)
        return PerQuery(
            ids,
            self.values[keep],
            self.judged[keep],
            tuple(q for q in self.unanswered if q in chosen),
            tuple(q for q in self.empty if q in chosen),
        )

    def column(self, name: str) -> NDArray[np.float64]:
        return self.values[:, NAMES.index(name)]


def score(qrels: Mapping[str, Mapping[str, int]], run: Mapping[str, Sequence[tuple[str, float]]]) -> PerQuery:
    """Score a normalised ``run`` (best first); queries of the run without judgements are ignored.

    The order of a list is its ranking: what trec_eval gets is n - position, exact in its single precision.
    Raises on empty judgements.
    """
    unjudged = [query_id for query_id, docs in qrels.items() if not docs]
    if not qrels or unjudged:
        raise LossmapError(
            "there is nothing to score against",
            where=", ".join(sorted(unjudged)[:5]) or "qrels",
            observed=f"{len(unjudged)} of {len(qrels)} queries without a judged document",
            expected="one judged document or more for every query",
            next_command="leave the queries out of the qrels; grade() drops and counts them",
        )
    ids = tuple(sorted(qrels))
    ranked = {
        query_id: {doc: float(len(run[query_id]) - place) for place, (doc, _) in enumerate(run[query_id])}
        for query_id in ids
        if query_id in run
    }
    found = pytrec_eval.RelevanceEvaluator(qrels, set(MEASURES.values())).evaluate(ranked)
    nothing = dict.fromkeys(MEASURES.values(), 0.0)
    values = np.array([[found.get(q, nothing)[key] for key in MEASURES.values()] for q in ids])
    assert values.shape == (len(qrels), len(MEASURES)), "the mean is over every judged query"
    return PerQuery(
        query_ids=ids,
        values=values,
        judged=np.array([sum(grade > 0 for grade in qrels[q].values()) for q in ids]),
        unanswered=tuple(q for q in ids if q not in run),
        empty=tuple(q for q, docs in ranked.items() if not docs),
    )


def ceilings(judged: NDArray[np.int64]) -> dict[str, float]:
    """The highest recall a run can reach: mean of min(k, judged) / judged over queries with ``judged`` (Q,) documents.

    A query without a relevant document has recall 0 and so the ceiling 0.
    """
    reachable = {name: np.minimum(cut, judged) / np.maximum(judged, 1) for name, cut in RECALL_CUTS.items()}
    return {name: float(np.mean(share)) for name, share in reachable.items()}


def provenance() -> dict[str, Any]:
    """The ``metric_engine`` block of a metrics document."""
    version = metadata.version(WRAPPER)
    return {
        "engine": WRAPPER,
        "engine_version": version,
        "trec_eval_version": TREC_EVAL_OF_WRAPPER.get(version, "not recorded for this wrapper"),
        "measure_strings": dict(MEASURES),
        "gain": "linear",
        "ndcg_variant": "ndcg_cut: the ideal is truncated at k",
        "unanswered_query_policy": "zeros, in the mean (trec_eval -c); an empty ranking likewise, counted apart",
        "scores": "rank-derived: n - position",
        "tie_break": "score descending, then doc_type, file_uuid, chunk_index ascending",
    }
