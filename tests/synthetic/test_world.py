"""The world: unique names, real calendar, near-duplicates, and one strict maximum of attendance a series."""

from __future__ import annotations

from collections import Counter
from datetime import date

import pytest

from lossmap.errors import LossmapError
from lossmap.synthetic.dates import FIRST_DAY, days, first_day
from lossmap.synthetic.pools import REGISTERS, Deck
from lossmap.synthetic.rng import Rng
from lossmap.synthetic.world import Config, World, build


@pytest.fixture(scope="module")
def world() -> World:
    return build(Config(meetings=400))


def test_counts_follow_the_configuration(world: World) -> None:
    assert len(world.sessions) == 400 and len(world.teams) == 10
    assert len(build(Config(meetings=3)).teams) == 3
    assert len(build(Config(meetings=60)).teams) == 4
    assert Config().query_counts() == {"lookup": 500, "multi_file": 250, "aggregation": 166, "summarize": 80}
    assert Config(meetings=60).query_counts() == {"lookup": 24, "multi_file": 12, "aggregation": 10, "summarize": 4}
    for team in world.teams:
        kinds = Counter(topic.kind for topic in team.topics)
        assert 7 <= len(team.roster) <= 14 and 4 <= kinds["component"] <= 6 and 2 <= kinds["project"] <= 3
        assert 2 <= sum(series.team_id == team.team_id for series in world.series) <= 5


def test_names_and_keys_are_unique(world: World) -> None:
    people = [person.name for team in world.teams for person in team.roster]
    topics = [topic.name for team in world.teams for topic in team.topics]
    for names in (people, topics, [t.label for t in world.teams], [s.key for s in world.sessions]):
        assert len(names) == len(set(names))
    assert len({session.file_uuid for session in world.sessions}) == 400
    for team in world.teams:
        assert len({person.first_name for person in team.roster}) == len(team.roster)


def test_lookups_return_what_the_tuples_hold(world: World) -> None:
    session = world.sessions[7]
    assert world.session(session.key) is session
    assert session.key in world.series_of(session.series_id).sessions
    assert world.topic(session.agenda[0]) in world.team(session.team_id).topics
    assert world.person(session.attendees[0].speaker_id) == session.attendees[0]


def test_days_are_working_days_at_the_cadence(world: World) -> None:
    for series in world.series:
        held = [date.fromisoformat(world.session(key).date) for key in series.sessions]
        cadence = REGISTERS[series.register].cadence
        assert 0 <= (held[0] - FIRST_DAY).days <= 330
        assert all(day.weekday() < 5 for day in held)
        assert all(abs((after - before).days - cadence) <= 2 for before, after in zip(held, held[1:]))


def test_series_begin_all_through_the_first_year(world: World) -> None:
    months = {world.session(series.sessions[0]).date[:7] for series in world.series}
    assert len(months) >= 8 and min(months) >= "2025-01" and max(months) <= "2025-12"
    assert {first_day(Rng(seed)).month for seed in range(300)} == set(range(1, 13))
    assert max(session.date for session in world.sessions) > "2026-06"


def test_the_calendar_has_leap_years() -> None:
    met = {day for seed in range(20) for day in days(FIRST_DAY, 200, 7, Rng(seed))}
    assert date(2028, 2, 29) in met and all(day.weekday() < 5 for day in met)


def test_the_chair_alone_attends_everything(world: World) -> None:
    for series in world.series:
        sessions = [world.session(key) for key in series.sessions]
        present = Counter(person for session in sessions for person in session.attendees)
        chair = world.team(series.team_id).roster[0]
        assert present[chair] == len(sessions)
        if len(sessions) > 1:
            assert all(times < len(sessions) for person, times in present.items() if person != chair)
        assert all(session.attendees[0] == chair and len(session.attendees) >= 3 for session in sessions)


def test_near_duplicates_copy_agenda_and_people_of_their_head() -> None:
    world = build(Config(meetings=400, near_duplicate_rate=0.5))
    clusters: dict[str, list[str]] = {}
    for session in world.sessions:
        if session.cluster:
            clusters.setdefault(session.cluster, []).append(session.key)
    assert clusters and all(len(keys) > 1 for keys in clusters.values())
    shared = []
    for keys in clusters.values():
        head, *rest = (world.session(key) for key in keys)
        assert all(other.agenda == head.agenda for other in rest)
        shared += [len({*head.attendees} & {*o.attendees}) / len({*head.attendees} | {*o.attendees}) for o in rest]
    assert sum(share == 1 for share in shared) > 0.8 * len(shared)  # the rule of attendance thins a few
    assert all(session.cluster is None for session in build(Config(meetings=100, near_duplicate_rate=0)).sessions)


def test_the_seed_decides_and_the_length_does_not() -> None:
    assert build(Config(meetings=40)).sessions == build(Config(meetings=40, length=0.1)).sessions
    assert build(Config(meetings=40)).sessions != build(Config(meetings=40, seed=1)).sessions


def test_an_exhausted_pool_raises_and_numbers_go_on() -> None:
    deck = Deck("vendors", ["a", "b"], Rng(1))
    assert sorted([deck.deal(), deck.deal()]) == ["a", "b"]
    with pytest.raises(LossmapError, match="vendors"):
        deck.deal()
    names = Deck("teams", ["a", "b"], Rng(1)).numbered()
    assert sorted(next(names) for _ in range(4)) == ["a", "a-2", "b", "b-2"]


@pytest.mark.parametrize("wrong", [{"meetings": 0}, {"length": 0}, {"near_duplicate_rate": 1.5}, {"shard_size": 0}])
def test_settings_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(LossmapError, match=next(iter(wrong))):
        Config(**wrong)  # type: ignore[arg-type]
