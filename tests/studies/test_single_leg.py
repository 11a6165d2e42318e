"""Hits of one leg alone, counted by hand, and which of two stories they tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import planted
import pytest

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.judge import runs
from lossmap.layout import Layout
from lossmap.studies import scores, single_leg
from lossmap.studies.single_leg import Bench
from lossmap.studies.stacks import Family

QUERIES = [f"qmsum:m{place:02d}:000" for place in range(24)]
NORM: dict[str, Any] = {
    "mode": "hybrid", "legs": ["bm25", "exact"], "size": 20, "normalization": "min_max", "weights": [0.5, 0.5],
}  # fmt: skip
BM25, EXACT = list(range(0, 15)), list(range(8, 23))
"""Both legs hold 8 to 14: seven documents."""
BOTH, BM25_ONLY, EXACT_ONLY = list(range(8, 15)), list(range(0, 8)), list(range(15, 23))
GOLD = frozenset({0, 8, 20})


def bench(patch: pytest.MonkeyPatch, folder: Path) -> Layout:
    at = planted.scale(patch, folder, {"v6": {"documents": ["qmsum"], "scored": ["qmsum"]}}, {}, {})
    at = Layout(at.root, at.scale, at.config, "v6/qmsum")
    for name, rows in (("bm25", BM25), ("exact", EXACT)):
        planted.leg(at, name, dict.fromkeys(QUERIES, rows))
    rows = {f"f_{row}": row for row in range(40)}
    patch.setattr(single_leg, "_bench", lambda here: Bench(here, rows, dict.fromkeys(QUERIES, GOLD)))
    single_leg._frozen.cache_clear()
    return at


def arm(at: Layout, name: str, lists: Mapping[str, Sequence[int]], value: float = 0.5, **stanza: Any) -> None:
    folder = scores.scored(at, at.bench, "stage5") / name
    legs = {leg: canon.file_sha256(at.leg(leg)) for leg in ("bm25", "exact")}
    planted.arm(folder, name, dict.fromkeys(QUERIES, value), legs_of=legs, arm={"id": name, **NORM, **stanza})
    runs.write_run(folder / "run.txt.gz", {q: [(f"f_{row}", 1.0) for row in rows] for q, rows in lists.items()}, name)


def everywhere(rows: Sequence[int]) -> dict[str, Sequence[int]]:
    return dict.fromkeys(QUERIES, rows)


def family(*arms: str) -> Family:
    return Family("fusion", arms[0], dict.fromkeys(arms[1:], "combination"), ("v6/qmsum",))


def three_means(at: Layout, geometric: Sequence[int]) -> dict[str, Any]:
    """Arithmetic with four single-leg hits in its ten, geometric with the given ten."""
    arm(at, "arith", everywhere([*BOTH[:6], *BM25_ONLY[:2], *EXACT_ONLY[:2]]), combination="arithmetic_mean")
    arm(at, "geom", everywhere(geometric), 0.4, combination="geometric_mean")
    return single_leg.study(at, family("arith", "geom"))


def test_counts_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = bench(monkeypatch, tmp_path)
    top = [0, 1, 8, 9, 20, 10, 11, 12, 13, 2]
    arm(at, "arith", everywhere([*top, 21, 22]), combination="arithmetic_mean")
    (row,) = single_leg.study(at, family("arith"))["rows"]
    assert row["single_per_query"] == 4 and row["of_legs"] == {"bm25": 3, "exact": 1}
    assert row["single"] == 0.4 and row["both_at_depth_per_query"] == 7
    assert row["if_annihilated"] == pytest.approx(0.3), "three places remain beyond the seven documents of both legs"
    assert row["relevant_single"] == pytest.approx(2 / 3)
    assert row["worth_single"] == pytest.approx(2 / 4) and row["worth_both"] == pytest.approx(1 / 6)
    assert (row["nDCG@10"], row["queries"], row["leg_depth"], row["corpus"]) == (0.5, 24, 20, "qmsum")


def test_single_leg_hits_favoured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = three_means(bench(monkeypatch, tmp_path), [*BM25_ONLY, *EXACT_ONLY[:2]])
    (row,) = document["means"]
    assert (row["arm"], row["control"], row["story"]) == ("geom", "arith", "favoured")
    assert row["single_per_query"]["delta"] == 6 and row["single_per_query"]["p_values"]["meetings"] < 0.001
    assert row["nDCG@10"]["delta"] == pytest.approx(-0.1)
    assert (row["annihilated_per_query"], row["observed_per_query"]) == (3, 10)


def test_single_leg_hits_annihilated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (row,) = three_means(bench(monkeypatch, tmp_path), [*BOTH, *BM25_ONLY[:3]])["means"]
    assert row["story"] == "annihilated" and row["observed_per_query"] == row["annihilated_per_query"] == 3


def test_neither_story_where_nothing_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (row,) = three_means(bench(monkeypatch, tmp_path), [*BOTH[1:7], *BM25_ONLY[2:4], *EXACT_ONLY[:2]])["means"]
    assert row["story"] == "undecided" and row["single_per_query"]["p_values"]["meetings"] == 1.0


def test_a_mean_is_held_against_the_one_that_differs_in_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = bench(monkeypatch, tmp_path)
    for name, stanza in {
        "arith": {"combination": "arithmetic_mean", "normalization": "l2"},
        "geom": {"combination": "geometric_mean"},
        "weighted": {"combination": "arithmetic_mean", "weights": [0.7, 0.3]},
    }.items():
        arm(at, name, everywhere(BOTH), **stanza)
    assert single_leg.study(at, family("arith", "geom", "weighted"))["means"] == []


def test_the_depth_of_the_arm_decides_what_a_leg_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = bench(monkeypatch, tmp_path)
    arm(at, "shallow", everywhere([0, 8, 9]), leg_depth=9, combination="arithmetic_mean")
    (row,) = single_leg.study(at, family("shallow"))["rows"]
    assert row["of_legs"] == {"bm25": 1, "exact": 1} and row["both_at_depth_per_query"] == 1, "9 is the exact leg's now"
    arm(at, "deep", everywhere([0]), leg_depth=49, combination="arithmetic_mean")
    with pytest.raises(LossmapError, match="not frozen as deep"):
        single_leg.study(at, family("deep"))


def test_other_legs_than_the_arm_was_fused_from_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = bench(monkeypatch, tmp_path)
    arm(at, "arith", everywhere(BOTH), combination="arithmetic_mean")
    planted.leg(at, "exact", dict.fromkeys(QUERIES, EXACT[::-1]))
    with pytest.raises(LossmapError, match="not the one of the arm"):
        single_leg.study(at, family("arith"))


@pytest.mark.parametrize("document", ["f_30", "g_0"])
def test_a_document_of_neither_leg_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, document: str) -> None:
    at = bench(monkeypatch, tmp_path)
    arm(at, "arith", everywhere(BOTH), combination="arithmetic_mean")
    path = scores.scored(at, at.bench, "stage5") / "arith" / "run.txt.gz"
    runs.write_run(path, {q: [("f_8", 1.0), (document, 1.0)] for q in QUERIES}, "arith")
    with pytest.raises(LossmapError, match="neither leg has"):
        single_leg.study(at, family("arith"))


def test_arms_of_one_leg_and_corpora_that_were_not_obtained_have_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = bench(monkeypatch, tmp_path)
    arm(at, "arith", everywhere(BOTH), combination="arithmetic_mean")
    arm(at, "bm25", everywhere(BM25), legs=["bm25"], mode="keyword")
    document = single_leg.study(at, family("arith", "bm25"))
    assert [row["arm"] for row in document["rows"]] == ["arith"]
    folder = scores.scored(at, at.bench, "stage5") / "arith"
    canon.write_json(folder / "metrics.json", {**canon.read_json(folder / "metrics.json"), "rows": []})
    canon.write_csv_gz(folder / "per_query.csv.gz", ("name", "qid", "measure", "value"), [])
    assert single_leg.study(at, family("arith"))["rows"] == []


def test_a_query_with_an_empty_ranking_counts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = bench(monkeypatch, tmp_path)
    arm(at, "arith", {**everywhere([0, 8]), QUERIES[0]: []}, combination="arithmetic_mean")
    (row,) = single_leg.study(at, family("arith"))["rows"]
    assert row["single"] == 0.5 and row["single_per_query"] == pytest.approx(23 / 24)
