"""The same queries over indexes that hold other meetings: own and common queries, deltas, and different judgements."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.judge import evaluate, qrels
from lossmap.judge.measures import NAMES
from lossmap.layout import Layout
from lossmap.studies import membership

SPEC = {"whole": "main", "deduplicated": "first", "domains": ["product", "committee"]}
# Per index the value of every measure of each query that it answers.
VALUES = {
    "main": {"P1a": 0.2, "P1b": 0.4, "x1": 0.6},
    "first": {"P1a": 0.5, "x1": 0.6},
    "product": {"P1a": 0.6, "P1b": 0.8},
    "committee": {"x1": 1.0},
}


def query(meeting: str) -> str:
    return f"demo:{meeting}:000"


def write(at: Layout, index: str, tier: str = "A") -> None:
    folder, values = at.stage("corpora") / "scored" / index / "bm25", VALUES[index]
    row = {"corpus": "demo", "tier": tier, "judged_by": "human", "query_class": "all", "queries": len(values)}
    document = {"arm": {"id": "bm25"}, "index": {"chunks": 10 * len(values), "files": len(values)}, "rows": [row]}
    canon.write_json(folder / "metrics.json", document)
    rows = [("bm25", query(meeting), name, repr(value)) for meeting, value in values.items() for name in NAMES]
    canon.write_csv_gz(folder / "per_query.csv.gz", evaluate.PER_QUERY_HEADER, sorted(rows))
    judged = {query(meeting): {f"{meeting}_0": 2} for meeting in values}
    qrels.write_qrels(at.build / "judge" / index / "demo.qrels.gz", judged)


@pytest.fixture
def at(rooted: Callable[..., Layout]) -> Layout:
    made = rooted({name: {"documents": ["demo"], "scored": ["demo"]} for name in VALUES}, {"bm25": {}})
    for index in VALUES:
        write(made, index)
    return made


def test_every_index_is_scored_over_its_own_and_over_the_common_queries(at: Layout) -> None:
    found = membership.study(at, SPEC)
    means = {(r["index"], r["query_set"]): (r["queries"], r["metrics"]["RR"]) for r in found["rows"]}
    assert means == {
        ("main", "own"): (3, pytest.approx(0.4)),
        ("main", "common"): (2, pytest.approx(0.4)),
        ("first", "own"): (2, pytest.approx(0.55)),
        ("first", "common"): (2, pytest.approx(0.55)),
        ("product", "own"): (2, pytest.approx(0.7)),
        ("product", "common"): (1, pytest.approx(0.6)),
        ("committee", "own"): (1, pytest.approx(1.0)),
        ("committee", "common"): (1, pytest.approx(1.0)),
        (membership.OWN_DOMAIN, "own"): (3, pytest.approx(0.8)),
        (membership.OWN_DOMAIN, "common"): (2, pytest.approx(0.8)),
    }
    sizes = {r["index"]: (r["chunks"], r["files"]) for r in found["rows"]}
    assert sizes[membership.OWN_DOMAIN] == (30, 3) and sizes["first"] == (20, 2)
    assert {(r["arm"], r["corpus"], r["tier"], r["judged_by"]) for r in found["rows"]} == {
        ("bm25", "demo", "A", "human")
    }


def test_contrasts_are_paired_with_the_whole_index(at: Layout) -> None:
    deltas = {(r["index"], r["query_set"]): r["metrics"]["nDCG@10"] for r in membership.study(at, SPEC)["contrasts"]}
    assert deltas == {
        ("first", "own"): pytest.approx(0.15),
        ("first", "common"): pytest.approx(0.15),
        ("product", "own"): pytest.approx(0.4),
        ("product", "common"): pytest.approx(0.4),
        ("committee", "own"): pytest.approx(0.4),
        ("committee", "common"): pytest.approx(0.4),
        (membership.OWN_DOMAIN, "own"): pytest.approx(0.4),
        (membership.OWN_DOMAIN, "common"): pytest.approx(0.4),
    }


@pytest.mark.parametrize("marked", [["committee"], ["main"]])
def test_a_row_has_the_worst_tier_of_the_indexes_that_shaped_it(at: Layout, marked: list[str]) -> None:
    for index in marked:
        write(at, index, tier="B")
    found = membership.study(at, SPEC)
    rows = {r["index"]: r["tier"] for r in found["rows"]}
    contrasts = {r["index"]: r["tier"] for r in found["contrasts"]}
    if marked == ["committee"]:
        assert rows == {"main": "A", "first": "A", "product": "A", "committee": "B", membership.OWN_DOMAIN: "B"}
        assert contrasts == {"first": "A", "product": "A", "committee": "B", membership.OWN_DOMAIN: "B"}
    else:
        assert rows == {"main": "B", "first": "A", "product": "A", "committee": "A", membership.OWN_DOMAIN: "A"}
        assert set(contrasts.values()) == {"B"}


def test_indexes_that_judge_a_query_differently_are_refused(at: Layout) -> None:
    path = at.build / "judge" / "first" / "demo.qrels.gz"
    qrels.write_qrels(path, {query("P1a"): {"P1a_0": 2, "P1a_1": 1}, query("x1"): {"x1_0": 2}})
    with pytest.raises(LossmapError, match=r"judge one query differently[\s\S]*P1a:000[\s\S]*2 chunks in first") as no:
        membership.study(at, SPEC)
    assert no.value.exit_code == 3


def test_a_corpus_that_could_not_be_had_leaves_no_row(rooted: Callable[..., Layout]) -> None:
    at = rooted({name: {"documents": ["demo"], "scored": ["demo"]} for name in VALUES}, {"bm25": {}})
    for index in VALUES:
        folder = at.stage("corpora") / "scored" / index / "bm25"
        canon.write_json(folder / "metrics.json", {"index": {"chunks": 0, "files": 0}, "rows": []})
        canon.write_csv_gz(folder / "per_query.csv.gz", evaluate.PER_QUERY_HEADER, [])
        qrels.write_qrels(at.build / "judge" / index / "demo.qrels.gz", {})
    found = membership.study(at, SPEC)
    assert found["rows"] == [] == found["contrasts"]
