"""Turns of a transcript against the word files of their speakers: which words a turn holds, and from when to when."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rapidfuzz.distance import Indel

from lossmap.corpora.nxt import EVENTS, Word
from lossmap.transcript import Meeting, Turn

ALIGNED_SHARE = 0.5  # of a turn's tokens
REAL_SHARE = 0.8  # of a meeting's turns
MINIMUM_SLOT = 0.01  # seconds
DECIMALS = 3
CLITICS = frozenset({"'s", "'m", "'re", "'ve", "'ll", "'d", "'t"})
_PIECES = re.compile(r"\{[^}]*\}|[^\s{]+")
_TOKEN = re.compile(r"[a-z0-9']*[a-z0-9][a-z0-9']*")


@dataclass
class Alignment:
    """``spans``: (start, end) in seconds of every turn with one matched token; ``places``: (speaker, position of the
    word in its file) -> turn; ``aligned``: turns with half of their tokens matched; ``tokens`` of all ``turns``."""

    turns: int
    spans: dict[int, tuple[float, float]] = field(default_factory=dict)
    places: dict[tuple[str, int], int] = field(default_factory=dict)
    aligned: set[int] = field(default_factory=set)
    tokens: int = 0
    matched: int = 0

    @property
    def rate(self) -> float:
        return len(self.aligned) / self.turns if self.turns else 0.0

    @property
    def real(self) -> bool:
        return self.rate >= REAL_SHARE


def tokens(text: str, events: bool) -> list[str]:
    """Lower-case runs of a-z, 0-9 and ' with clitics joined to what they follow; ``_`` joins (o_k, L_C_D_).

    Bracketed markers are dropped, or kept as tokens where they are ``events`` that the word files have too.
    """
    found: list[str] = []
    for piece in _PIECES.findall(text):
        if piece.startswith("{"):
            found += [piece] if events and piece[1:-1] in EVENTS else []
            continue
        for token in _TOKEN.findall(piece.lower().replace("_", "")):
            if token in CLITICS and found and not found[-1].startswith("{"):
                found[-1] += token
            else:
                found.append(token)
    return found


def align(meeting: Meeting, channels: Mapping[str, Sequence[Word]], events: bool) -> Alignment:
    """Every speaker's turns, as one token sequence, against the words of ``channels[speaker]``.

    A longest common subsequence (rapidfuzz's Indel opcodes) pairs the tokens; never the index of a turn, because
    transcript and word files cut the speech differently. Turns without text do not count.
    """
    spoken = [turn for turn in meeting.turns if turn.text.strip()]
    out = Alignment(len(spoken))
    by_speaker: dict[str, list[Turn]] = defaultdict(list)
    for turn in spoken:
        by_speaker[turn.speaker].append(turn)
    for speaker, turns in by_speaker.items():
        _align_speaker(out, speaker, turns, channels.get(speaker, ()), events)
    return out


def _align_speaker(out: Alignment, speaker: str, turns: Iterable[Turn], words: Sequence[Word], events: bool) -> None:
    said = [(token, turn.index) for turn in turns for token in tokens(turn.text, events)]
    heard = [(token, word) for word in words for token in tokens(word.text, events)]
    hits: Counter[int] = Counter()
    for i, j in pairs([token for token, _ in said], [token for token, _ in heard]):
        turn, word = said[i][1], heard[j][1]
        hits[turn] += 1
        out.places[speaker, word.position] = turn
        start, end = out.spans.get(turn, (word.start, word.end))
        out.spans[turn] = (min(start, word.start), max(end, word.end))
    sizes = Counter(turn for _, turn in said)
    out.aligned |= {turn for turn, size in sizes.items() if hits[turn] >= ALIGNED_SHARE * size}
    out.tokens += len(said)
    out.matched += sum(hits.values())


def pairs(a: Sequence[str], b: Sequence[str]) -> Iterable[tuple[int, int]]:
    """Positions (in ``a``, in ``b``) that a longest common subsequence of two token sequences pairs."""
    numbers: dict[str, int] = {}
    coded = [[numbers.setdefault(token, len(numbers)) for token in sequence] for sequence in (a, b)]
    for step in Indel.opcodes(*coded):
        if step.tag == "equal":
            yield from zip(range(step.src_start, step.src_end), range(step.dest_start, step.dest_end), strict=True)


def complete(meeting: Meeting, found: Alignment) -> tuple[list[tuple[int, float, float]], int]:
    """(turn, start, end) of every turn with text, and how many of them were interpolated.

    A straggler (a turn that is not aligned) takes an equal share of the gap between the timed turns around it, at
    least ``MINIMUM_SLOT``; so does one before the first or after the last timed turn, which has no gap to share.
    """
    spoken = [turn.index for turn in meeting.turns if turn.text.strip()]
    rows, waiting, clock = [], [], 0.0
    for turn in spoken:
        if turn not in found.aligned:
            waiting.append(turn)
            continue
        start, end = found.spans[turn]
        slot = max(MINIMUM_SLOT, (start - clock) / (len(waiting) or 1)) if rows else MINIMUM_SLOT
        rows += _slots(waiting, clock if rows else max(0.0, start - slot * len(waiting)), slot)
        rows.append((turn, round(start, DECIMALS), round(end, DECIMALS)))
        waiting, clock = [], end
    rows += _slots(waiting, clock, MINIMUM_SLOT)
    return rows, len(spoken) - len(found.aligned)


def _slots(turns: Sequence[int], clock: float, slot: float) -> list[tuple[int, float, float]]:
    edges = [round(clock + i * slot, DECIMALS) for i in range(len(turns) + 1)]
    return [(turn, edges[i], edges[i + 1]) for i, turn in enumerate(turns)]
