"""Realism: the lean scores are those of the library, ranks are of the first gold, and corpora stay apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lossmap import canon, transcript
from lossmap.studies import lexical, realism
from lossmap.transcript import GoldSpan, Meeting, Query, Turn

SAID = {
    "m1": "button button shape of the remote",
    "m2": "colour button colour",
    "m3": "the budget of schools",
    "m4": "schools schools nurse",
}
ASKED = [
    ("lk-00001", "lookup", "exact", "R1", "button shape", ["m1"]),
    ("lk-00001-r1", "lookup", "reworded-1", "R1", "nothing known", ["m1"]),
    ("mf-00001", "multi_file", "exact", "R2", "schools schools budget", ["m3", "m4"]),
    ("ag-00001", "aggregation", "exact", "R3", "nurse", ["m2", "m4"]),
]


@pytest.fixture
def generated(tmp_path: Path) -> Path:
    canon.write_json(tmp_path / "config.json", {"corpus_id": "tiny-synthetic", "near_duplicate_rate": 0.5})
    rows = [{"meeting_key": key, "near_duplicate_cluster": "near:m1" if key in ("m1", "m2") else None,
             "turns": [{"speaker": "rubber", "content": part} for part in text.split(" ", 1)]}
            for key, text in SAID.items()]  # fmt: skip
    canon.write_jsonl(tmp_path / "meetings" / "part-0000.jsonl", rows[:3])
    canon.write_jsonl(tmp_path / "meetings" / "part-0001.jsonl", rows[3:])
    names = ("query_id", "query_class", "surface", "rule", "text", "gold_files")
    queries = [{**dict(zip(names, asked)), "base_id": asked[0].removesuffix("-r1")} for asked in ASKED]
    canon.write_jsonl(tmp_path / "queries.jsonl", queries)
    return tmp_path


@pytest.fixture
def real(tmp_path: Path) -> Path:
    folder = tmp_path / "real"
    meetings = [
        Meeting(f"x{at}", "x", "Committee", "en", None, (Turn(0, "A", text),)) for at, text in enumerate(SAID.values())
    ]
    queries = [Query("q0", "nurse", "lookup", "Committee"), Query("q1", "button", "lookup", "Committee")]
    card = {"key": "tiny-real", "tier": "A", "judged_by": "human"}
    transcript.write_corpus(folder, meetings, queries, [GoldSpan("q0", "x3", 0, 0), GoldSpan("q1", "x1", 0, 0)], card)
    return folder


def test_lean_scores_are_those_of_the_library() -> None:
    documents = list(SAID.values())
    queries = ["the button of schools", "schools schools", "unknown", "", "Colour, button & nurse"]
    lean = realism.read(iter(documents), queries).scores(np.arange(len(queries)))
    whole = lexical.read(
        {str(at): text for at, text in enumerate(documents)}, {str(at): q for at, q in enumerate(queries)}
    )
    assert lean == pytest.approx(lexical.scores(whole, np.arange(4), np.arange(5)), rel=1e-12)


def test_rows_by_class_rule_and_surface(generated: Path) -> None:
    document = realism.study(generated, None)
    rows = {(row["query_class"], row["rule"], row["surface"]): row for row in document["rows"]}
    assert list(rows) == [("lookup", None, "exact"), ("lookup", None, "reworded-1"), ("multi_file", None, "exact"),
                          ("aggregation", None, "exact"), ("aggregation", "R3", "exact")]  # fmt: skip
    assert all(
        (row["corpus"], row["tier"], row["judged_by"]) == ("tiny-synthetic", "A", "constructed")
        for row in rows.values()
    )
    hit, miss = rows["lookup", None, "exact"], rows["lookup", None, "reworded-1"]
    assert (hit["R@1"], hit["median_rank"], hit["unmatched"], hit["competitors"]) == (1.0, 1.0, 0, 0.0)
    assert (miss["R@10"], miss["median_rank"], miss["unmatched"], miss["competitors_matched"]) == (0.0, 5.0, 1, 0.0)
    assert miss["competitors_share"] == 3 / 4 and hit["R@1_meetings"] == [1.0, 1.0]


def test_a_question_with_several_gold_meetings_is_ranked_by_the_first_and_has_no_competitors(generated: Path) -> None:
    rows = [
        row for row in realism.study(generated, None)["rows"] if row["query_class"] in ("multi_file", "aggregation")
    ]
    both, half = rows[0], rows[1]
    assert (both["R@1"], both["gold_in_10"], both["competitors"], both["single_gold"]) == (1.0, 1.0, None, 0)
    assert (half["R@1"], half["gold_in_10"], half["RR"]) == (1.0, 0.5, 1.0)


def test_near_duplicates_are_counted_with_their_heads(generated: Path) -> None:
    assert realism.study(generated, None)["near_duplicates"] == {
        "join_probability": 0.5,
        "clusters": 1,
        "in_clusters": 0.5,
    }


def test_real_rows_stand_beside_and_carry_their_corpus(generated: Path, real: Path) -> None:
    document = realism.study(generated, real)
    assert {row["corpus"] for row in document["real"]} == {"tiny-real"} and document["real"][0]["judged_by"] == "human"
    assert {row["corpus"] for row in document["rows"]} == {"tiny-synthetic"}
    assert [row["domain"] for row in document["real"]] == ["Committee", "all"]
    shared = {"queries", "documents", "R@1", "R@5", "R@10", "RR", "median_rank", "unmatched", "competitors_share"}
    assert shared <= document["real"][0].keys() & document["rows"][0].keys()
    assert document["real"][0]["R@1"] == 0.5 and document["real"][0]["median_rank"] == 1.5
    assert canon.dumps(document) == canon.dumps(realism.study(generated, real))
