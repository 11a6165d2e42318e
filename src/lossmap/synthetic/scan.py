"""Where phrases stand in turns: whole words in any case. A token of each phrase narrows what has to be read closely."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

TOKEN = re.compile(r"\w+")

Hits = dict[str, Counter[int]]  # phrase -> turn -> occurrences


def bounded(phrase: str) -> re.Pattern[str]:
    """``phrase`` where no word character touches its ends."""
    return re.compile(rf"(?<!\w){re.escape(phrase)}(?!\w)", re.IGNORECASE)


def naive(turns: Sequence[str], phrases: Iterable[str]) -> Hits:
    """Every phrase sought in every turn: what ``Scanner`` must equal."""
    found = ((phrase, Counter(dict(_count(bounded(phrase), turns)))) for phrase in phrases)
    return {phrase: counter for phrase, counter in found if counter}


def _count(pattern: re.Pattern[str], turns: Sequence[str]) -> Iterator[tuple[int, int]]:
    for place, turn in enumerate(turns):
        if count := len(pattern.findall(turn)):
            yield place, count


class Scanner:
    """Phrases under the token that fewest of them share; only those are sought whose token stands in a meeting."""

    def __init__(self, phrases: Iterable[str]) -> None:
        tokens = {phrase: TOKEN.findall(phrase.lower()) for phrase in sorted(set(phrases))}
        shared = Counter(token for some in tokens.values() for token in set(some))
        self._by_token: dict[str, list[str]] = defaultdict(list)
        for phrase, some in tokens.items():
            self._by_token[min(some, key=lambda token: (shared[token], -len(token), token))].append(phrase)

    def scan(self, turns: Sequence[str]) -> Hits:
        """Occurrences of the phrases in ``turns``, by turn."""
        lowered = [turn.lower() for turn in turns]
        text = "\n".join(lowered)
        starts = [0, *accumulate(len(turn) + 1 for turn in lowered)]
        present = self._by_token.keys() & set(TOKEN.findall(text))
        found: Hits = {}
        for phrase in sorted(phrase for token in present for phrase in self._by_token[token]):
            if places := [bisect_right(starts, at) - 1 for at in _whole(text, phrase.lower())]:
                found[phrase] = Counter(places)
        return found


def _whole(text: str, phrase: str) -> Iterator[int]:
    """Where ``phrase`` begins in ``text`` with no word character at its ends, one after the other."""
    at = text.find(phrase)
    while at >= 0:
        end = at + len(phrase)
        whole = not _word(text[at - 1 : at]) and not _word(text[end : end + 1])
        if whole:
            yield at
        at = text.find(phrase, end if whole else at + 1)


def _word(character: str) -> bool:
    return character.isalnum() or character == "_"
