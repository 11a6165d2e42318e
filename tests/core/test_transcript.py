"""The tier of what rests on several corpora."""

from __future__ import annotations

import pytest

from lossmap import transcript


@pytest.mark.parametrize(("tiers", "expected"), [("A", "A"), ("AB", "B"), ("BA", "B"), ("CAB", "C")])
def test_the_worst_tier_is_inherited(tiers: str, expected: str) -> None:
    assert transcript.worst(tiers) == expected
    assert transcript.worst(iter(tiers)) == expected


@pytest.mark.parametrize("tiers", [[], ["A", "D"], ["A", ""]])
def test_no_tier_and_an_unknown_one_are_refused(tiers: list[str]) -> None:
    with pytest.raises(ValueError):
        transcript.worst(tiers)
