"""Word pools of the world and the two registers of its talk; names are drawn without replacement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

import yaml

from lossmap.errors import LossmapError
from lossmap.synthetic.rng import Rng

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Register:
    """Distributions of one manner of talk (spec/harness 4.4).

    ``words`` is the median of a lognormal with ``sigma``; ``speakers`` the least and most attendees; ``short_turns``
    the share of turns that are back-channels; fillers, hedges and false starts are probabilities a sentence boundary,
    a sentence and a turn; ``rate`` is words a second; ``cadence`` days between sessions.
    """

    name: str
    kinds: tuple[str, ...]
    words: float
    sigma: float
    speakers: tuple[int, int]
    short_turns: float
    filler: float
    hedge: float
    false_start: float
    rate: float
    cadence: int


INTERACTIVE = Register(
    "interactive",
    ("weekly check-in", "design walkthrough", "incident debrief", "sprint retro", "backlog grooming"),
    words=7000, sigma=0.45, speakers=(4, 9), short_turns=0.44, filler=0.045, hedge=0.22, false_start=0.07, rate=2.6,
    cadence=7,
)  # fmt: skip
FORMAL = Register(
    "formal",
    ("architecture council", "quarterly outlook", "supplier review", "change board", "steering group"),
    words=13000, sigma=0.35, speakers=(7, 12), short_turns=0.09, filler=0.001, hedge=0.03, false_start=0.0, rate=2.3,
    cadence=28,
)  # fmt: skip
REGISTERS = {register.name: register for register in (INTERACTIVE, FORMAL)}


@cache
def pools() -> dict[str, tuple[str, ...]]:
    """Every list of pools.yaml by its name."""
    document = yaml.safe_load((FOLDER / "pools.yaml").read_text(encoding="utf-8"))
    return {name: tuple(words) for name, words in document.items()}


def person_names() -> list[str]:
    words = pools()
    family = [begin + end for begin, end in product(words["family_begin"], words["family_end"])]
    return [f"{given} {name}" for given, name in product(words["given"], family)]


def component_names() -> list[str]:
    return _joined("component_first", "component_second", "component_third")


def project_names() -> list[str]:
    return _joined("project_first", "project_second")


def vendors() -> list[str]:
    return _joined("vendor_first", "vendor_second")


def team_domains() -> list[str]:
    return _joined("team_flavour", "team_area")


def _joined(*lists: str) -> list[str]:
    return [" ".join(parts) for parts in product(*(pools()[name] for name in lists))]


class Deck:
    """A shuffled pool dealt without replacement; ``what`` names it in the error of an empty one."""

    def __init__(self, what: str, items: Iterable[str], rng: Rng) -> None:
        self._what, self._items = what, rng.shuffle(list(items))
        self._size, self._rest = len(self._items), iter(self._items)

    def deal(self) -> str:
        for item in self._rest:
            return item
        raise LossmapError(
            "a pool of names is exhausted",
            where=self._what,
            observed=f"all {self._size} names are in use",
            expected="a free one",
            next_command="ask for fewer meetings, or add words to src/lossmap/synthetic/pools.yaml",
            exit_code=2,
        )

    def numbered(self) -> Iterator[str]:
        """The whole deck, then the same names again with the suffixes -2, -3 and so on."""
        round_ = 1
        while True:
            yield from (item if round_ == 1 else f"{item}-{round_}" for item in self._items)
            round_ += 1
