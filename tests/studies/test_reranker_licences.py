"""Verdicts on re-rankers follow from their fields."""

from __future__ import annotations

from typing import Any

import pytest

from lossmap import layout
from lossmap.errors import LossmapError
from lossmap.studies import reranker_licences as licences

FAMILIES = {"permissive": ["MIT"], "non-commercial": ["CC-BY-NC-4.0"]}
CLEAN: dict[str, Any] = {
    "candidate": "x", "parameters": 1, "claimed": "MIT", "evidenced": "MIT", "evidence": "card", "note": "",
    "source": "own",
    "architecture": "cross-encoder", "remote_code": False, "service": False, "in_use": False,
}  # fmt: skip


def verdict(**flipped: Any) -> tuple[str, str | None]:
    found = licences.judged({**CLEAN, **flipped}, FAMILIES)
    return found["verdict"], found["rule"]


def test_a_clean_candidate_ships() -> None:
    assert verdict() == ("shippable", None)


@pytest.mark.parametrize(
    ("flipped", "expected"),
    [
        ({"service": True}, ("rejected", "service")),
        ({"evidenced": None}, ("rejected", "evidence")),
        ({"evidence": "none"}, ("rejected", "evidence")),
        ({"evidenced": "CC-BY-NC-4.0"}, ("rejected", "licence")),
        ({"remote_code": True}, ("rejected", "remote-code")),
        ({"remote_code": None}, ("rejected", "remote-code")),
        ({"architecture": "generative"}, ("not a cross-encoder", "architecture")),
        ({"architecture": None}, ("not a cross-encoder", "architecture")),
        ({"claimed": "CC-BY-NC-4.0"}, ("shippable", None)),
    ],
)
def test_flipping_a_field_flips_the_verdict(flipped: dict[str, Any], expected: tuple[str, str | None]) -> None:
    assert verdict(**flipped) == expected


def test_the_licence_that_was_read_is_held_against_the_claimed_one() -> None:
    assert licences.judged({**CLEAN, "claimed": "CC-BY-NC-4.0"}, FAMILIES)["agrees"] is False
    assert licences.judged({**CLEAN, "evidenced": None}, FAMILIES)["agrees"] is None


@pytest.mark.parametrize(
    "change", [{"evidenced": "WTFPL"}, {"verdict": "shippable"}, {"evidence": "hearsay"}, {"architecture": "oracle"}]
)
def test_what_the_registry_may_not_say_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(LossmapError) as no:
        licences.judged({**CLEAN, **change}, FAMILIES)
    assert no.value.exit_code == 2


def test_the_registered_candidates_have_the_published_verdicts() -> None:
    found = licences.study(layout.load(), "stage5")
    published = {
        row["candidate"].split("/")[-1]: (row["verdict"], row["rule"])
        for row in found["rows"]
        if row["source"] == "published"
    }
    assert published == {
        "ms-marco-MiniLM-L6-v2": ("shippable", None),
        "bge-reranker-base": ("shippable", None),
        "bge-reranker-v2-m3": ("shippable", None),
        "mxbai-rerank-base-v2": ("not a cross-encoder", "architecture"),
        "jina-reranker-v1-turbo-en": ("rejected", "remote-code"),
        "jina-reranker-v2-base-multilingual": ("rejected", "licence"),
        "gte-multilingual-reranker-base": ("rejected", "remote-code"),
        "re-ranking services of Cohere and Voyage": ("rejected", "service"),
    }
    own = {row["candidate"]: row["verdict"] for row in found["rows"] if row["source"] == "own"}
    assert own == {"MiniLM trained on FoolMeTwice": "shippable", "bge-small-en-v1.5": "not a cross-encoder"}
    assert found["verdicts"] == {"shippable": 4, "not a cross-encoder": 2, "rejected": 4}
