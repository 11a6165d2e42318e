"""Hedges, contractions, fillers and false starts of spontaneous speech, none of which touches a protected anchor."""

from __future__ import annotations

import math
import re

from lossmap.synthetic.pools import INTERACTIVE, Register
from lossmap.synthetic.rng import Rng

SHIELD = "\x00"  # stands for an anchor while fillers are placed: neither a letter nor a space
PLAIN_FILLERS = ("uh", "um", "er")  # the only ones in planted turns: no word of four letters joins the gold text
FILLERS = ("uh", "uh", "um", "um", "er", "you know", "like", "I mean")
LONG_FILLERS = ("you know", "like", "I mean")  # they stand before a small word; inside a name of things, "uh" does
SMALL = frozenset(
    ("the", "to", "that", "it", "we", "they", "a", "for", "on", "with", "in", "and", "but", "because", "so")
)
FORMAL_FILLERS = ("er", "um")
CONTRACTED = 0.75
HEDGES = {
    "interactive": ("I think", "I guess", "I mean,", "honestly,", "as far as I know,", "you know,", "basically,",
                    "to be fair,", "I suppose", "well,", "so", "actually,", "my feeling is that",
                    "maybe it is just me, but"),
    "formal": ("I believe that", "it seems to me that", "as I understand it,", "to my knowledge,", "in my view,"),
}  # fmt: skip
HEDGED = frozenset(("the", "we", "it", "that", "there", "this", "they", "nobody"))
RESTARTED = frozenset(
    (
        "we",
        "the",
        "it",
        "that",
        "there",
        "they",
        "so",
        "i",
        "if",
        "what",
        "when",
        "how",
        "can",
        "could",
        "is",
        "and",
        "but",
    )
    + ("my", "for", "it's", "i'm", "that's", "there's")
)
SHORT = (
    ("it is not", "it's not"), ("that is not", "that's not"), ("I would not", "I wouldn't"), ("I will not", "I won't"),
    ("do not", "don't"), ("does not", "doesn't"), ("did not", "didn't"), ("is not", "isn't"),
    ("was not", "wasn't"), ("were not", "weren't"), ("are not", "aren't"), ("have not", "haven't"),
    ("has not", "hasn't"),
    ("would not", "wouldn't"), ("could not", "couldn't"), ("should not", "shouldn't"), ("cannot", "can't"),
    ("will not", "won't"), ("it is", "it's"), ("that is", "that's"), ("there is", "there's"), ("what is", "what's"),
    ("I am", "I'm"), ("we are", "we're"), ("they are", "they're"), ("you are", "you're"), ("I will", "I'll"),
    ("we will", "we'll"), ("I would", "I'd"), ("let us", "let's"),
)  # fmt: skip
_SHORT = {long: short for long, short in SHORT} | {
    long[0].upper() + long[1:]: short[0].upper() + short[1:] for long, short in SHORT
}
_LONG = re.compile(r"\b(?:" + "|".join(_SHORT) + r")(?= [a-z])")
_STARTS = re.compile(r"(?<=[.?!] )[a-z]")


class Disfluency:
    """Turns sentences into speech of one register; fillers come at a rate per word across turns."""

    def __init__(self, rng: Rng, register: Register) -> None:
        self._rng, self._register = rng, register
        self._interactive = register is INTERACTIVE
        self._hedges = HEDGES[register.name]
        self._fillers = FILLERS if self._interactive else FORMAL_FILLERS
        self._scale = 1.0 / math.log(1.0 - register.filler)
        self._gap = self._next_gap()

    def speak(self, sentences: list[str]) -> str:
        """The text of an ordinary turn."""
        rng = self._rng
        said = [self._hedge(sentence) if rng.random() < self._register.hedge else sentence for sentence in sentences]
        text = _STARTS.sub(lambda match: match[0].upper(), " ".join(said))
        if self._interactive:
            text = _LONG.sub(lambda match: _SHORT[match[0]] if rng.random() < CONTRACTED else match[0], text)
        return self._filled(text, self._fillers)

    def plant(self, text: str, anchor: str | None) -> str:
        """A planted turn: its words, with at most short fillers and a false start outside of the anchor."""
        if anchor is None:
            return self._filled(text, PLAIN_FILLERS)
        return self._filled(text.replace(anchor, SHIELD), PLAIN_FILLERS).replace(SHIELD, anchor)

    def _hedge(self, sentence: str) -> str:
        if sentence[-1] != "." or sentence.split(" ", 1)[0].lower() not in HEDGED:
            return sentence
        hedge = self._rng.choice(self._hedges)
        if hedge.endswith(" that") and sentence.startswith("That "):
            return sentence
        return f"{hedge[0].upper()}{hedge[1:]} {sentence[0].lower()}{sentence[1:]}"

    def _filled(self, text: str, fillers: tuple[str, ...]) -> str:
        words = text.split(" ")
        count = len(words)
        if count > 3 and self._rng.random() < self._register.false_start:
            self._restart(words)
        while self._gap < count - 1:
            place = self._gap
            if place and _is_low(words[place - 1]) and words[place][:1].islower():
                filler = self._rng.choice(fillers)
                if filler in LONG_FILLERS and (words[place] not in SMALL or words[place - 1] == filler):
                    filler = PLAIN_FILLERS[0]
                words[place - 1] += ","
                words[place] = f"{filler}, {words[place]}"
                self._gap += self._next_gap()
            else:
                self._gap += 1
        self._gap = max(0, self._gap - count)
        return " ".join(words)

    def _restart(self, words: list[str]) -> None:
        """The first word or two said twice, where they are small words: "We have, we have to"."""
        first = words[0]
        if first.lower() not in RESTARTED:
            return
        again = first if first[0] == "I" and first.lower() in ("i", "i'm") else first[0].lower() + first[1:]
        if self._rng.next_u64() & 1 and _is_low(words[1]):
            words[0] = f"{first} {words[1]}, {again}"
        else:
            words[0] = f"{first}, {again}"

    def _next_gap(self) -> int:
        """Words until the next filler: geometric with the register's rate."""
        return 1 + int(math.log(1.0 - self._rng.random()) * self._scale)


def _is_low(word: str) -> bool:
    """A lower-case word without punctuation: part of no name, no number and no anchor."""
    return word.isalpha() and word.islower()
