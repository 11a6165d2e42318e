"""What the chapters on indexes need of claims, tables and figures: nested lists, cited deltas, builds of a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tree

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.report import claims, documents, figures, ledger, tables
from lossmap.report.claims import Book

BOTH = {"meetings": [-0.01, 0.03], "queries": [0.0, 0.02]}


def head(query_class: str, tier: str = "A") -> dict[str, Any]:
    return {"corpus": "fixture", "tier": tier, "judged_by": "human", "query_class": query_class, "queries": 9}


def contrast(name: str, arm: str, tier: str = "A") -> dict[str, Any]:
    row = {**head("lookup", tier), "deltas": dict.fromkeys(tree.NAMES, 0.01), "band": 0.002, "identical": False,
           "intervals": dict.fromkeys(tree.NAMES, BOTH)}  # fmt: skip
    return {"name": name, "treatment": name, "control": "mixed", "arm": arm, "rows": [row]}


def scored(index: str, value: float) -> dict[str, Any]:
    row = {"bench": f"{index}/fixture", "arm": "rrf30-exact", "metrics": dict.fromkeys(tree.NAMES, value)}
    return {**head("lookup"), **row}


def stage(root: Path, name: str, **files: Any) -> Book:
    """``files`` (stem=document) as the ledgered stage ``name`` beside the tree's own."""
    for stem, document in files.items():
        canon.write_json(root / name / f"{stem}.json", document)
    entries = {
        f"{stem}.json": ledger.entry(root / name / f"{stem}.json", "study", "smoke", "5" * 64, {}) for stem in files
    }
    ledger.write(root / name, "smoke", entries)
    return Book(root)


def stage3(root: Path) -> Book:
    return stage(
        root,
        "stage3",
        contrasts={"contrasts": [contrast("v6", "rrf30-exact"), contrast("digests", "bm25")]},
        scores={"rows": [scored("mixed", 0.25), scored("v6", 0.26)]},
    )


def test_members_of_a_list_inside_a_list_become_claims(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = {"id": "s3.{name}.{arm}.{corpus}.{query_class}", "file": "stage3/contrasts.json", "pointer": "/contrasts",
            "explode": "rows", "fields": {"band": "f4"}}  # fmt: skip
    stage(root, "stage3", contrasts={"contrasts": [contrast("v6", "bm25"), contrast("header", "bm25", tier="B")]})
    monkeypatch.setattr(documents, "data", lambda _: {"lists": [spec]})
    found = dict(claims._lists(documents.Results(root), "stage3"))
    assert found["s3.v6.bm25.fixture.lookup.band"]["pointer"] == "/contrasts/0/rows/0/band"
    assert found["s3.header.bm25.fixture.lookup.band"]["tier"] == "B"


def test_a_cited_delta_stands_before_ours_with_both_levels(root: Path) -> None:
    rows = tables.build(stage3(root), "stage3.beside-published").rows
    cited, ours = (row for row in rows if row[:2] == ("fixture", "lookup"))
    assert cited[2:8] == ("cited", "–", "1172", "0.0885", "0.1038", "+0.0153")
    assert ours[2:9] == ("v6", "rrf30-exact", "9", "0.2500", "0.2600", "+0.0100", "[−0.0100, +0.0300]")
    assert not any("digests" in row for row in rows)


def test_a_fact_asks_for_the_corpus_of_this_scale(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fact = {"label": "nDCG@10", "claim": "stage1.{corpus}.all.ndcg10", "published": "000.stage1.qmsum.all.ndcg10"}
    row = next(tables._from_facts(Book(root), {"facts": [fact]}))
    assert row.fields["published"] == "0.1052" and row.fields["ours"].startswith("0.")
    with pytest.raises(LossmapError, match="unknown claim"):
        list(tables._from_facts(Book(root), {"facts": [fact | {"claim": "stage1.{corpus}.none"}]}))


def test_builds_of_a_graph_are_drawn_from_their_rows(root: Path, tmp_path: Path) -> None:
    arms = [{**head("all"), "arm": arm, "metrics": {"nDCG@10": value}, "intervals": {"nDCG@10": BOTH}}
            for arm, value in (("dense-hnsw", 0.05), ("rrf30-hnsw", 0.12))]  # fmt: skip
    book = stage(root, "stability", graph={"builds": [{"index": name, "arms": arms} for name in ("main", "one-bulk")]})
    first, second = (figures.write(book, "stability.builds", tmp_path / f"{name}.svg") for name in "ab")
    assert first.read_bytes() == second.read_bytes()
    assert {"stability/graph.json", "stage1/arms/dense-exact/metrics.json"} <= book.results.used


def test_a_tally_names_what_it_counts() -> None:
    assert documents.formatted({"real": 137, "synthetic": 1095}, "tally") == "137 real, 1,095 synthetic"
    assert documents.formatted(-5, "taken") == "5" and documents.formatted(0.00104, "pct3") == "0.104%"
