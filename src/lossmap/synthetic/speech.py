"""Who says what: exchanges of one to three turns about the topic at hand, in one of two registers.

Project names are always followed by punctuation or by "is" ("isn't"), "was", "has", "side" or "thread", so that no
ordinary talk contains a phrase that rules.py plants around a project name. Nothing here writes a digit or a full name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lossmap.synthetic import grammar
from lossmap.synthetic.grammar import Pick, Slot, Template, Thing
from lossmap.synthetic.pools import REGISTERS, pools
from lossmap.synthetic.rng import Rng
from lossmap.synthetic.world import Person, Session, Team, Topic, World

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
NUMBERS = ("no", "one", "two", "three", "four", "five", "six")
FRESH = 0.15  # share of secondary things that are not among those of the segment
KEPT = 0.5  # share of secondary things that are the one mentioned last
FOCUS_ONES, FOCUS_MANYS = 5, 3


@dataclass(frozen=True)
class Utterance:
    """``sentences`` of one speaker; ``asks`` where the next utterance replies to it."""

    speaker: Person
    sentences: list[str]
    asks: bool = False


class Voice:
    """Fills templates for one meeting: remembers who speaks to whom and what the talk is about."""

    def __init__(self, rng: Rng, world: World, session: Session) -> None:
        self.rng, self.session = rng, session
        self.team: Team = world.team(session.team_id)
        self.register = REGISTERS[world.series_of(session.series_id).register]
        self.agenda = [world.topic(topic_id) for topic_id in session.agenda]
        self.topic: Topic = self.agenda[0]
        self.chair = session.attendees[0]
        self.speaker = self.you = self.prev = self.chair
        self._slots: dict[str, Callable[[], str]] = {
            name.removeprefix("slot_"): getattr(self, name) for name in dir(self) if name.startswith("slot_")
        }
        self._templates = grammar.templates(self.register.name, self.slots)
        self._decks: dict[str, list[int]] = {}
        self._said: dict[str, int] = {}
        self._lexicon = grammar.lexicon()
        self._ones = rng.sample(self._lexicon.ones, FOCUS_ONES)
        self._manys = rng.sample(self._lexicon.manys, FOCUS_MANYS)
        self._thing, self._second, self._plural = self._ones[0], self._ones[1], self._manys[0]
        self._turn, self._unnamed = 0, True
        self._verb: tuple[str, str, str] = self._thing.verbs[0]
        self._day = 0
        self._absent = [person for person in self.team.roster if person not in session.attendees]
        self._name = self._peer = self.chair
        self._named: list[str] = []
        self._mentioned, self._metric = [self._thing], ""

    @property
    def slots(self) -> frozenset[str]:
        """The names that templates may use beside the blocks of phrases.yaml."""
        return frozenset(self._slots)

    def kinds(self, prefix: str) -> list[str]:
        """The names one level below ``prefix``, in the order of the file."""
        depth = prefix.count(".") + 1
        names = [path.split(".")[depth] for path in self._templates if path.startswith(prefix + ".")]
        return list(dict.fromkeys(names))

    def refocus(self, topic: Topic | None = None) -> None:
        """Another exchange: one thing leaves the talk and one comes in; all of them with a new ``topic``."""
        rng = self.rng
        if topic is not None:
            self.topic, self._unnamed = topic, True
            self._ones = rng.sample(self._lexicon.ones, FOCUS_ONES)
            self._manys = rng.sample(self._lexicon.manys, FOCUS_MANYS)
        self._ones = self._ones[1:] + [self._other_than(self._lexicon.ones, self._ones)]
        if rng.next_u64() & 1:
            self._manys = self._manys[1:] + [self._other_than(self._lexicon.manys, self._manys)]
        self._thing = self._ones[0] if rng.next_u64() & 1 else self._ones[1]
        self._verb = rng.choice(self._thing.verbs)

    def _other_than(self, pool: tuple[Thing, ...], used: list[Thing]) -> Thing:
        thing = self.rng.choice(pool)
        while thing in used:
            thing = self.rng.choice(pool)
        return thing

    def cast(self, speaker: Person, you: Person) -> None:
        """The next sentences are those of ``speaker`` to ``you``; the names they mention are those of others."""
        self.speaker, self.you = speaker, you
        present = [person for person in self.session.attendees if person not in (speaker, you)]
        pool = present if len(present) > 1 else present + self._absent
        self._name, self._peer = self.rng.sample(pool, 2)

    def say(self, path: str) -> str:
        """A sentence, or a few, from the templates at ``path``; none comes again before all of them have."""
        template = self._deal(path)
        out: list[str] = []
        self._named = [self._name.first_name, self._peer.first_name]
        self._mentioned, self._metric = [self._thing], ""
        self._expand(template, out)
        text = "".join(out).replace("  ", " ").replace(" ,", ",").replace(" .", ".").replace(" ?", "?").lstrip()
        return text[:1].upper() + text[1:]

    def _deal(self, path: str) -> Template:
        options = self._templates[path]
        while True:
            deck = self._decks.get(path)
            if not deck:
                deck = self._decks[path] = self.rng.shuffle(range(len(options)))
            template = options[deck.pop()]
            if self.speaker is not self.chair or not _addresses_chair(template):
                return template

    def _expand(self, template: Template, out: list[str]) -> None:
        for piece in template:
            if piece.__class__ is str:
                out.append(piece)
            elif piece.__class__ is Slot:
                out.append(self._slots[piece.name]())
            else:
                self._expand(self._pick(piece), out)  # type: ignore[arg-type]

    def _pick(self, pick: Pick) -> Template:
        """An option; that of a named block is never the one it gave last."""
        count = len(pick.options)
        index = self.rng.next_u64() % count
        if pick.name:
            if count > 1 and self._said.get(pick.name) == index:
                index = (index + 1) % count
            self._said[pick.name] = index
        return pick.options[index]

    def slot_topic(self) -> str:
        return self._mention(self.topic)

    def slot_topic_bare(self) -> str:
        return self._mention(self.topic, bare=True)

    def slot_other(self) -> str:
        return self._mention(self._other_topic())

    def slot_other_bare(self) -> str:
        return self._mention(self._other_topic(), bare=True)

    def _other_topic(self) -> Topic:
        return self.rng.choice([topic for topic in self.team.topics if topic is not self.topic])

    def _mention(self, topic: Topic, bare: bool = False) -> str:
        """The topic by its name or, once it was named, every other time by what sort of thing it is."""
        draw = self.rng.next_u64()
        short = topic is self.topic and not self._unnamed and draw & 1
        self._unnamed = self._unnamed and topic is not self.topic
        if topic.kind == "component":
            return f"the {topic.name.rsplit(' ', 1)[1].lower()}" if short else f"the {topic.name}"
        if short:
            return "the project"
        return topic.name if bare else f"the {topic.name} {'side' if draw & 2 else 'thread'}"

    def slot_agenda(self) -> str:
        names = [topic.name if topic.kind == "project" else f"the {topic.name}" for topic in self.agenda]
        return f"{', '.join(names[:-1])}, and {names[-1]}"

    def slot_count(self) -> str:
        return NUMBERS[len(self.agenda)]

    def slot_metric(self) -> str:
        metrics = self.team.metrics
        place = self.rng.next_u64() % len(metrics)
        self._metric = metrics[place] if metrics[place] != self._metric else metrics[place - 1]
        return self._metric

    def slot_role(self) -> str:
        return self.rng.choice(pools()["roles"])

    def slot_you(self) -> str:
        return self.you.first_name

    def slot_prev(self) -> str:
        return self.prev.first_name

    def slot_name(self) -> str:
        return self._name.first_name

    def slot_peer(self) -> str:
        return self._peer.first_name

    def slot_third(self) -> str:
        used = {self.speaker.first_name, self.you.first_name, *self._named}
        free = [person.first_name for person in self.session.attendees if person.first_name not in used]
        roles = [f"our {role}" for role in pools()["roles"] if f"our {role}" not in self._named]
        name = self.rng.choice(free or roles)
        self._named.append(name)
        return name

    def slot_day(self) -> str:
        self._day = self.rng.next_u64() % 5
        return DAYS[self._day]

    def slot_day2(self) -> str:
        return DAYS[(self._day + self.rng.randint(1, 4)) % 5]

    def slot_thing(self) -> str:
        return self._thing.text

    def slot_thing2(self) -> str:
        self._second = self._aside(self._second, self._ones, self._lexicon.ones)
        return self._second.text

    def slot_things(self) -> str:
        self._plural = self._aside(self._plural, self._manys, self._lexicon.manys)
        return self._plural.text

    def slot_things2(self) -> str:
        return next(thing for thing in self._manys if thing not in (self._plural, self._thing)).text

    def slot_same(self) -> str:
        return self._second.text

    def slot_sames(self) -> str:
        return self._plural.text

    def _aside(self, last: Thing, focus: list[Thing], pool: tuple[Thing, ...]) -> Thing:
        """The thing mentioned last, the next of the segment, or now and then a new one; never the main one.

        A sentence does not mention the same thing twice by chance.
        """
        draw = self.rng.random()
        used = self._mentioned
        if draw < KEPT and last not in used:
            thing = last
        elif draw > 1.0 - FRESH:
            thing = self._other_than(pool, [*focus, *used])
        else:
            self._turn += 1
            order = focus[self._turn % len(focus) :] + focus[: self._turn % len(focus)]
            thing = next((one for one in order if one not in used), None) or self._other_than(pool, used)
        used.append(thing)
        return thing

    def _action(self, form: int) -> str:
        """A verb phrase from one draw; one in four has its object in the plural."""
        draw = self.rng.next_u64()
        pool = self._lexicon.manys if draw & 3 == 0 else self._lexicon.ones
        thing = pool[(draw >> 2) % len(pool)]
        if thing is self._thing:
            thing = pool[((draw >> 2) + 1) % len(pool)]
        return f"{thing.verbs[(draw >> 32) % len(thing.verbs)][form]} {thing.text}"

    def slot_do(self) -> str:
        return self._action(0)

    def slot_doing(self) -> str:
        return self._action(1)

    def slot_done(self) -> str:
        return self._action(2)

    slot_do2, slot_doing2 = slot_do, slot_doing

    def slot_fix(self) -> str:
        return _with_it(self._verb[0])

    def slot_fixing(self) -> str:
        return _with_it(self._verb[1])

    def slot_fixed(self) -> str:
        return _with_it(self._verb[2])

    def slot_fixing_thing(self) -> str:
        return f"{self._verb[1]} {self._thing.text}"


def _with_it(verb: str) -> str:
    """ "clean up" takes its pronoun in the middle."""
    head, _, particle = verb.rpartition(" ")
    return f"{head} it {particle}" if particle in ("up", "out") and head else f"{verb} it"


def _addresses_chair(template: Template) -> bool:
    return any(piece.__class__ is str and "Chair" in piece for piece in template)
