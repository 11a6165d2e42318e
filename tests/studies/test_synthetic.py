"""What one corpus does to the other in a shared index: presence is document frequencies and crowding together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lossmap import canon, layout
from lossmap.errors import LossmapError
from lossmap.judge.measures import NAMES
from lossmap.layout import Layout
from lossmap.studies import synthetic
from lossmap.transcript import GoldSpan, Meeting, Query, Turn, write_corpus

QUERIES = ("real:m1:000", "real:m1:001", "real:m2:000")
ARMS = ("bm25", "dense-exact", "rrf30-exact")


def arm(folder: Path, name: str, index: str, values: tuple[float, ...], qrels: str = "q") -> None:
    row = {"corpus": "real", "tier": "A", "judged_by": "human", "query_class": "all", "queries": len(QUERIES)}
    hashes = {"query_ids": "i", "qrels": qrels, "index": index, "engine": "e"}
    canon.write_json(folder / "metrics.json", {"arm": {"id": name}, "rows": [row], "hashes": hashes})
    rows = [(name, q, measure, repr(v)) for q, v in zip(QUERIES, values, strict=True) for measure in NAMES]
    canon.write_csv_gz(folder / "per_query.csv.gz", ("name", "qid", "measure", "value"), rows)


@pytest.fixture
def at(tmp_path: Path) -> Layout:
    spec = {"corpus": "made", "beside": "real", "index": "mixed", "benches": ["mixed/real"]}
    indexes = {
        "main": {"documents": ["real"], "scored": ["real"]},
        "mixed": {"documents": ["real", "made"], "scored": ["real"]},
    }
    found = layout.load("smoke")
    config = {**found.config, "scales": {"smoke": {"indexes": indexes, "chapters": {"synthetic": spec, "corpora": {}}}}}
    made = replace(found, root=tmp_path, config=config)
    meetings = [Meeting(m, m, "real", "en", None, (Turn(0, "A", "hello"),)) for m in ("m1", "m2")]
    queries = [Query(q, "?", "lookup", "real") for q in QUERIES]
    gold = [GoldSpan(q, q.split(":")[1], 0, 0) for q in QUERIES]
    write_corpus(made.corpus("real"), meetings, queries, gold, {"key": "real", "tier": "A", "judged_by": "human"})
    return made


def plant(at: Layout, shared: tuple[float, ...], filtered: tuple[float, ...], alone: tuple[float, ...]) -> None:
    for name in ARMS:
        arm(at.stage("corpora") / "scored" / "main" / name, name, "alone", alone)
        arm(at.stage("synthetic") / "scored" / "mixed/real" / name, name, "shared", shared)
        arm(at.stage("synthetic") / "scored" / "mixed/real" / f"{name}-own", f"{name}-own", "shared", filtered)


def load(monkeypatch: pytest.MonkeyPatch, at: Layout) -> None:
    monkeypatch.setattr(layout, "load", lambda scale=None, bench="main": replace(at, bench=bench))
    stanza: dict[str, Any] = {"stages": {"corpora": {"arms": dict.fromkeys(ARMS, {})}}}
    monkeypatch.setattr(layout, "arms", lambda _: stanza)


def test_presence_is_frequencies_and_crowding_together(at: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(at, shared=(0.1, 0.2, 0.3), filtered=(0.3, 0.3, 0.4), alone=(0.4, 0.5, 0.4))
    load(monkeypatch, at)
    found = {
        (row["arm"], row["effect"]): row["deltas"]["nDCG@10"]
        for row in synthetic.shift(at, "synthetic")["rows"]
        if row["query_class"] == "all"
    }
    assert len(found) == 9
    for name in ARMS:
        assert found[name, "presence"] == pytest.approx((-0.3 - 0.3 - 0.1) / 3)
        assert found[name, "frequencies"] == pytest.approx((-0.1 - 0.2 - 0.0) / 3)
        assert found[name, "crowding"] == pytest.approx((-0.2 - 0.1 - 0.1) / 3)
        assert found[name, "presence"] == pytest.approx(found[name, "frequencies"] + found[name, "crowding"])


def test_other_judgements_are_not_the_factor_under_test(at: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(at, (0.1,) * 3, (0.1,) * 3, (0.1,) * 3)
    load(monkeypatch, at)
    arm(at.stage("corpora") / "scored" / "main" / "bm25", "bm25", "alone", (0.1,) * 3, qrels="other")
    with pytest.raises(LossmapError, match="qrels"):
        synthetic.shift(at, "synthetic")
