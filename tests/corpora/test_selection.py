"""Meetings left out of an index: what the composition study calls its first sessions, a domain, and a refusal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lossmap.corpora import selection
from lossmap.errors import LossmapError
from lossmap.studies import composition, lexical, whole
from lossmap.transcript import Meeting

NAMES = st.builds("{}{}".format, st.sampled_from(["ES9001", "ES9002", "TS9", "covid_"]), st.sampled_from("abcd"))
MEETINGS = st.dictionaries(NAMES, st.sampled_from(["Product", "Academic", "Committee"]), min_size=1)


def meetings(domains: dict[str, str]) -> list[Meeting]:
    return [Meeting(name, name, domain, "en", None, ()) for name, domain in domains.items()]


def ids(found: list[Meeting]) -> list[str]:
    return [meeting.meeting_id for meeting in found]


@given(MEETINGS)
def test_first_sessions_are_those_of_the_composition_study(domains: dict[str, str]) -> None:
    collection = lexical.read(dict.fromkeys(domains, "word"), {"q": "word"})
    labels = np.array([domains[name] for name in collection.doc_ids], object)
    material = whole.Material({}, collection, labels, np.array([0]), ("word",))
    places = composition.kept(material, composition._keepers(material)["first"])
    found = selection.chosen(meetings(domains), {"first_sessions_of": whole.SCENARIO})
    assert ids(found) == [collection.doc_ids[place] for place in places]


def test_rules_are_applied_one_after_the_other_and_none_keeps_the_order() -> None:
    given_ones = meetings({"ES9001b": "Product", "x": "Academic", "ES9001a": "Product", "ES9002c": "Product"})
    assert selection.chosen(given_ones, None) == given_ones == selection.chosen(given_ones, {})
    assert ids(selection.chosen(given_ones, {"domain": "Product"})) == ["ES9001b", "ES9001a", "ES9002c"]
    both = {"domain": "Product", "first_sessions_of": "Product"}
    assert ids(selection.chosen(given_ones, both)) == ["ES9001a", "ES9002c"]
    assert selection.chosen(given_ones, {"domain": "Nowhere"}) == []


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(LossmapError, match=r"no such selection[\s\S]*first_sessions_of") as refused:
        selection.chosen([], {"series": "Product"})
    assert refused.value.exit_code == 2
