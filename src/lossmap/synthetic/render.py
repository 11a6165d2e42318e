"""One meeting: the talk until its word target, plants spread over it, and the times of its turns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lossmap.synthetic.acts import Talk
from lossmap.synthetic.disfluency import Disfluency
from lossmap.synthetic.pools import INTERACTIVE, REGISTERS, Register
from lossmap.synthetic.rng import Rng, derive
from lossmap.synthetic.speech import Utterance, Voice
from lossmap.synthetic.world import Person, Plant, Session, World

WORDS_LEAST, WORDS_MOST = 700, 45_000
PLANTS_FROM, PLANTS_TO = 0.08, 0.92
SLOT_SHARE = 0.6  # a plant falls into the first 60 % of its slot, so that two never meet
BACKCHANNELS_AT_ONCE = 2
SECONDS_LEAST, PAUSE, OVERLAP, STEP = 0.6, 1.4, 0.35, 0.25

Positions = dict[str, tuple[int, int]]


class Floor:
    """The turns so far; back-channels fall due after each of them and wait until a question has its answer."""

    def __init__(self, talk: Talk, disfluency: Disfluency, rng: Rng, short_turns: float, chair: Person) -> None:
        self._talk, self._disfluency, self._rng = talk, disfluency, rng
        self._odds = short_turns / (1.0 - short_turns)
        self._due = 0
        self.turns: list[tuple[Person, str, int]] = []
        self.words = 0
        self.last = self.main = chair

    def hear(self, utterances: Iterable[Utterance], last: bool = False) -> None:
        for utterance in utterances:
            self.add(utterance.speaker, self._disfluency.speak(utterance.sentences))
            if not utterance.asks and not last:
                self.murmur()

    def plant(self, plant: Plant) -> tuple[int, int]:
        """The turns of ``plant`` one after the other, by two people; their first and last index."""
        first = len(self.turns)
        speaker, other = self._talk.two(self.last)
        for turn in plant.turns:
            self.add(speaker, self._disfluency.plant(turn.text, turn.anchor))
            speaker, other = other, speaker
        end = len(self.turns) - 1
        self.murmur()
        return first, end

    def add(self, speaker: Person, text: str) -> None:
        count = text.count(" ") + 1
        self.turns.append((speaker, text, count))
        self.words += count
        self.last = self.main = speaker
        self._due += self._rng.random() < self._odds

    def murmur(self) -> None:
        """The back-channels that are due, a few at once at most (spec/harness 4.4: p = f / (1 - f) a turn)."""
        for _ in range(min(self._due, BACKCHANNELS_AT_ONCE)):
            said = self._talk.bystander(self.last, self.main)
            self.turns.append((said.speaker, said.sentences[0], said.sentences[0].count(" ") + 1))
            self.words += self.turns[-1][2]
            self.last = said.speaker
            self._due -= 1


def render(world: World, session: Session, plants: Iterable[Plant] = ()) -> tuple[dict[str, Any], Positions]:
    """The row of ``session`` and, by plant id, the first and last turn index of each of ``plants``.

    Streams ``render:<key>`` and ``timing:<key>``: no meeting depends on another, or on the order of rendering.
    """
    rng = Rng(derive(world.config.seed, "render", session.key))
    voice = Voice(rng, world, session)
    register, length = voice.register, world.config.length
    target = rng.lognormal(register.words * length, register.sigma, WORDS_LEAST * length, WORDS_MOST * length)
    talk = Talk(voice, rng)
    floor = Floor(talk, Disfluency(rng, register), rng, register.short_turns, voice.chair)
    positions = _hold(floor, talk, voice, rng, target, list(plants))
    return _row(world, session, floor), positions


def _hold(floor: Floor, talk: Talk, voice: Voice, rng: Rng, target: float, plants: list[Plant]) -> Positions:
    """The meeting itself: opening, items, exchanges, plants at their word thresholds, closing."""
    positions: Positions = {}
    waiting = _thresholds(rng, target, plants)
    items = _items(rng, target, len(voice.agenda))
    called = 0
    floor.hear(talk.opening())
    while floor.words < target or waiting or called < len(items):
        if called < len(items) and floor.words >= items[called]:
            floor.hear(talk.item(voice.agenda[called]))
            called += 1
        elif waiting and floor.words >= waiting[0][0]:
            plant = waiting.pop(0)[1]
            positions[plant.plant_id] = floor.plant(plant)
        else:
            floor.hear(talk.exchange(floor.main))
    floor.hear(talk.closing(), last=True)
    return positions


def _thresholds(rng: Rng, target: float, plants: list[Plant]) -> list[tuple[float, Plant]]:
    """Plants in random order, each at a word count within its even slot of the middle of the meeting."""
    order = rng.shuffle(plants)
    width = (PLANTS_TO - PLANTS_FROM) / max(1, len(order))
    return [
        (target * (PLANTS_FROM + width * (slot + SLOT_SHARE * rng.random())), plant) for slot, plant in enumerate(order)
    ]


def _items(rng: Rng, target: float, count: int) -> list[float]:
    """Word counts at which the items of the agenda begin; their shares of the meeting differ."""
    shares = [0.5 + rng.random() for _ in range(count)]
    return [target * 0.97 * sum(shares[:place]) / sum(shares) for place in range(count)]


def _row(world: World, session: Session, floor: Floor) -> dict[str, Any]:
    series, team = world.series_of(session.series_id), world.team(session.team_id)
    turns = _timed(world, session, REGISTERS[series.register], floor)
    return {
        "agenda": [world.topic(topic_id).name for topic_id in session.agenda],
        "corpus_id": world.config.corpus_id,
        "date": session.date,
        "division": team.division,
        "duration_seconds": max(turn["end"] for turn in turns),
        "file_uuid": session.file_uuid,
        "meeting_key": session.key,
        "near_duplicate_cluster": session.cluster,
        "register": series.register,
        "series_id": session.series_id,
        "series_kind": series.kind,
        "session_index": session.index,
        "speakers": [{"speaker_id": p.speaker_id, "name": p.name, "role": p.role} for p in session.attendees],
        "start_second_of_day": session.start_second_of_day,
        "team_id": session.team_id,
        "team_label": team.label,
        "title": session.title,
        "turn_count": len(turns),
        "turns": turns,
        "word_count": floor.words,
    }


def _timed(world: World, session: Session, register: Register, floor: Floor) -> list[dict[str, Any]]:
    """Turns with start and end in seconds, two decimals; starts never go back (spec/harness 4.4)."""
    rng = Rng(derive(world.config.seed, "timing", session.key))
    overlap = OVERLAP if register is INTERACTIVE else 0.0
    clock, last, turns = 0.0, -STEP, []
    for index, (speaker, text, words) in enumerate(floor.turns):
        seconds = max(SECONDS_LEAST, words / register.rate) * (0.85 + 0.3 * rng.random())
        start = round(max(clock + PAUSE * rng.random() - overlap, last + STEP, 0.0), 2)
        end = round(start + seconds, 2)
        turns.append(
            {
                "content": text,
                "end": end,
                "index": index,
                "speaker": speaker.name,
                "speaker_id": speaker.speaker_id,
                "start": start,
            }
        )
        clock, last = end, start
    return turns
