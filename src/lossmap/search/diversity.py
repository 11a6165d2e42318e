"""Turns about the files: what keeps one long recording from filling a prompt (spec/harness 8)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")


def diversity_sample(
    items: Sequence[Item], file_of: Callable[[Item], Hashable], per_file: int, cap: int | None = None
) -> list[Item]:
    """At most ``cap`` of ``items`` (all for None), one a file and round, at most ``per_file`` of each.

    Files take turns in the order in which ``items`` first names them; inside a file the order stays. What a smaller cap
    gives is the beginning of what a larger one gives.
    """
    by_file: dict[Hashable, list[Item]] = defaultdict(list)
    for item in items:
        by_file[file_of(item)].append(item)
    turns = (mine[turn] for turn in range(per_file) for mine in by_file.values() if turn < len(mine))
    return list(islice(turns, cap))
