"""The generator's one source of chance: SplitMix64 (Steele, Lea and Flood 2014), with named sub-streams.

Nothing here reads a clock, a locale, a hash seed or an order of sets; the same seed gives the same draws everywhere.
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import TypeVar

from lossmap.errors import LossmapError

T = TypeVar("T")
MASK = (1 << 64) - 1
GAMMA = 0x9E3779B97F4A7C15
MIX_1 = 0xBF58476D1CE4E5B9
MIX_2 = 0x94D049BB133111EB
UNIT = 1.0 / (1 << 53)


def derive(*parts: object) -> int:
    """The seed of a sub-stream: the 8-byte blake2b digest of the ``:``-joined parts, read big-endian."""
    name = ":".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")


class Rng:
    """A SplitMix64 stream; every method draws from it in the order of its calls."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed & MASK

    def next_u64(self) -> int:
        self._state = z = (self._state + GAMMA) & MASK
        z = ((z ^ (z >> 30)) * MIX_1) & MASK
        z = ((z ^ (z >> 27)) * MIX_2) & MASK
        return z ^ (z >> 31)

    def random(self) -> float:
        """A float in [0, 1) of 53 bits."""
        return (self.next_u64() >> 11) * UNIT

    def randint(self, low: int, high: int) -> int:
        """An integer from ``low`` to ``high``, both included, by modulo."""
        return low + self.next_u64() % (high - low + 1)

    def choice(self, items: Sequence[T]) -> T:
        return items[self.next_u64() % len(items)]

    def weighted(self, items: Sequence[T], weights: Sequence[float]) -> T:
        """One of ``items`` with probability proportional to its weight."""
        sums = list(accumulate(weights))
        return items[min(bisect_right(sums, self.random() * sums[-1]), len(items) - 1)]

    def shuffle(self, items: Sequence[T]) -> list[T]:
        """A shuffled copy (Fisher and Yates)."""
        out = list(items)
        for last in range(len(out) - 1, 0, -1):
            other = self.next_u64() % (last + 1)
            out[last], out[other] = out[other], out[last]
        return out

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """``count`` distinct items: the prefix of a shuffle. Raises LossmapError where there are fewer."""
        if count > len(items):
            raise LossmapError(
                "a pool of the generator is exhausted",
                observed=f"{len(items)} items left",
                expected=f"at least {count}",
                next_command="ask for fewer meetings, or add words to src/lossmap/synthetic/pools.yaml",
                exit_code=2,
            )
        return self.shuffle(items)[:count]

    def gauss(self) -> float:
        """A standard normal draw (Box and Muller 1958), the second value not kept."""
        radius = math.sqrt(-2.0 * math.log(1.0 - self.random()))
        return radius * math.cos(2.0 * math.pi * self.random())

    def lognormal(self, median: float, sigma: float, low: float, high: float) -> float:
        """exp of a normal around ln(median), clamped to [low, high]."""
        return min(high, max(low, median * math.exp(sigma * self.gauss())))
