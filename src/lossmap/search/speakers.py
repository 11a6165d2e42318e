"""Which speakers a query names: what a filter on the speaker of a chunk is made of."""

from __future__ import annotations

import re
from collections.abc import Collection


def named(text: str, names: Collection[str]) -> tuple[str, ...]:
    """The ``names`` that stand in ``text``, sorted: whole words, in the same case, the longest where two overlap.

    Case is kept, since a role's name is a common word too: "Marketing" speaks, "marketing" is a subject.
    """
    if not names:
        return ()
    longest_first = "|".join(re.escape(name) for name in sorted(names, key=lambda name: (-len(name), name)))
    return tuple(sorted(set(re.findall(rf"(?<!\w)(?:{longest_first})(?!\w)", text))))
