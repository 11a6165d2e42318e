"""The book of plants and questions while it is written: unique claims, unique phrases, and rows in every wording."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from lossmap.synthetic.anchors import Anchors
from lossmap.synthetic.frames import templates, wordings
from lossmap.synthetic.rng import Rng, derive
from lossmap.synthetic.wording import SUFFIX, Subject, surfaces
from lossmap.synthetic.world import Plant, PlantTurn, Series, Session, Topic, World

Row = dict[str, Any]


class Draft:
    """Collects plants, facts and queries; ``rng`` is the stream of the queries."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rng = Rng(derive(world.config.seed, "queries"))
        self.anchors = Anchors(world, Rng(derive(world.config.seed, "anchors")))
        self.plants: dict[str, list[Plant]] = defaultdict(list)
        self.facts: list[Row] = []
        self.queries: list[Row] = []
        self.claims: set[tuple[str, str]] = set()  # a topic belongs to one team, so (topic, aspect) is the triple
        self.phrases: set[str] = set()
        self.numbers: Counter[str] = Counter()

    def number(self, prefix: str, mark: str = "") -> str:
        """The next query id of ``prefix``; ``mark`` follows it without a count of its own."""
        self.numbers[prefix] += 1
        return f"{prefix}{mark}-{self.numbers[prefix]:05d}"

    def claim(self, session: Session, topic_ids: Iterable[str]) -> Row | None:
        """A free aspect of one of ``topic_ids`` with its value, taken; None where there is none."""
        free = [(t, a) for t in topic_ids for a in wordings()["aspects"] if (t, a) not in self.claims]
        for topic_id, aspect in self.rng.shuffle(free):
            if (anchor := self.anchors.deal(aspect, session)) is not None:
                self.claims.add((topic_id, aspect))
                topic = self.world.topic(topic_id)
                return {
                    "session": session.key,
                    "topic": topic.name,
                    "said": said(topic),
                    "aspect": aspect,
                    "anchor": anchor,
                }
        return None

    def phrase(self, table: str, field: str) -> Subject | None:
        """A free (project, phrase frame) of ``table`` as the ``field`` of a subject, taken."""
        projects = [t.name for team in self.world.teams for t in team.topics if t.kind == "project"]
        options = [Subject(topic=p, **{field: key}) for p in projects for key in wordings()[table]]  # type: ignore[arg-type]
        free = [subject for subject in options if subject.phrase not in self.phrases]
        if not free:
            return None
        chosen = self.rng.choice(free)
        self.phrases.add(chosen.phrase)
        return chosen

    def plant_fact(self, rule: str, query_id: str, claim: Row) -> None:
        """Two turns: a set-up, and an answer that carries the anchor."""
        texts = templates()["facts"][claim["aspect"]][self._register(claim["session"])]
        setup = self.rng.choice(texts["setup"]).format(topic=claim["said"])
        answer = self.rng.choice(texts["answer"]).format(anchor=claim["anchor"])
        turns = (PlantTurn(_sentence(setup)), PlantTurn(_sentence(answer), claim["anchor"]))
        self._plant(rule, query_id, {name: claim[name] for name in ("session", "topic", "aspect", "anchor")}, turns)

    def plant_phrase(self, rule: str, query_id: str, subject: Subject, session: str, times: int = 1) -> None:
        """``times`` turns of one session, each with the phrase of ``subject`` once."""
        table = "markers" if subject.marker else "deferrals"
        texts = templates()[table][self._register(session)]
        row = {"session": session, "topic": subject.topic, "aspect": subject.marker or subject.deferral}
        for text in self.rng.sample(texts, times):
            filled = _sentence(text.format(**{table[:-1]: subject.phrase}))
            self._plant(rule, query_id, {**row, "anchor": subject.phrase}, (PlantTurn(filled, subject.phrase),))

    def _plant(self, rule: str, query_id: str, row: Row, turns: tuple[PlantTurn, ...]) -> None:
        plant_id = f"P{len(self.facts) + 1:06d}"
        session = self.world.session(row["session"])
        self.plants[session.key].append(Plant(plant_id, session.key, turns))
        self.facts.append(
            {"plant_id": plant_id, "rule": rule, "file_uuid": session.file_uuid, "query": query_id, **row}
        )

    def ask(self, query_id: str, query_class: str, rule: str, subject: Subject, **fields: Any) -> None:
        """One row a wording. ``fields``: gold_files, answer, answer_kind, scored_on and what differs from nothing."""
        row = {"query_class": query_class, "rule": rule, "base_id": query_id, "topic": subject.topic or None,
               "components": [], "related_files": [], "team_id": None, "series_id": None, **fields}  # fmt: skip
        words = Rng(derive(self.world.config.seed, "queries", query_id))
        for surface, frame, text in surfaces(rule, subject, words):
            own = {"query_id": query_id + SUFFIX[surface], "surface": surface, "frame": frame, "text": text}
            self.queries.append({**row, **own})

    def place(self, series: Series) -> Row:
        return {"team_id": series.team_id, "series_id": series.series_id}

    def subject(self, series: Series, **fields: Any) -> Subject:
        """A subject in the ``series`` of its team."""
        return Subject(team=self.world.team(series.team_id).label, kind=series.kind, **fields)

    def _register(self, session: str) -> str:
        return self.world.series_of(self.world.session(session).series_id).register


def said(topic: Topic) -> str:
    """The name as it is spoken: a component takes an article, a project none."""
    return f"the {topic.name}" if topic.kind == "component" else topic.name


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
