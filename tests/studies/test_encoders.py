"""Fusion over three encoders: a sign that turns, the interaction that says so, and what may not differ."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import families_of
import planted
import pytest
from families_of import CONTROL, QUERIES, values

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.layout import Layout
from lossmap.studies import encoders, scores
from lossmap.studies.stacks import Family

BENCHES = ("main/qmsum", "main-e5/qmsum", "main-bge/qmsum")
NAMES = dict(zip(BENCHES, ("MiniLM", "e5", "bge")))
STANZAS: dict[str, Any] = {
    "bm25": {"mode": "keyword", "legs": ["bm25"]},
    "exact": {"mode": "semantic", "legs": ["exact"]},
    CONTROL: {"mode": "hybrid", "legs": ["bm25", "exact"]},
    "rrf-30-w30_70": {"mode": "hybrid", "legs": ["bm25", "exact"], "weights": [0.3, 0.7]},
    "rrf-30-w70_30": {"mode": "hybrid", "legs": ["bm25", "exact"], "weights": [0.7, 0.3]},
}
FAMILY = Family(
    "encoders", CONTROL, dict.fromkeys([name for name in STANZAS if name != CONTROL], "x"), BENCHES, ("index",)
)
EFFECTS = {
    "main/qmsum": {"bm25": 0.0, "exact": 0.0, CONTROL: 0.08, "rrf-30-w30_70": 0.05, "rrf-30-w70_30": 0.1},
    "main-e5/qmsum": {"bm25": 0.0, "exact": 0.15, CONTROL: 0.07, "rrf-30-w30_70": 0.12, "rrf-30-w70_30": 0.03},
    "main-bge/qmsum": {"bm25": 0.0, "exact": 0.1, CONTROL: 0.1, "rrf-30-w30_70": 0.11, "rrf-30-w70_30": 0.02},
}


def write(at: Layout, bench: str, name: str, found: dict[str, float], **hashes: str) -> None:
    planted.arm(
        scores.scored(at, bench, "stage5") / name,
        name,
        found,
        QUERIES,
        arm={"id": name, **STANZAS[name]},
        index={"configured_embedding_model": NAMES[bench]},
        hashes={**planted.HASHES, "index": bench, **hashes},
    )


def drawn(name: str, bench: str) -> dict[str, float]:
    seed = 1 if name == "bm25" else 10 * BENCHES.index(bench) + list(STANZAS).index(name)
    return values(seed, EFFECTS[bench][name], 0.03)


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    found = families_of.root(tmp_path, monkeypatch, BENCHES)
    for bench in BENCHES:
        for name in STANZAS:
            write(found, bench, name, drawn(name, bench))
    return found


def pick(rows: list[dict[str, Any]], **wanted: str) -> dict[str, Any]:
    (row,) = [r for r in rows if all(r[key] == value for key, value in {"query_class": "all", **wanted}.items())]
    return row


def mean(bench: str, name: str) -> float:
    return sum(drawn(name, bench).values()) / len(QUERIES)


def test_the_sign_turns_and_the_interaction_says_so(at: Layout) -> None:
    document = encoders.study(at, FAMILY)
    signs = pick(document["signs"])
    assert [(s["encoder"], s["sign"], s["clear"]) for s in signs["encoders"]][0] == ("e5", -1, True)
    assert [s["encoder"] for s in signs["encoders"]] == ["e5", "bge", "MiniLM"], "the best dense retrieval first"
    assert signs["encoders"][2]["sign"] == 1 and signs["turns"] and signs["turns_clearly"] and signs["differ"]
    pair = pick(document["interactions"], a="MiniLM", b="e5")
    wanted = mean("main/qmsum", CONTROL) - mean("main/qmsum", "exact")
    wanted -= mean("main-e5/qmsum", CONTROL) - mean("main-e5/qmsum", "exact")
    assert pair["delta"] == pytest.approx(wanted)
    low, high = pair["intervals"]["meetings"]
    assert 0 < low < pair["delta"] < high and pair["holm"]["meetings"] >= pair["p_values"]["meetings"]
    assert len([row for row in document["interactions"] if row["query_class"] == "all"]) == 3


def test_effects_of_each_encoder(at: Layout) -> None:
    document = encoders.study(at, FAMILY)
    for bench in BENCHES:
        row = pick(document["effects"], encoder=NAMES[bench])
        over_dense = mean(bench, CONTROL) - mean(bench, "exact")
        assert row["over_dense"]["delta"] == pytest.approx(over_dense)
        best = max(mean(bench, "exact"), mean(bench, "bm25"))
        assert row["over_best_leg"]["delta"] == pytest.approx(mean(bench, CONTROL) - best)
        assert row["means"]["dense"] == pytest.approx(mean(bench, "exact"))
        oracle = sum(max(drawn("bm25", bench)[q], drawn("exact", bench)[q]) for q in QUERIES) / len(QUERIES)
        assert row["means"]["oracle"] == pytest.approx(oracle)
        assert row["oracle_over_best_leg"]["delta"] == pytest.approx(oracle - best)
        assert row["bench"] == bench and row["corpus"] == "qmsum" and row["queries"] == 120 and row["meetings"] == 30
    assert pick(document["effects"], encoder="MiniLM")["best_weight"] == "rrf-30-w70_30"
    e5 = pick(document["effects"], encoder="e5")
    assert e5["best_weight"] == "rrf-30-w30_70" and e5["best_leg"] == "dense"
    assert e5["weights"]["rrf-30-w30_70"]["weights"] == [0.3, 0.7]
    assert e5["best_weight_over_fused"]["delta"] == pytest.approx(
        mean("main-e5/qmsum", "rrf-30-w30_70") - mean("main-e5/qmsum", CONTROL)
    )
    assert {row["query_class"] for row in document["effects"]} == {"lookup", "summarize", "all"}
    assert canon.dumps(document)


def test_no_turn_where_every_encoder_gains(at: Layout) -> None:
    for bench in BENCHES:
        write(at, bench, CONTROL, {q: value + 0.1 for q, value in drawn("exact", bench).items()})
    signs = pick(encoders.study(at, FAMILY)["signs"])
    assert not signs["turns"] and not signs["turns_clearly"] and not signs["differ"]
    assert [s["sign"] for s in signs["encoders"]] == [1, 1, 1]


@pytest.mark.parametrize("name", ["qrels", "engine", "query_ids"])
def test_encoders_differ_in_the_index_alone(at: Layout, name: str) -> None:
    for arm in STANZAS:
        write(at, "main-e5/qmsum", arm, drawn(arm, "main-e5/qmsum"), **{name: "other"})
    with pytest.raises(LossmapError, match=f"differ in {name}"):
        encoders.study(at, FAMILY)


def test_the_arms_of_one_encoder_share_their_index(at: Layout) -> None:
    write(at, "main-e5/qmsum", "bm25", drawn("bm25", "main-e5/qmsum"), index="main/qmsum")
    with pytest.raises(LossmapError, match="differ in index"):
        encoders.study(at, FAMILY)


def test_an_encoder_twice_or_a_leg_without_an_arm_is_refused(at: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LossmapError, match="needs each leg alone"):
        encoders.study(at, Family("encoders", CONTROL, {"bm25": "x"}, BENCHES))
    monkeypatch.setitem(NAMES, "main-e5/qmsum", "MiniLM")
    for arm in STANZAS:
        write(at, "main-e5/qmsum", arm, drawn(arm, "main-e5/qmsum"))
    with pytest.raises(LossmapError, match="the same encoder"):
        encoders.study(at, FAMILY)


def test_one_encoder_and_none(at: Layout) -> None:
    alone = encoders.study(at, Family("encoders", CONTROL, FAMILY.arms, BENCHES[:1]))
    assert len(alone["effects"]) == 3 and alone["interactions"] == [] and not pick(alone["signs"])["differ"]
    for folder in scores.scored(at, BENCHES[0], "stage5").iterdir():
        canon.write_json(folder / "metrics.json", {**canon.read_json(folder / "metrics.json"), "rows": []})
        canon.write_csv_gz(folder / "per_query.csv.gz", ("name", "qid", "measure", "value"), [])
    assert encoders.study(at, Family("encoders", CONTROL, FAMILY.arms, BENCHES[:1]))["effects"] == []


def test_what_may_differ_is_what_the_family_names(at: Layout) -> None:
    with pytest.raises(LossmapError, match="differ in index, which is not the factor"):
        encoders.study(at, replace(FAMILY, factor=()))
