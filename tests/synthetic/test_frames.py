"""Wordings: rewordings share nothing with what is planted, and exact frames can be read back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.synthetic import frames, pools
from lossmap.synthetic.rng import Rng
from lossmap.synthetic.wording import Subject, surfaces

REWORDED_RULES = ("R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8")


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif value is not None:
        for part in value.values() if isinstance(value, dict) else value:
            yield from strings(part)


def bare(texts: Iterator[str] | list[str]) -> str:
    """Texts without their placeholders."""
    return " ".join(" ".join(text.replace("{", " {").replace("}", "} ").split()) for text in texts)


def words(texts: Iterator[str] | list[str]) -> str:
    return " ".join(part for part in bare(texts).split() if not part.startswith("{"))


def reworded() -> str:
    document = frames.rewordings()
    kinds = [form for kind in document["kinds"].values() for form in kind.values()]
    texts = [frame["text"] for some in document["reworded"].values() for frame in some]
    return words(
        [*texts, *kinds, *(s for name in ("clauses", "markers", "deferrals") for s in strings(document[name]))]
    )


def test_no_rewording_shares_a_content_word_with_any_template_title_name_or_phrase() -> None:
    exact = frames.wordings()
    held = [*strings(frames.templates()), *exact["markers"].values(), *exact["deferrals"].values()]
    kinds = [kind for register in pools.REGISTERS.values() for kind in register.kinds]
    parts = ("metrics", "roles", "divisions", "family_begin", "family_end")  # in no plant, or no words of their own
    names = [word for name, some in pools.pools().items() if name not in parts for word in some]
    assert frames.shared_words(reworded(), words([*held, *kinds, *names])) == []


def test_every_rule_has_three_rewordings_and_the_control_none() -> None:
    made = frames.rewordings()["reworded"]
    assert sorted(made) == sorted(REWORDED_RULES)
    assert all(len(some) >= 3 and len({frame["id"] for frame in some}) == len(some) for some in made.values())
    assert len({frame["text"] for some in made.values() for frame in some}) == sum(map(len, made.values()))


def test_every_kind_aspect_marker_and_deferral_has_other_words() -> None:
    exact, other = frames.wordings(), frames.rewordings()
    assert {kind for r in pools.REGISTERS.values() for kind in r.kinds} == other["kinds"].keys()
    for table, words_of in (("aspects", "clauses"), ("markers", "markers"), ("deferrals", "deferrals")):
        assert exact[table].keys() == other[words_of].keys()
        assert all(len(set(options)) >= 2 for options in other[words_of].values())
    assert exact["aspects"].keys() == frames.templates()["facts"].keys() and len(exact["aspects"]) == 10


@pytest.mark.parametrize(
    ("query", "gold", "shared"),
    [
        ("Are they planning it?", "It was planned.", ["planning"]),
        ("the prices", "pricing", ["prices"]),
        ("He carries on", "what was carried", ["carries"]),
        ("legally", "legal", ["legally"]),
        ("with this and those", "with this and those", []),
        ("the cat", "the cat", []),
        ("the Amber Kiln delay", "Amber Kiln moved", []),
        ("the Amber Kilns delay", "Amber Kiln moved", ["amber", "kilns"]),
        ("May 2026, please", "it may please them", ["please"]),
        ("carry", "Carys", []),
    ],
)
def test_shared_words_see_through_inflection_and_leave_names_and_grammar(
    query: str, gold: str, shared: list[str]
) -> None:
    assert frames.shared_words(query, gold, ["Amber Kiln", "May"]) == shared


def test_exact_frames_are_read_back_and_strangers_are_not() -> None:
    text = "How many meetings in March 2026 discussed the Amber Kiln pricing freeze?"
    values = {"month": "March", "year": "2026", "marker": "Amber Kiln pricing freeze"}
    assert frames.values_of("R7", "R7-exact-1", text) == values
    assert frames.values_of("R7", "R7-exact-1", text.replace("How many", "Which")) == {}


@pytest.mark.parametrize("rule", [*REWORDED_RULES, "R1v"])
def test_every_frame_of_every_rule_is_filled(rule: str) -> None:
    subject = Subject("the mobile claims team", "change board", "Amber Kiln", "Amber Kiln", ("cost", "owner"), "freeze",
                      "pilot", "March", "2026", "48,350 euros")  # fmt: skip
    used: set[str] = set()
    for seed in range(40):
        made = list(surfaces(rule, subject, Rng(seed)))
        assert [surface for surface, _, _ in made] == ["exact", "reworded-1", "reworded-2"][: 1 if rule == "R1v" else 3]
        assert len({text for _, _, text in made}) == len({frame for _, frame, _ in made}) == len(made)
        assert not any("{" in text or text[:1].islower() for _, _, text in made)
        used |= {frame for _, frame, _ in made}
    known = [*frames.wordings()["exact"][rule], *frames.rewordings()["reworded"].get(rule, [])]
    assert used == {frame["id"] for frame in known}


def test_an_unknown_kind_or_placeholder_says_where() -> None:
    with pytest.raises(LossmapError, match="paraphrases.yaml"):
        frames.kind_words("tea break")
    with pytest.raises(LossmapError, match="{topic}"):
        frames.fill("What of {topic}?", team="x")


def test_the_rewordings_are_those_that_stood_before_the_parser_was_written() -> None:
    """Committed in 72aafa5, before the first commit of the parser (db31492); an edit would be tuning."""
    found = canon.file_sha256(Path(frames.__file__).with_name("paraphrases.yaml"))
    assert found == "9500e68626643a0ec7a06379fd0573179809186f88cf224ad44f4745edc42396"
