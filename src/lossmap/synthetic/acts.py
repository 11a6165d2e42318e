"""The order of the talk: opening, items of the agenda in sequence, exchanges on each of them, closing."""

from __future__ import annotations

from itertools import accumulate

from lossmap.synthetic.pools import INTERACTIVE
from lossmap.synthetic.rng import Rng
from lossmap.synthetic.speech import Utterance, Voice
from lossmap.synthetic.world import Person, Topic

# How often an exchange is of each act, in talk that works and in talk that decides; ours, by ear.
WEIGHTS = {
    "interactive": {"report": 22, "ask": 24, "worry": 13, "task": 13, "propose": 12, "agree": 6, "aside": 3, "plan": 5},
    "formal": {"report": 30, "ask": 22, "worry": 16, "task": 9, "propose": 13, "agree": 4, "aside": 3, "plan": 3},
}
TONES, TONE_WEIGHTS = ("good", "bad", "plain"), (35, 30, 35)
FOLLOW_UP = {"interactive": 0.45, "formal": 0.5}  # a question about what was just said
EXTENDED = 0.35  # an interactive turn gets one more sentence (spec/harness 4.4)
EXTENDED_REPORT = 0.6  # a report goes on after each of its sentences, so that a few become stories
INTERACTIVE_MOST = 6
# Median number of sentences of a formal turn by act, and the spread of all of them; long reports exceed a chunk.
SENTENCES = {"report": 8.0, "answer": 5.0, "worry": 5.0, "propose": 5.0, "question": 2.5, "agree": 3.0}
SENTENCES_OTHER, SENTENCES_SIGMA, SENTENCES_MOST = 2.5, 0.55, 24
STORY = 0.12  # a further sentence is the beginning of a story of a few sentences about one thing instead
STORY_SENTENCES, STORY_INTERACTIVE = 3, 0.2
PLAIN = 0.5  # share of neutral sentences in a report of good or bad news
TURN_OF_TONE = 6  # from this length on, a formal report may also have news of the other kind
CLOSES = 0.6


class Cast:
    """Who speaks next: everybody has a share of the talk of their own, and nobody follows themselves."""

    def __init__(self, rng: Rng, people: tuple[Person, ...]) -> None:
        self._rng, self._people = rng, people
        self._sums = list(accumulate(0.35 + rng.random() for _ in people))

    def next(self, *but: Person) -> Person:
        while True:
            mark = self._rng.random() * self._sums[-1]
            place = next(i for i, total in enumerate(self._sums) if mark < total)
            if self._people[place] not in but:
                return self._people[place]


class Talk:
    """The exchanges of one meeting; the caller decides when to move on and when to stop."""

    def __init__(self, voice: Voice, rng: Rng) -> None:
        self._voice, self._rng = voice, rng
        self._register = voice.register
        self._interactive = voice.register is INTERACTIVE
        self._cast = Cast(rng, voice.session.attendees)
        weights = WEIGHTS[self._register.name]
        self._acts, self._weights = list(weights), list(weights.values())
        self._begun = False  # whether an item was called before
        self._themes = {kind: kinds for kind in weights if (kinds := voice.kinds(kind)) and "q" not in kinds}

    def opening(self) -> list[Utterance]:
        chair = self._voice.chair
        self._voice.cast(chair, chair)
        return [Utterance(chair, [self._voice.say("open"), self._voice.say("agenda")])]

    def closing(self) -> list[Utterance]:
        chair = self._voice.chair
        self._voice.cast(chair, chair)
        return [Utterance(chair, [self._voice.say("close")])]

    def item(self, topic: Topic) -> list[Utterance]:
        """The chair calls the next item, and somebody reports on it."""
        voice, chair = self._voice, self._voice.chair
        block, self._begun = ("segue" if self._begun else "first"), True
        voice.refocus(topic)
        first = self._cast.next(chair)
        voice.cast(chair, first)
        call = Utterance(chair, [voice.say(block)], asks=True)
        voice.prev = chair
        return [call, self._report(first, chair)]

    def exchange(self, last: Person) -> list[Utterance]:
        """One act and, at times, a question that follows from it; nobody follows themselves."""
        voice = self._voice
        voice.refocus()
        act = self._rng.weighted(self._acts, self._weights)
        speaker = self._cast.next(last)
        voice.prev = last
        if act in ("report", "agree"):
            said = [self._report(speaker, last) if act == "report" else self._agree(speaker, last)]
        else:
            said = self._pair(act, speaker, self._cast.next(speaker))
        if act in ("report", "propose") and self._rng.random() < FOLLOW_UP[self._register.name]:
            teller = said[-1].speaker
            voice.prev = teller
            said += self._pair("ask", self._cast.next(teller), teller)
        return said

    def bystander(self, last: Person, main: Person) -> Utterance:
        """A back-channel: a word or two to the ``main`` speaker, of somebody who is neither that nor the ``last``."""
        voice = self._voice
        speaker = self._cast.next(last, main)
        voice.prev = main  # who may have spoken a plant, of which the voice knows nothing
        voice.cast(speaker, main)
        rare = self._rng.random() < 0.45
        return Utterance(speaker, [voice.say("backchannel.rare" if rare else "backchannel.common")])

    def two(self, last: Person) -> tuple[Person, Person]:
        """Two attendees, the first of whom did not speak last."""
        first = self._cast.next(last)
        return first, self._cast.next(first)

    def _report(self, speaker: Person, you: Person) -> Utterance:
        voice = self._voice
        voice.cast(speaker, you)
        tone = self._rng.weighted(TONES, TONE_WEIGHTS)
        return Utterance(speaker, [voice.say(f"report.{tone}"), *self._more("report", tone)])

    def _agree(self, speaker: Person, prev: Person) -> Utterance:
        self._voice.cast(speaker, prev)
        return Utterance(speaker, [self._voice.say("agree"), *self._more("agree", "plain")])

    def _pair(self, act: str, speaker: Person, you: Person) -> list[Utterance]:
        """A question and its answer, or another pair of turns that belong together."""
        voice = self._voice
        path = f"{act}.{self._rng.choice(self._themes[act])}" if act in self._themes else act
        voice.cast(speaker, you)
        ahead = self._more("question", "plain") if act == "ask" and not self._interactive else []
        first = Utterance(speaker, [*ahead, voice.say(f"{path}.q"), *self._after(act)], asks=True)
        voice.prev = speaker
        voice.cast(you, speaker)
        kind = {"ask": "answer", "worry": "answer"}.get(act, act)
        later = [] if act == "aside" else self._more(kind, "plain")
        second = Utterance(you, [voice.say(f"{path}.a"), *later])
        voice.prev = you
        return [first, second]

    def _after(self, act: str) -> list[str]:
        """What the first of a pair adds: reasons for a worry or a proposal, nothing behind a question."""
        if act == "worry":
            return self._more(act, "bad")
        return self._more(act, "plain") if act == "propose" and not self._interactive else []

    def _more(self, act: str, tone: str) -> list[str]:
        rng = self._rng
        if self._interactive:
            said = [self._voice.say(f"more.{tone}") for _ in range(self._goes_on(act))]
            if act == "report" and rng.random() < STORY_INTERACTIVE:
                said.insert(0, self._voice.say(f"story.{tone}"))
            return said
        median = SENTENCES.get(act, SENTENCES_OTHER)
        count = round(rng.lognormal(median, SENTENCES_SIGMA, 1, SENTENCES_MOST)) - 1
        return self._elaborate(count, tone, act == "report")

    def _goes_on(self, act: str) -> int:
        """Further sentences of an interactive turn."""
        if act != "report":
            return int(self._rng.random() < EXTENDED)
        count = 0
        while count < INTERACTIVE_MOST and self._rng.random() < EXTENDED_REPORT:
            count += 1
        return count

    def _elaborate(self, count: int, tone: str, report: bool) -> list[str]:
        """``count`` further formal sentences; a long report of one tone may turn to the other half-way."""
        voice, rng = self._voice, self._rng
        turn = count
        if report and tone != "plain" and count >= TURN_OF_TONE and rng.random() < 0.5:
            turn = rng.randint(count // 3, count - 2)
        said: list[str] = []
        place = 0
        while place < count:
            if place >= turn:
                tone, turn = ("bad" if tone == "good" else "good"), count
                said.append(voice.say(f"more.link_{tone}"))
            elif place == count - 1 and count > 2 and report and rng.random() < CLOSES:
                said.append(voice.say("more.close"))
            else:
                shade = "plain" if rng.random() < PLAIN else tone
                story = place + STORY_SENTENCES <= count and rng.random() < STORY
                said.append(voice.say(f"{'story' if story else 'more'}.{shade}"))
                place += (STORY_SENTENCES - 1) * story
            place += 1
        return said
