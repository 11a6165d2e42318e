"""Two golds over the same questions: overlap, kappa and rank correlation on a hand case."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lossmap import canon, transcript
from lossmap.judge.measures import NAMES
from lossmap.layout import Layout
from lossmap.studies import adjudicate
from lossmap.transcript import GoldSpan, Meeting, Query, Turn


@pytest.fixture
def at(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path, "smoke", {"scales": {}})
    turns = tuple(Turn(i, "A", f"turn {i}") for i in range(10))
    meetings = [Meeting(m, m, "Demo", "en", None, turns) for m in ("m1", "m2")]
    golds = {
        "a": {"m1": [(0, 3)], "m2": [(5, 6)]},
        "b": {"m1": [(2, 5)], "m2": [(8, 8)]},
    }
    for key, spans in golds.items():
        queries = [Query(f"{key}:{m}:000", f"What of {m}?", "lookup", "Demo") for m in spans]
        queries.append(Query(f"{key}:m1:001", f"only in {key}", "lookup", "Demo"))
        gold = [GoldSpan(f"{key}:{m}:000", m, x, y) for m, some in spans.items() for x, y in some]
        gold.append(GoldSpan(f"{key}:m1:001", "m1", 9, 9))
        card = {"key": key, "tier": "A", "judged_by": "human"}
        transcript.write_corpus(layout.corpus(key), meetings, queries, gold, card)
        arm = tmp_path / key
        rows = [(key, q.query_id, name, repr(0.5 if "m1" in q.query_id else 0.1)) for q in queries for name in NAMES]
        canon.write_csv_gz(arm / "per_query.csv.gz", ["name", "qid", "measure", "value"], sorted(rows))
        head = [{"query_class": "all", "queries": 3, "corpus": key}]
        canon.write_json(arm / "metrics.json", {"arm": {"id": key}, "rows": head, "hashes": {}})
    return layout


def test_overlap_kappa_and_correlation(at: Layout, tmp_path: Path) -> None:
    found = adjudicate.study(at, "a", "b", {"a": tmp_path / "a", "b": tmp_path / "b"})
    assert found is not None
    assert (found["queries"], found["unmatched_first"]) == (2, 1)
    assert found["second_turns"] == 5 and found["second_turns_inside"] == 2
    assert found["queries_with_none_inside"] == 1
    assert found["second_inside_first"]["mean"] == pytest.approx((2 / 4 + 0) / 2)
    assert found["rank_correlation"]["tau_b"] == pytest.approx(1.0)
    assert found["tier"] == "A"


def test_a_comparison_has_the_worse_tier_of_the_two_golds(at: Layout, tmp_path: Path) -> None:
    canon.write_json(at.corpus("b") / "corpus.json", {**transcript.read_card(at.corpus("b")), "tier": "B"})
    for first, second in (("a", "b"), ("b", "a")):
        found = adjudicate.study(at, first, second, {"a": tmp_path / "a", "b": tmp_path / "b"})
        assert found is not None and found["tier"] == "B"


def test_constant_scores_have_no_rank_correlation() -> None:
    nothing = {"tau_b": None, "spearman": None}
    assert adjudicate._correlation(np.array([[0.0, 0.5], [0.0, 0.1]])) == nothing
    assert adjudicate._correlation(np.array([[0.3, 0.5]])) == nothing
    assert adjudicate._correlation(np.array([[0.3, 0.5], [0.2, 0.6]])) == pytest.approx({"tau_b": -1, "spearman": -1})


def test_golds_without_a_common_question_have_nothing_to_say(at: Layout, tmp_path: Path) -> None:
    card = {"key": "b", "tier": "A", "judged_by": "human"}
    transcript.write_corpus(at.corpus("b"), [], [], [], card)
    assert adjudicate.study(at, "a", "b", {"a": tmp_path / "a", "b": tmp_path / "b"}) is None


def test_kappa_of_equal_disjoint_and_chance_selections() -> None:
    assert adjudicate.kappa({1, 2}, {1, 2}, 10) == pytest.approx(1.0)
    assert adjudicate.kappa({0, 1, 2, 3, 4}, {0, 1}, 10) == pytest.approx((0.7 - 0.5) / 0.5)
    assert adjudicate.kappa({0, 1, 2, 3, 4}, {5, 6, 7, 8, 9}, 10) == pytest.approx(-1.0)
    assert adjudicate.kappa(set(), set(), 10) == 1.0
