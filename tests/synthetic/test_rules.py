"""Rules: how many questions a world holds, what makes them unique, and that answers follow from plants."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache

import pytest

from lossmap.synthetic import rules, world
from lossmap.synthetic.anchors import NUMBERED
from lossmap.synthetic.rules import Book

RULES = ("R1", "R1v", "R2", "R3", "R4", "R5", "R6", "R7", "R8")


@cache
def made(meetings: int) -> tuple[world.World, Book]:
    here = world.build(world.Config(meetings=meetings))
    return here, rules.build(here)


def exact(book: Book, *names: str) -> list[rules.Row]:
    return [row for row in book.queries if row["surface"] == "exact" and row["rule"] in (names or RULES)]


def planted(book: Book) -> dict[str, list[rules.Row]]:
    found: dict[str, list[rules.Row]] = defaultdict(list)
    for fact in book.facts:
        found[fact["query"]].append(fact)
    return found


def test_counts_of_the_full_scale_are_those_of_the_spec() -> None:
    _, book = made(2000)
    numbers = {rule: row["made"] for rule, row in book.counts.items()}
    assert numbers == {"R1": 400, "R1v": 100, "R2": 250, "R3": 34, "R4": 33, "R5": 33, "R6": 33, "R7": 33, "R8": 80}
    assert all(row["made"] == row["wanted"] for row in book.counts.values())
    assert book.counts["R6"]["sessions_at_least"] == 6 and book.counts["R8"]["sessions_at_least"] == 4
    assert Counter(row["surface"] for row in book.queries) == {"exact": 996, "reworded-1": 896, "reworded-2": 896}


@pytest.mark.parametrize("meetings", [12, 16, 60])
def test_small_worlds_hold_every_rule_and_say_what_they_lack(meetings: int) -> None:
    _, book = made(meetings)
    assert set(book.counts) == set(RULES)
    assert all(0 < row["made"] <= row["wanted"] for row in book.counts.values())
    assert {rule: row["made"] for rule, row in book.counts.items()} == Counter(row["rule"] for row in exact(book))


@pytest.mark.parametrize("meetings", [16, 2000])
def test_claims_values_and_phrases_are_unique(meetings: int) -> None:
    here, book = made(meetings)
    facts = [fact for fact in book.facts if fact["rule"] in ("R1", "R1v", "R2")]
    teams = {fact["session"].split("-")[0] for fact in facts}
    claims = Counter((fact["session"].split("-")[0], fact["topic"], fact["aspect"]) for fact in facts)
    assert len(teams) == len(here.teams) and set(claims.values()) == {1}
    anchors: dict[str, set[str]] = defaultdict(set)
    for fact in book.facts:
        anchors[fact["anchor"]].add(fact["query"])
    assert all(len(queries) == 1 for queries in anchors.values())
    assert len({fact["anchor"] for fact in facts}) == len(facts)


@pytest.mark.parametrize("meetings", [12, 16, 60, 2000])
def test_answers_follow_from_the_plants(meetings: int) -> None:
    here, book = made(meetings)
    facts = planted(book)
    for row in exact(book, "R3", "R4", "R5", "R7"):
        sessions = sorted({fact["session"] for fact in facts[row["query_id"]]})
        assert sorted([*row["gold_files"], *row["related_files"]]) == sessions
        answer = {"R4": sessions, "R5": len(facts[row["query_id"]])}.get(row["rule"], len(row["gold_files"]))
        assert row["answer"] == answer and row["scored_on"] == "answer"
    for row in exact(book, "R7"):
        months = Counter(here.session(key).date[:7] for key in [*row["gold_files"], *row["related_files"]])
        (inside,) = {here.session(key).date[:7] for key in row["gold_files"]}
        assert inside == min(months, key=lambda month: (-months[month], month)) and len(months) > 1
    for row in exact(book, "R6"):
        present = Counter(p.name for key in row["gold_files"] for p in here.session(key).attendees).most_common(2)
        assert row["answer"] == {"speaker": present[0][0], "sessions": present[0][1]} and present[0][1] > present[1][1]
    assert len({row["series_id"] for row in exact(book, "R6")}) == len(exact(book, "R6"))


def test_ranges_of_the_spec_at_full_scale() -> None:
    _, book = made(2000)
    facts = planted(book)
    sizes: dict[str, set[int]] = defaultdict(set)
    for row in exact(book):
        sizes[row["rule"]].add(len({fact["session"] for fact in facts[row["query_id"]]}))
    assert sizes["R1"] == sizes["R1v"] == {1} and sizes["R2"] == {2, 3, 4}
    for rule, low, high in (("R3", 3, 12), ("R4", 2, 8), ("R5", 2, 6), ("R7", 4, 14)):
        assert low <= min(sizes[rule]) and max(sizes[rule]) <= high and len(sizes[rule]) > 3
    times = Counter(Counter((fact["query"], fact["session"]) for fact in book.facts if fact["rule"] == "R5").values())
    assert set(times) == {1, 2, 3}


def test_questions_are_linked_and_never_hold_their_answer() -> None:
    _, book = made(200)
    by_id = {row["query_id"]: row for row in book.queries}
    assert len(by_id) == len(book.queries)
    for row in book.queries:
        base = by_id[row["base_id"]]
        assert base["surface"] == "exact" and row["query_id"].startswith(base["query_id"])
        assert (row["gold_files"], row["answer"]) == (base["gold_files"], base["answer"])
        if row["rule"] in ("R1", "R2"):
            anchors = row["answer"].values() if row["rule"] == "R2" else [row["answer"]]
            assert not any(anchor in row["text"] for anchor in anchors)
    assert all(row["query_id"][-1] in "05" for row in exact(book, "R1v"))


def test_plants_are_two_turns_for_a_fact_and_one_for_a_phrase_which_stands_whole() -> None:
    _, book = made(60)
    plants = {plant.plant_id: plant for some in book.plants.values() for plant in some}
    assert len(plants) == len(book.facts)
    for fact in book.facts:
        turns = plants[fact["plant_id"]].turns
        assert len(turns) == (2 if fact["rule"] in ("R1", "R1v", "R2") else 1)
        assert turns[-1].anchor == fact["anchor"] and turns[-1].text.count(fact["anchor"]) == 1
        assert all(turn.anchor is None and fact["anchor"] not in turn.text for turn in turns[:-1])
        assert fact["topic"] in " ".join(turn.text for turn in turns)


def test_the_same_seed_gives_the_same_book_and_another_seed_another() -> None:
    here = world.build(world.Config(meetings=60))
    assert rules.build(here) == made(60)[1]
    assert rules.build(world.build(world.Config(meetings=60, seed=5))).queries != made(60)[1].queries


def test_resolve_puts_turn_ranges_in_gold_files_alone() -> None:
    _, book = made(60)
    positions = {fact["plant_id"]: (2 * at, 2 * at + 1) for at, fact in enumerate(book.facts)}
    queries, facts = rules.resolve(book, positions)
    assert [(fact["first"], fact["last"]) for fact in facts] == list(positions.values())
    for row in queries:
        assert set(row["gold_turns"]) == (set() if row["rule"] in ("R6", "R8") else set(row["gold_files"]))
    events = next(row for row in queries if row["rule"] == "R5")
    assert sum(len(spans) for spans in events["gold_turns"].values()) == events["answer"]


@pytest.mark.parametrize("kind", NUMBERED)
def test_numbered_values_differ_at_every_place_and_have_one_length(kind: str) -> None:
    size, text = NUMBERED[kind]
    values = {text(place) for place in range(size)}
    assert len(values) == size and len({len(value) for value in values}) == 1
