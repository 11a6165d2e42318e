"""The invented world: teams, people, topics, series of sessions with real dates, and the shape of a plant."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from lossmap.errors import LossmapError
from lossmap.synthetic import pools
from lossmap.synthetic.dates import days, first_day
from lossmap.synthetic.pools import REGISTERS, Deck, Register
from lossmap.synthetic.rng import Rng, derive

GENERATOR_VERSION = "1.0.0"
NAMESPACE = uuid.UUID("5d4c7f1e-9a3b-4e62-8c0d-b7f3a1926e48")
TEAMS_AT_LEAST = 4
QUARTER_HOUR = 900
FIRST_QUARTER, LAST_QUARTER = 9 * 4, 16 * 4
KEEP_ATTENDEES = 3  # a session is never thinned below this for the sake of the attendance rule


@dataclass(frozen=True)
class Config:
    """What decides every byte of a generated corpus. ``length`` scales the word target of each meeting."""

    corpus_id: str = "lossmap-synthetic-1"
    seed: int = 4217
    meetings: int = 2000
    length: float = 1.0
    meetings_per_team: int = 40
    near_duplicate_rate: float = 0.15
    shard_size: int = 250

    def __post_init__(self) -> None:
        wrong = {
            "meetings": self.meetings < 1,
            "meetings_per_team": self.meetings_per_team < 1,
            "shard_size": self.shard_size < 1,
            "length": not 0 < self.length <= 10,
            "near_duplicate_rate": not 0 <= self.near_duplicate_rate <= 1,
        }
        for name in (name for name, bad in wrong.items() if bad):
            raise LossmapError(
                "a setting of the generator is out of range",
                where=name,
                observed=getattr(self, name),
                expected="a rate in [0, 1], a length in (0, 10], counts of at least 1",
                exit_code=2,
            )

    def query_counts(self) -> dict[str, int]:
        """Queries of each class, by the number of meetings (spec/harness 4.2)."""
        m = self.meetings
        return {
            "lookup": max(24, m // 4),
            "multi_file": max(12, m // 8),
            "aggregation": max(10, m // 12),
            "summarize": max(4, m // 25),
        }

    verbatim_fraction = 0.2


@dataclass(frozen=True)
class Person:
    speaker_id: str
    name: str
    role: str

    @property
    def first_name(self) -> str:
        return self.name.split(" ", 1)[0]


@dataclass(frozen=True)
class Topic:
    """``kind`` is component or project; the name is a proper name in either case."""

    topic_id: str
    name: str
    kind: str


@dataclass(frozen=True)
class Team:
    """The first of ``roster`` chairs every session; first names are unique within a roster."""

    team_id: str
    label: str
    division: str
    roster: tuple[Person, ...]
    topics: tuple[Topic, ...]
    metrics: tuple[str, ...]


@dataclass(frozen=True)
class Series:
    series_id: str
    team_id: str
    kind: str
    register: str
    sessions: tuple[str, ...]


@dataclass(frozen=True)
class Session:
    """One meeting. ``index`` counts from 1 in its series; ``attendees`` begins with the chair."""

    key: str
    file_uuid: str
    title: str
    team_id: str
    series_id: str
    index: int
    date: str
    start_second_of_day: int
    cluster: str | None
    agenda: tuple[str, ...]
    attendees: tuple[Person, ...]


@dataclass(frozen=True)
class PlantTurn:
    """``anchor`` is a substring of ``text`` that nothing may split or alter."""

    text: str
    anchor: str | None = None


@dataclass(frozen=True)
class Plant:
    """Text that rules put into one session: two turns (set-up and answer) by two people, or one turn."""

    plant_id: str
    session: str
    turns: tuple[PlantTurn, ...]


@dataclass(frozen=True)
class World:
    config: Config
    teams: tuple[Team, ...]
    series: tuple[Series, ...]
    sessions: tuple[Session, ...]

    @cached_property
    def _lookup(self) -> dict[str, dict[str, object]]:
        return {
            "team": {team.team_id: team for team in self.teams},
            "series": {series.series_id: series for series in self.series},
            "session": {session.key: session for session in self.sessions},
            "topic": {topic.topic_id: topic for team in self.teams for topic in team.topics},
            "person": {person.speaker_id: person for team in self.teams for person in team.roster},
        }

    def team(self, team_id: str) -> Team:
        return self._lookup["team"][team_id]  # type: ignore[return-value]

    def series_of(self, series_id: str) -> Series:
        return self._lookup["series"][series_id]  # type: ignore[return-value]

    def session(self, key: str) -> Session:
        return self._lookup["session"][key]  # type: ignore[return-value]

    def topic(self, topic_id: str) -> Topic:
        return self._lookup["topic"][topic_id]  # type: ignore[return-value]

    def person(self, speaker_id: str) -> Person:
        return self._lookup["person"][speaker_id]  # type: ignore[return-value]


def build(config: Config) -> World:
    """The world of ``config``, drawn from the sub-stream ``org``.

    Raises LossmapError where a pool of names is exhausted.
    """
    rng = Rng(derive(config.seed, "org"))
    count = min(config.meetings, max(TEAMS_AT_LEAST, round(config.meetings / config.meetings_per_team)))
    teams = tuple(_teams(count, rng))
    series: list[Series] = []
    sessions: list[Session] = []
    for team, budget in zip(teams, _split(config.meetings, count), strict=True):
        for one, held in _series(config, team, budget, rng):
            series.append(one)
            sessions.extend(held)
    return World(config, teams, tuple(series), tuple(sessions))


def _split(total: int, parts: int) -> list[int]:
    """``total`` in ``parts`` even shares, the larger ones first."""
    return [total // parts + (part < total % parts) for part in range(parts)]


def _teams(count: int, rng: Rng) -> Iterator[Team]:
    words = pools.pools()
    people = Deck("people", pools.person_names(), rng)
    components = Deck("components", pools.component_names(), rng)
    projects = Deck("projects", pools.project_names(), rng)
    domains = Deck("team domains", pools.team_domains(), rng).numbered()
    for number in range(1, count + 1):
        team_id = f"T{number:03d}"
        kinds = ["component"] * rng.randint(4, 6) + ["project"] * rng.randint(2, 3)
        decks = {"component": components, "project": projects}
        yield Team(
            team_id=team_id,
            label=f"the {next(domains)} team",
            division=words["divisions"][(number - 1) % len(words["divisions"])],
            roster=_roster(team_id, people, rng),
            topics=tuple(
                Topic(f"{team_id}-C{place:02d}", decks[kind].deal(), kind) for place, kind in enumerate(kinds, 1)
            ),
            metrics=tuple(rng.sample(words["metrics"], 4)),
        )


def _roster(team_id: str, people: Deck, rng: Rng) -> tuple[Person, ...]:
    """7 to 14 people; a name whose first name is taken in this team goes unused."""
    size = rng.randint(7, 14)
    names: dict[str, str] = {}
    while len(names) < size:
        name = people.deal()
        names.setdefault(name.split(" ", 1)[0], name)
    roles = pools.pools()["roles"]
    return tuple(
        Person(f"{team_id}-P{place:02d}", name, rng.choice(roles)) for place, name in enumerate(names.values(), 1)
    )


def _series(config: Config, team: Team, budget: int, rng: Rng) -> Iterator[tuple[Series, list[Session]]]:
    """2 to 5 series of a team with an even share of its meetings; fewer where the meetings do not suffice."""
    kinds = [(kind, register) for register in REGISTERS.values() for kind in register.kinds]
    drawn = rng.sample(kinds, min(budget, rng.randint(2, 5)))
    for place, ((kind, register), share) in enumerate(zip(drawn, _split(budget, len(drawn)), strict=True), 1):
        series_id = f"{team.team_id}-S{place}"
        sessions = _strict_maximum(list(_sessions(config, team, series_id, kind, register, share, rng)))
        yield Series(series_id, team.team_id, kind, register.name, tuple(s.key for s in sessions)), sessions


def _sessions(
    config: Config, team: Team, series_id: str, kind: str, register: Register, count: int, rng: Rng
) -> Iterator[Session]:
    first = first_day(Rng(derive(config.seed, "start", series_id)))
    joins = [index > 0 and rng.random() < config.near_duplicate_rate for index in range(count)] + [False]
    head: Session | None = None
    for index, day in enumerate(days(first, count, register.cadence, rng), 1):
        key = f"{series_id}-{index:04d}"
        session = Session(
            key=key,
            file_uuid=str(uuid.uuid5(NAMESPACE, f"{config.corpus_id}:{key}")),
            title=f"{_title_case(team.label)} — {kind} #{index}",
            team_id=team.team_id,
            series_id=series_id,
            index=index,
            date=day.isoformat(),
            start_second_of_day=rng.randint(FIRST_QUARTER, LAST_QUARTER) * QUARTER_HOUR,
            cluster=f"near:{key}" if joins[index] else None,
            agenda=tuple(topic.topic_id for topic in rng.sample(team.topics, rng.randint(2, 4))),
            attendees=_attendees(team, register, rng),
        )
        if joins[index - 1] and head is not None:
            session = replace(session, cluster=head.cluster, agenda=head.agenda, attendees=head.attendees)
        else:
            head = session
        yield session


def _title_case(label: str) -> str:
    return " ".join(word[:1].upper() + word[1:] for word in label.split(" "))


def _attendees(team: Team, register: Register, rng: Rng) -> tuple[Person, ...]:
    """The chair and a sample of the others, in the order of the roster."""
    low, high = register.speakers
    size = rng.randint(min(low, len(team.roster)), min(high, len(team.roster)))
    others = {person.speaker_id for person in rng.sample(team.roster[1:], size - 1)}
    return team.roster[:1] + tuple(person for person in team.roster[1:] if person.speaker_id in others)


def _strict_maximum(sessions: list[Session]) -> list[Session]:
    """The sessions of a series with the chair alone present at all of them.

    Whoever else missed none is taken out of the last session with more than three attendees. One session ranks
    nobody, so a series of one stays as it is.
    """
    if len(sessions) < 2:
        return sessions
    chair = sessions[0].attendees[0]
    present = Counter(person for session in sessions for person in session.attendees)
    for person in [p for p, times in present.items() if times == len(sessions) and p != chair]:
        for place in range(len(sessions) - 1, -1, -1):
            attendees = sessions[place].attendees
            if len(attendees) > KEEP_ATTENDEES:
                left = tuple(other for other in attendees if other != person)
                sessions[place] = replace(sessions[place], attendees=left)
                break
    return sessions
