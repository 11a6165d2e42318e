"""What three libraries answer to the same small rankings, and what the normalised run is scored at.

Computed live: the answers change between versions, so the versions are part of the table. A library that is not there
or cannot express a case has null and the reason.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np

from lossmap.judge import measures, runs

Judged = Mapping[str, Mapping[str, int]]
Scores = Mapping[str, Mapping[str, float]]
Answer = tuple[float | None, str | None]

NDCG10 = "nDCG@10"
NDCG = "nDCG"
TREC_EVAL_NAMES = {NDCG10: "ndcg_cut_10", NDCG: "ndcg"}
RANX_NAMES = {NDCG10: "ndcg@10", NDCG: "ndcg"}
CUTS = {NDCG10: 10, NDCG: None}


@dataclass(frozen=True)
class Case:
    """Judgements and raw scores; the order of ``run`` is the order in which a dictionary gets them."""

    name: str
    shows: str
    qrels: Judged
    run: Scores
    measure: str = NDCG10


def _one(name: str, shows: str, gold: Mapping[str, int], scores: Mapping[str, float], measure: str = NDCG10) -> Case:
    return Case(name, shows, {"q": gold}, {"q": scores}, measure)


_GRADED = {"f_0": 3, "f_1": 2, "f_2": 1}
_THIRTY = {f"f_{place}": 1 for place in range(30)}
_TEN = {f"f_{place}": 10.0 - place for place in range(10)}
_THIRTEEN = {**{f"f_{place}": 1.0 for place in range(12)}, "f_digest_0": 1.0}

CASES = (
    _one("graded", "grades 3, 2, 1 ranked 2, 3, 1", _GRADED, {"f_1": 3.0, "f_0": 2.0, "f_2": 1.0}),
    _one("tie, gold sorts first", "two equal scores, the lower id is gold", {"f_0": 1}, {"f_0": 1.0, "f_1": 1.0}),
    _one("tie, gold sorts last", "two equal scores, the higher id is gold", {"f_1": 1}, {"f_0": 1.0, "f_1": 1.0}),
    _one("tie, a digest's name", "thirteen equal scores, the gold is a digest", {"f_digest_0": 1}, _THIRTEEN),
    _one("single precision", "scores 1.00000001 (gold) and 1.0", {"f_0": 1}, {"f_0": 1.00000001, "f_1": 1.0}),
    _one("unjudged uses a rank", "an unjudged document above the gold", {"f_1": 1}, {"f_0": 2.0, "f_1": 1.0}),
    _one("ideal truncated", "30 relevant, 10 retrieved, all of them relevant", _THIRTY, _TEN),
    _one("ideal whole", "the same without a cut", _THIRTY, _TEN, NDCG),
    Case(
        "unanswered query",
        "two judged queries, one answered perfectly, the other missing; mean of what the library returns",
        {"p": {"f_0": 1, "f_1": 0}, "q": {"f_1": 1}},
        {"p": {"f_0": 2.0, "f_1": 1.0}},
    ),
    _one("empty ranking", "the run names the query and ranks nothing", {"f_0": 1}, {}),
    _one("nothing relevant", "the judged documents all have grade 0", {"f_0": 0, "f_1": 0}, {"f_0": 2.0, "f_1": 1.0}),
)


def _pytrec_eval(case: Case) -> Answer:
    key = TREC_EVAL_NAMES[case.measure]
    found = importlib.import_module("pytrec_eval").RelevanceEvaluator(case.qrels, {key}).evaluate(case.run)
    return float(np.mean([values[key] for values in found.values()])), None


def _ranx(case: Case) -> Answer:
    ranx = importlib.import_module("ranx")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return float(ranx.evaluate(ranx.Qrels(case.qrels), ranx.Run(case.run), RANX_NAMES[case.measure])), None
    except (AssertionError, ValueError) as error:
        return None, f"refused: {error}"


def _sklearn(case: Case) -> Answer:
    if set(case.qrels) != set(case.run) or not all(case.run.values()):
        return None, "takes one score for every document: a missing query or an empty ranking cannot be said"
    ndcg_score = importlib.import_module("sklearn.metrics").ndcg_score
    values, unretrieved = [], False
    for query_id, gold in case.qrels.items():
        scores = case.run[query_id]
        docs = list({**scores, **gold})
        unretrieved |= len(docs) > len(scores)
        truth, guess = [gold.get(doc, 0) for doc in docs], [scores.get(doc, 0.0) for doc in docs]
        values.append(ndcg_score([truth], [guess], k=CUTS[case.measure]))
    note = "documents that were not retrieved had to be given the score 0, and are ranked" if unretrieved else None
    return float(np.mean(values)), note


def _lossmap(case: Case) -> Answer:
    if case.measure not in measures.MEASURES:
        return None, "not a measure of this project"
    run = runs.normalise_run({query_id: list(scores.items()) for query_id, scores in case.run.items()})
    return float(np.mean(measures.score(case.qrels, run).column(case.measure))), None


LIBRARIES: dict[str, tuple[str, Callable[[Case], Answer]]] = {
    "pytrec_eval": ("pytrec-eval-terrier", _pytrec_eval),
    "ranx": ("ranx", _ranx),
    "scikit-learn": ("scikit-learn", _sklearn),
}


def table() -> dict[str, Any]:
    """The document peers.json: library versions (null where absent), and per case value and note of each library.

    ``lossmap`` is the same input through run normalisation and this project's mean over every judged query.
    """
    versions = {name: _version(package) for name, (package, _) in LIBRARIES.items()}
    columns = {name: answer if versions[name] else _absent for name, (_, answer) in LIBRARIES.items()}
    columns["lossmap"] = _lossmap
    return {
        "versions": {**versions, "trec_eval": measures.provenance()["trec_eval_version"]},
        "cases": [_row(case, columns) for case in CASES],
    }


def _row(case: Case, columns: Mapping[str, Callable[[Case], Answer]]) -> dict[str, Any]:
    answers = {name: answer(case) for name, answer in columns.items()}
    return {
        "case": case.name,
        "shows": case.shows,
        "measure": case.measure,
        "values": {name: value for name, (value, _) in answers.items()},
        "notes": {name: note for name, (_, note) in answers.items() if note},
    }


def _absent(_: Case) -> Answer:
    return None, "not installed"


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
