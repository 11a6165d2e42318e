"""The band of a rebuilt index, and which band stands beside a delta of another chapter."""

from __future__ import annotations

from typing import Any

import pytest

from lossmap.judge.measures import NAMES
from lossmap.studies import bands


def row(value: float, query_class: str = "all", corpus: str = "real", **more: Any) -> dict[str, Any]:
    head = {"corpus": corpus, "tier": "A", "judged_by": "human", "query_class": query_class, "queries": 4}
    return {**head, "metrics": dict.fromkeys(NAMES, value), **more}


def test_a_band_is_the_distance_of_the_two_builds_that_are_furthest_apart() -> None:
    (found,) = bands.spreads([row(0.3), row(0.1, tier="B"), row(0.2)])
    assert (found["lowest"], found["highest"], found["builds"], found["tier"]) == (0.1, 0.3, 3, "B")
    assert found["band"] == pytest.approx(0.2) and found["bands"]["RR"] == pytest.approx(0.2)


def test_corpora_and_classes_have_bands_of_their_own() -> None:
    rows = [row(v, c, k) for v in (0.0, 0.5) for c in ("all", "lookup") for k in ("real", "made")]
    found = [(b["corpus"], b["query_class"]) for b in bands.spreads(rows)]
    assert found == [("made", "lookup"), ("made", "all"), ("real", "lookup"), ("real", "all")]


def measured(band: float, query_class: str, arm: str = "bm25", corpus: str = "real") -> dict[str, Any]:
    head = {"arm": arm, "corpus": corpus, "query_class": query_class, "source": "order"}
    return {**head, "band": band, "bands": {"RR": band}}


def test_a_class_that_was_not_rebuilt_has_the_band_of_all_and_says_so() -> None:
    known = bands.Bands([measured(0.1, "lookup"), measured(0.2, "all"), measured(0.9, "lookup", "dense-hnsw")])
    assert known.of("bm25", "real", "lookup")["band"] == 0.1
    assert known.of("bm25", "made", "lookup") == {
        "band": 0.1, "bands": {"RR": 0.1},
        "band_from": {"source": "order", "corpus": "real", "query_class": "lookup"},
    }  # fmt: skip
    assert known.of("bm25", "made", "multi_file")["band_from"]["query_class"] == "all"
    assert known.of("rrf30-hnsw", "real", "all") == {"band": None, "bands": None, "band_from": None}
