"""The router's benchmark: labels, surfaces, leakage, slots; the held-out questions as committed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lossmap import canon, transcript
from lossmap.search import route
from lossmap.studies import routing
from lossmap.transcript import Query

# As committed before the first rule existed; a question that is changed afterwards is not held out any more.
HELDOUT_SHA256 = "896163b8947273e4de41a0435b19a335cd727e100bfc3d6538b0692a4e93165f"
TEXTS = {
    "qmsum:m1:000": ("Summarize the talk about prices.", "summarize"),
    "qmsum:m1:001": ("What did A say about the team's and the board's prices?", "lookup"),
    "qmsum:m2:000": ("What summary did B give?", "lookup"),
    "qmsum:m2:001": ("Summarise what was said of 'cold start'", "summarize"),
}
DATES = {"k1": "2025-03-01", "k2": "2025-03-31", "k3": "2025-04-01"}


def row(query_id: str, query_class: str, rule: str, surface: str, text: str, gold: list[str]) -> dict[str, Any]:
    return {
        "query_id": query_id, "query_class": query_class, "rule": rule, "surface": surface, "text": text,
        "gold_files": gold,
    }  # fmt: skip


ROWS = [
    row("lk-1", "lookup", "R1", "exact", "What did the team record as the owner of it?", ["k1"]),
    row("lk-1-r1", "lookup", "R1", "reworded-1", "Give me the owner of it", ["k1"]),
    row("lkv-1", "verbatim", "R1v", "exact", 'Which meeting recorded "March 2025"?', ["k1"]),
    row("mf-1", "multi_file", "R2", "exact", "Across the reviews, what was stated as cost and owner?", ["k1", "k2"]),
    row("sm-1", "summarize", "R8", "exact", "Summarise the reviews", ["k1", "k2"]),
    row("ag-1", "aggregation", "R7", "exact", "How many meetings in March 2025 had it?", ["k1", "k2"]),
    row("ag-1-r1", "aggregation", "R7", "reworded-1", "It came up how many times that spring?", ["k1", "k2"]),
    row("ag-2", "aggregation", "R7", "exact", "How many meetings in March 2025 had that?", ["k1", "k3"]),
    row("ag-3", "aggregation", "R3", "exact", "How many meetings discussed it?", ["k1"]),
]


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    real, made = tmp_path_factory.mktemp("qmsum"), tmp_path_factory.mktemp("generated")
    queries = [Query(query_id, text, query_class, "Product") for query_id, (text, query_class) in TEXTS.items()]
    transcript.write_corpus(real, [], queries, [], {"key": "qmsum", "tier": "A", "judged_by": "human"})
    canon.write_jsonl(made / "meetings/part-0000.jsonl", [{"meeting_key": k, "date": d} for k, d in DATES.items()])
    canon.write_jsonl(made / "queries.jsonl", ROWS)
    document = routing.study(real, made)
    assert canon.dumps(document) == canon.dumps(routing.study(real, made))
    return document


def one(rows: list[dict[str, Any]], **wanted: str) -> dict[str, Any]:
    (found,) = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    return found


def test_the_held_out_questions_are_those_that_were_committed() -> None:
    assert canon.file_sha256(routing.HELDOUT) == HELDOUT_SHA256
    cases = list(routing.heldout_cases())
    assert Counter(case.expected for case in cases) == dict.fromkeys(route.LABELS, 30)
    assert len({case.query_id for case in cases}) == len({case.text for case in cases}) == 120


def test_every_surface_is_a_row_of_its_own(document: dict[str, Any]) -> None:
    met = [(r["corpus"], r["surface"]) for r in document["confusion"]]
    assert met == [("qmsum", "as asked"), ("synthetic", "exact"), ("synthetic", "reworded-1"), ("heldout", "as asked")]
    assert document["cases_by_corpus"] == {"qmsum": 4, "synthetic": 9, "heldout": 120}
    assert all({"corpus", "tier", "judged_by"} <= r.keys() for name in ("rows", "confusion", "lookup_leakage",
               "temporal_slot", "literal", "misroutes") for r in document[name])  # fmt: skip
    exact = one(document["rows"], corpus="synthetic", surface="exact", expected="lookup")
    assert (exact["n"], exact["correct"], exact["accuracy"]) == (3, 3, 1.0), "verbatim and multi_file are lookups"
    assert exact["found"] == {"lookup": 3, "temporal": 0, "summarize": 0, "aggregate": 0}
    reworded = one(document["rows"], corpus="synthetic", surface="reworded-1", expected="all")
    assert (reworded["n"], reworded["correct"]) == (2, 0)


def test_confusion_leakage_and_misroutes_say_the_same(document: dict[str, Any]) -> None:
    lost = one(document["lookup_leakage"], corpus="qmsum")
    assert (lost["n"], lost["misrouted"], lost["rate"], lost["to"]) == (2, 1, 0.5, {"summarize": 1})
    assert one(document["confusion"], corpus="qmsum")["counts"]["lookup"]["summarize"] == 1
    wrong = one(document["misroutes"], corpus="qmsum")
    assert (wrong["query_ids"], wrong["signals"]) == (["qmsum:m2:000"], ["summary"])
    for table in document["confusion"]:
        off = sum(n for e, found in table["counts"].items() for f, n in found.items() if e != f)
        listed = [
            m for m in document["misroutes"] if (m["corpus"], m["surface"]) == (table["corpus"], table["surface"])
        ]
        assert off == sum(len(m["query_ids"]) for m in listed)
    assert not any(text in canon.dumps(document) for text, _ in TEXTS.values())


def test_a_slot_is_a_case_where_the_gold_shares_a_month(document: dict[str, Any]) -> None:
    exact = one(document["temporal_slot"], corpus="synthetic", surface="exact")
    assert (exact["cases"], exact["recovered"], exact["without"], exact["spurious"]) == (1, 1, 5, [])
    reworded = one(document["temporal_slot"], corpus="synthetic", surface="reworded-1")
    assert (reworded["cases"], reworded["recovered"], reworded["missed"]) == (1, 0, ["ag-1-r1"])
    assert [row["corpus"] for row in document["temporal_slot"]] == ["synthetic", "synthetic", "heldout"]


def test_possessives_are_counted_beside_what_is_quoted(document: dict[str, Any]) -> None:
    lookup = one(document["literal"], corpus="qmsum", expected="lookup")
    summarize = one(document["literal"], corpus="qmsum", expected="summarize")
    assert (lookup["literal"], lookup["any_apostrophe"]) == (0, 1)
    assert (summarize["literal"], summarize["any_apostrophe"]) == (1, 1)


def test_the_pooled_numbers_are_over_the_seeds_surfaces(document: dict[str, Any]) -> None:
    pooled = document["pooled"]
    assert (pooled["cases"], pooled["correct"]) == (11, 10)
    assert pooled["lookup_leakage"] == {"n": 5, "misrouted": 1, "rate": 0.2, "to": {"summarize": 1}}
    assert pooled["temporal_slot"] == {"cases": 1, "recovered": 1, "rate": 1.0}


def test_the_study_reads_no_class_field(tmp_path: Path) -> None:
    """A class that the corpus wrote is not the label: the rule on the first word is."""
    transcript.write_corpus(tmp_path, [], [Query("qmsum:m:000", "Describe it", "lookup", "P")], [], {"key": "qmsum"})
    assert [case.expected for case in routing.qmsum_cases(tmp_path)] == ["summarize"]
