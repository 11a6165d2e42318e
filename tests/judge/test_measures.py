"""trec_eval's own behaviour, pinned as numbers, and what is done about it."""

from __future__ import annotations

import numpy as np
import pytest
import pytrec_eval

from lossmap.errors import LossmapError
from lossmap.judge import measures, runs


def raw(gold: dict[str, int], scores: dict[str, float], measure: str = "ndcg_cut_10") -> float:
    return pytrec_eval.RelevanceEvaluator({"q": gold}, {measure}).evaluate({"q": scores})["q"][measure]


def ours(gold: dict[str, int], scores: dict[str, float], name: str = "nDCG@10") -> float:
    run = {"q": runs.normalise(list(scores.items()))}
    return float(measures.score({"q": gold}, run).column(name)[0])


def test_graded_gain_is_linear() -> None:
    gold, scores = {"f_0": 3, "f_1": 2, "f_2": 1}, {"f_1": 3.0, "f_0": 2.0, "f_2": 1.0}
    assert round(raw(gold, scores), 6) == round(ours(gold, scores), 6) == 0.922495


def test_raw_ties_go_to_the_higher_id_and_normalised_ones_to_the_lower_number() -> None:
    tied = {"f_0": 1.0, "f_1": 1.0}
    assert [round(raw({gold: 1}, tied), 6) for gold in tied] == [0.63093, 1.0]
    assert [round(ours({gold: 1}, tied), 6) for gold in tied] == [1.0, 0.63093]


def test_a_name_alone_wins_thirteen_raw_ties() -> None:
    tied = {**{f"f_{place}": 1.0 for place in range(12)}, "f_digest_0": 1.0}
    assert raw({"f_digest_0": 1}, tied) == 1.0
    assert ours({"f_digest_0": 1}, tied) == 0.0
    assert ours({"f_digest_0": 1}, tied, "RR") == pytest.approx(1 / 13)


def test_raw_scores_are_read_in_single_precision() -> None:
    scores = {"f_0": 1.00000001, "f_1": 1.0}
    assert round(raw({"f_0": 1}, scores), 6) == 0.63093
    assert ours({"f_0": 1}, scores) == 1.0


def test_ndcg_cut_truncates_the_ideal_and_ndcg_does_not() -> None:
    gold = {f"f_{place}": 1 for place in range(30)}
    scores = {f"f_{place}": 10.0 - place for place in range(10)}
    assert ours(gold, scores) == 1.0
    assert round(raw(gold, scores, "ndcg"), 3) == 0.496


def test_an_unjudged_document_uses_a_rank() -> None:
    assert round(ours({"f_1": 1}, {"f_0": 2.0, "f_1": 1.0}), 6) == 0.63093
    assert ours({"f_1": 1}, {"f_0": 2.0, "f_1": 1.0}, "RR") == 0.5


def test_all_zero_grades_score_zero() -> None:
    scored = measures.score({"q": {"f_0": 0}}, {"q": [("f_0", 1.0)]})
    assert scored.values.tolist() == [[0.0] * 7]
    assert measures.ceilings(scored.judged) == {"R@5": 0.0, "R@10": 0.0, "R@20": 0.0}


def test_unanswered_and_empty_score_zero_and_are_told_apart() -> None:
    gold = {query_id: {"f_0": 1} for query_id in ("answered", "empty", "missing")}
    scored = measures.score(gold, {"empty": [], "answered": [("f_0", 1.0)], "unjudged": [("f_0", 1.0)]})
    assert scored.query_ids == ("answered", "empty", "missing")
    assert scored.values[:, 0].tolist() == [1.0, 0.0, 0.0]
    assert (scored.unanswered, scored.empty) == (("missing",), ("empty",))
    part = scored.subset(np.array([True, False, True]))
    assert (part.query_ids, part.unanswered, part.empty) == (("answered", "missing"), ("missing",), ())


def test_a_mean_over_answered_queries_flatters() -> None:
    gold = {"p": {"f_0": 1}, "q": {"f_0": 1}}
    run = {"p": {"f_0": 1.0}}
    flattering = pytrec_eval.RelevanceEvaluator(gold, {"ndcg_cut_10"}).evaluate(run)
    assert np.mean([values["ndcg_cut_10"] for values in flattering.values()]) == 1.0
    assert measures.score(gold, {"p": [("f_0", 1.0)]}).column("nDCG@10").mean() == 0.5


def test_a_run_that_answers_nothing_scores_zero() -> None:
    assert measures.score({"q": {"f_0": 1}}, {}).values.tolist() == [[0.0] * 7]


@pytest.mark.parametrize("gold", [{}, {"p": {"f_0": 1}, "q": {}}])
def test_missing_judgements_are_refused(gold: dict[str, dict[str, int]]) -> None:
    with pytest.raises(LossmapError, match="nothing to score"):
        measures.score(gold, {"p": [("f_0", 1.0)]})


def test_the_order_of_the_list_is_the_ranking() -> None:
    assert measures.score({"q": {"f_1": 1}}, {"q": [("f_1", 0.0), ("f_0", 9.0)]}).column("RR").tolist() == [1.0]


def test_recall_ceilings_are_means_over_queries() -> None:
    assert measures.ceilings(np.array([1, 10, 40])) == pytest.approx(
        {"R@5": (1 + 0.5 + 0.125) / 3, "R@10": (1 + 1 + 0.25) / 3, "R@20": (1 + 1 + 0.5) / 3}
    )


def test_columns_are_the_measures_they_are_named_after() -> None:
    gold = {"q": {f"f_{place}": 1 for place in (0, 7, 15, 40)}}
    run = {"q": [(f"f_{place}", 0.0) for place in range(20)]}
    scored = measures.score(gold, run)
    assert [scored.column(name)[0] for name in ("R@5", "R@10", "R@20", "RR")] == [0.25, 0.5, 0.75, 1.0]


def test_provenance_names_both_versions() -> None:
    block = measures.provenance()
    assert block["trec_eval_version"].startswith("9.") and block["engine_version"].startswith("0.5.")
    assert list(block["measure_strings"]) == list(measures.NAMES)
