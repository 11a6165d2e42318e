"""Where phrases stand in turns: whole words in any case. A token of each phrase narrows what has to be read closely."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

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
        self._tokens = {phrase: TOKEN.findall(phrase.lower()) for phrase in sorted(set(phrases))}
        shared = Counter(token for tokens in self._tokens.values() for token in set(tokens))
        self._by_token: dict[str, list[str]] = defaultdict(list)
        for phrase, tokens in self._tokens.items():
            self._by_token[min(tokens, key=lambda token: (shared[token], -len(token), token))].append(phrase)
        self._patterns = {phrase: bounded(phrase) for phrase in self._tokens}

    def scan(self, turns: Sequence[str]) -> Hits:
        """Occurrences of the phrases in ``turns``, by turn."""
        present = self._by_token.keys() & set(TOKEN.findall("\n".join(turns).lower()))
        sought = sorted(phrase for token in present for phrase in self._by_token[token])
        found: Hits = {}
        for phrase in sought:
            if counter := Counter(dict(_count(self._patterns[phrase], turns))):
                found[phrase] = counter
        return found
