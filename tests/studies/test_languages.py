"""Which languages are scored and which are not: each with where, or why not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lossmap.corpora import registry
from lossmap.studies import languages


def score(corpus: str, arm: str, value: float, query_class: str = "all", tier: str = "A") -> dict[str, Any]:
    head = {"corpus": corpus, "tier": tier, "judged_by": "human", "arm": arm, "query_class": query_class}
    return {**head, "metrics": {"nDCG@10": value}}


def test_languages_of_held_and_of_missing_corpora(monkeypatch: pytest.MonkeyPatch) -> None:
    held = SimpleNamespace(key="here", languages=("de", "en", "fi"), obtain={"folder": "x"}, reason=None)
    gone = SimpleNamespace(key="gone", languages=("de", "yo"), obtain=None, reason="on a hub")
    plain = SimpleNamespace(key="plain", languages=(), obtain={"folder": "y"}, reason=None)
    monkeypatch.setattr(registry, "load", lambda: {s.key: s for s in (held, gone, plain)})
    scores = [
        score("here.de", "bm25", 0.5),
        score("here.de", "dense", 0.1, tier="B"),
        score("here.de", "bm25", 0.9, "lookup"),
        score("here.dev", "bm25", 0.7),
        score("plain", "bm25", 0.8),
        score("here.en", "bm25", 0.6),
    ]
    rows = {row["language"]: row for row in languages.study(scores)["rows"]}
    assert list(rows) == ["de", "en", "fi", "yo"]
    assert rows["de"] == {
        "language": "de",
        "scored": True,
        "scored_on": ["here"],
        "nDCG@10": {"bm25": 0.5, "dense": 0.1},
        "missing": ["gone"],
        "reason": "on a hub",
        "tier": "B",
        "judged_by": "human",
    }
    assert {language for language, row in rows.items() if row["tier"] == "A"} == {"en", "fi", "yo"}
    assert rows["yo"]["nDCG@10"] == {"bm25": None, "dense": None}
    assert (rows["en"]["scored"], rows["en"]["missing"], rows["en"]["reason"]) == (True, [], None)
    assert (rows["yo"]["scored"], rows["yo"]["scored_on"], rows["yo"]["reason"]) == (False, [], "on a hub")
    assert (rows["fi"]["scored"], rows["fi"]["reason"]) == (False, languages.NOT_ASKED)


def test_every_language_of_the_registry_has_a_row_and_every_unscored_one_a_reason() -> None:
    scored = [f"xquad.{language}" for language in registry.load()["xquad"].languages]
    rows = languages.study([score(corpus, "bm25", 0.5) for corpus in scored])["rows"]
    assert sum(row["scored"] for row in rows) == len(scored) == 12
    assert all(row["reason"] for row in rows if not row["scored"]) and len(rows) > 12
    assert all(row["reason"] for row in languages.study([])["rows"])
