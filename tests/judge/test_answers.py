"""Answers: exact where exact is meant, over the whole gold set, whatever the order of anything."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lossmap
from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.judge import answers, evaluate, intervals, measures
from lossmap.judge.answers import Gold, Policy
from lossmap.transcript import Query


@dataclass(frozen=True)
class Given:
    kind: str
    value: Any


def one(kind: str, gold: Any, submitted: Given | None, **policy: Any) -> tuple[float, float, float]:
    return answers.score_one(Gold("q", "exact", "R3", kind, gold), submitted, Policy(**policy))


def count(n: int) -> Given:
    return Given("integer", n)


def files(*names: str) -> Given:
    return Given("file_set", list(names))


def speaker(name: str, sessions: int) -> Given:
    return Given("speaker_count", {"speaker": name, "sessions": sessions})


GOLD = [Gold(f"ag-{i}", "exact", f"R{3 + i % 2}", "integer", i) for i in range(4)]


def test_the_mean_over_what_was_answered_reads_one_where_the_truth_is_a_half() -> None:
    """The seed's comparison: two of four answered, both right."""
    submitted = {"ag-0": count(0), "ag-1": count(1)}
    scored = answers.score(GOLD, submitted)
    exact, answered = (scored.values[:, answers.NAMES.index(name)] for name in ("EM", "answered"))
    assert exact[answered == 1].mean() == 1.0, "the substitution that must not happen"
    row = answers.rows({}, scored)[0]
    assert (row["EM"], row["answered"], row["n"], row["declined"]) == (0.5, 0.5, 4, 2)


def test_a_query_that_is_absent_and_one_that_is_declined_are_the_same() -> None:
    absent, declined = answers.score(GOLD, {}), answers.score(GOLD, {one.query_id: None for one in GOLD})
    assert absent.values.tolist() == declined.values.tolist() == [[0.0] * 3] * 4


@pytest.mark.parametrize(
    ("gold", "submitted", "tolerance", "expected"),
    [(7, 7, 0, 1.0), (7, 8, 0, 0.0), (7, 6, 0, 0.0), (7, 8, 1, 1.0), (7, 9, 1, 0.0), (0, 0, 0, 1.0)],
)
def test_a_count_is_exact_within_the_tolerance_and_has_no_partial_credit(
    gold: int, submitted: int, tolerance: int, expected: float
) -> None:
    assert one("integer", gold, count(submitted), count_tolerance=tolerance) == (expected, expected, 1.0)


def test_the_tolerance_is_zero_and_the_credit_f1_unless_somebody_says_otherwise() -> None:
    assert Policy() == Policy(0, "f1")


def test_a_subset_is_wrong_and_its_f1_stands_beside() -> None:
    seven, eight = [f"m{i}" for i in range(7)], [f"m{i}" for i in range(8)]
    assert one("file_set", eight, files(*seven)) == (0.0, pytest.approx(14 / 15), 1.0)
    assert one("file_set", eight, files(*seven), set_credit="exact") == (0.0, 0.0, 1.0)
    assert one("file_set", eight, files(*reversed(eight))) == (1.0, 1.0, 1.0)
    assert one("file_set", eight, files(*eight, "m0")) == (1.0, 1.0, 1.0), "repeats are one file"
    assert one("file_set", eight, files("x")) == (0.0, 0.0, 1.0)


def test_two_empty_sets_are_equal_and_one_empty_set_shares_nothing() -> None:
    for credit in answers.CREDITS:
        assert one("file_set", [], files(), set_credit=credit) == (1.0, 1.0, 1.0)
        assert one("file_set", [], files("m1"), set_credit=credit) == (0.0, 0.0, 1.0)
        assert one("file_set", ["m1"], files(), set_credit=credit) == (0.0, 0.0, 1.0)


def test_a_speaker_needs_name_and_count_and_names_fold() -> None:
    gold = {"speaker": "Maren Straße", "sessions": 8}
    assert one("speaker_count", gold, speaker("  maren\t STRASSE ", 8)) == (1.0, 1.0, 1.0)
    assert one("speaker_count", gold, speaker("Maren Straße", 7)) == (0.0, 0.5, 1.0)
    assert one("speaker_count", gold, speaker("Maren Strasser", 8)) == (0.0, 0.5, 1.0)
    assert one("speaker_count", gold, speaker("Maren-Straße", 9)) == (0.0, 0.0, 1.0)
    assert one("speaker_count", gold, speaker("Maren Straße", 7), count_tolerance=1) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    "submitted",
    [files("7"), speaker("A", 7), Given("integer", "7"), Given("integer", True), Given("integer", 7.0), Given("?", 7)],
)
def test_another_kind_or_a_misshapen_value_is_wrong_but_answered(submitted: Given) -> None:
    assert one("integer", 7, submitted) == (0.0, 0.0, 1.0)
    assert one("integer", 1, submitted) == (0.0, 0.0, 1.0)


def test_what_cannot_be_scored_is_refused() -> None:
    with pytest.raises(LossmapError, match="no gold"):
        answers.score([], {})
    with pytest.raises(LossmapError, match="twice") as refusal:
        answers.score([GOLD[0], GOLD[0]], {})
    assert "ag-0" in str(refusal.value)
    with pytest.raises(LossmapError, match="unknown credit") as refusal:
        Policy(set_credit="jaccard")
    assert refusal.value.exit_code == 2
    with pytest.raises(LossmapError, match="below zero"):
        Policy(count_tolerance=-1)
    for kind, value in (("integer", "7"), ("file_set", "m1"), ("speaker_count", {"speaker": "A"}), ("map", {})):
        with pytest.raises(LossmapError, match="not of its kind"):
            Gold("q", "exact", "R3", kind, value)


def test_rows_by_surface_with_all_first_then_rules_sorted() -> None:
    gold = [Gold(f"{s}-{r}", s, r, "integer", 1) for s in ("reworded-1", "exact") for r in ("R7", "R3", "R4")]
    submitted = {one.query_id: count(1) for one in gold if one.surface == "exact" and one.rule != "R7"}
    rows = answers.rows({"corpus": "synthetic", "tier": "A"}, answers.score(gold, submitted))
    order = ["all", "R3", "R4", "R7"]
    assert [(row["surface"], row["rule"]) for row in rows] == [(s, r) for s in ("exact", "reworded-1") for r in order]
    assert [row["EM"] for row in rows] == [pytest.approx(2 / 3), 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    resampled = intervals.means_with_intervals(np.array([[1.0], [1.0], [0.0]]), None).queries[0]
    assert rows[0]["EM_interval"] == resampled.tolist()
    assert rows[0]["EM_interval"] == [0.0, 1.0] and rows[1]["EM_interval"] == [1.0, 1.0]
    assert all(row["corpus"] == "synthetic" for row in rows)


def test_no_column_stands_in_both_tables_but_where_a_row_comes_from() -> None:
    query = Query("demo:m1:000", "a", "lookup", "Demo")
    card = {"key": "demo", "tier": "A", "judged_by": "human"}
    ranking = evaluate.evaluate(card, [query], {query.query_id: {"f_0": 1}}, {}, None).rows[0]
    assert set(ranking) & set(answers.COLUMNS) == set(answers.IDENTITY)
    assert not set(measures.NAMES) & set(answers.COLUMNS)
    head = dict.fromkeys((*answers.IDENTITY, "answerer"), "x")
    assert set(answers.rows(head, answers.score(GOLD, {}))[0]) == set(answers.COLUMNS)


def test_the_rules_are_data_of_the_document() -> None:
    card = Policy(1, "exact").card()
    assert (card["count_tolerance"], card["set_credit"]) == (1, "exact")
    assert set(answers.KINDS) | {"declined"} <= set(card["rules"])
    assert card["interval"]["over"] == "queries" and card["interval"]["resamples"] == intervals.RESAMPLES
    canon.dumps(card)


def test_details_hold_what_was_right_and_what_came_with_sets_sorted() -> None:
    gold = [Gold("b", "exact", "R4", "file_set", ("m2", "m1")), Gold("a", "exact", "R3", "integer", 2)]
    submitted = {"b": Given("file_set", {"m3", "m1", "m2"}), "zz": count(1)}
    rows = answers.details(answers.score(gold, submitted), submitted)
    assert [(row["query_id"], row["gold"]) for row in rows] == [("a", 2), ("b", ["m1", "m2"])]
    assert rows[0]["submitted"] is None and rows[0]["scores"] == {"EM": 0.0, "partial": 0.0, "answered": 0.0}
    assert rows[1]["submitted"] == {"kind": "file_set", "value": ["m1", "m2", "m3"]}
    assert rows[1]["scores"] == {"EM": 0.0, "partial": pytest.approx(0.8), "answered": 1.0}


def test_a_set_is_written_alike_under_every_hash_seed() -> None:
    program = "from lossmap.judge import answers; print(answers.emitted('file_set', {f'm{i}' for i in range(40)}))"
    path = {"PYTHONPATH": str(Path(lossmap.__file__).parents[1])}
    said = {
        subprocess.run([sys.executable, "-c", program], env={**os.environ, **path, "PYTHONHASHSEED": seed},
                       capture_output=True, check=True).stdout
        for seed in ("0", "1", "2")
    }  # fmt: skip
    assert len(said) == 1


NAMES = st.lists(st.sampled_from([f"m{i}" for i in range(6)]), max_size=6)
VALUES = st.one_of(
    st.integers(0, 5).map(lambda n: ("integer", n)),
    NAMES.map(lambda names: ("file_set", names)),
    st.builds(lambda s, n: ("speaker_count", {"speaker": s, "sessions": n}), st.sampled_from("AB"), st.integers(0, 3)),
)
QUESTIONS = st.lists(st.tuples(VALUES, st.none() | VALUES, st.sampled_from(["exact", "reworded-1"])), min_size=1)


@given(QUESTIONS, st.randoms(use_true_random=False))
def test_no_order_of_anything_moves_a_byte(questions: list[Any], random: Any) -> None:
    gold = [Gold(f"q{i:03}", s, f"R{i % 3}", *value) for i, (value, _, s) in enumerate(questions)]
    submitted = {f"q{i:03}": Given(*mine) if mine else None for i, (_, mine, _) in enumerate(questions)}

    def document(gold: list[Gold], submitted: dict[str, Given | None]) -> str:
        scored = answers.score(gold, submitted)
        return canon.dumps([answers.rows({}, scored), answers.details(scored, submitted)])

    def shuffled(value: Any) -> Any:
        return random.sample(value, len(value)) if isinstance(value, list) else value

    other = [Gold(g.query_id, g.surface, g.rule, g.kind, shuffled(g.value)) for g in shuffled(gold)]
    others = {q: Given(a.kind, shuffled(a.value)) if a else None for q, a in shuffled(list(submitted.items()))}
    assert document(gold, submitted) == document(other, others)


@given(VALUES, st.none() | VALUES, st.sampled_from(answers.CREDITS))
def test_em_never_passes_partial_and_partial_never_passes_answered(gold: Any, mine: Any, credit: str) -> None:
    exact, partial, answered = one(*gold, Given(*mine) if mine else None, set_credit=credit)
    assert 0 <= exact <= partial <= answered <= 1 and exact in (0, 1) and answered in (0, 1)


@given(NAMES, NAMES)
def test_f1_is_the_harmonic_mean_of_precision_and_recall(gold: list[str], mine: list[str]) -> None:
    both, a, b = set(gold) & set(mine), set(gold), set(mine)
    _, partial, _ = one("file_set", gold, files(*mine))
    if both:
        precision, recall = len(both) / len(b), len(both) / len(a)
        assert partial == pytest.approx(2 * precision * recall / (precision + recall))
    else:
        assert partial == float(a == b)
