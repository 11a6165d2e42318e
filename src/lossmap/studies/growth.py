"""One set of queries while the index grows: by distinct meetings, or by more sessions of one scenario."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lossmap.studies.lexical import Floats, Places
from lossmap.studies.whole import NAMES, SCENARIO, Material, Row, mean, scored, series

CURVE = ("R@1", "nDCG@10")
SEEDS = 8
STEPS = 8


def curves(material: Material) -> Row:
    """The same queries while the index grows, by distinct meetings or by more sessions of the scenario.

    ``scenario`` starts from the first session of every series; ``mixed`` has every second meeting of the other domains
    beside them. Order of growth: ``SEEDS`` shuffles, whose per-query means are what the intervals resample; ``low`` and
    ``high`` are the ends of the band over shuffles.
    """
    first = np.array([members[0] for members in series(material).values()], int)
    other = np.flatnonzero(material.domain != SCENARIO)
    sessions = np.setdiff1d(np.flatnonzero(material.domain == SCENARIO), first)
    document: Row = {"seeds": SEEDS, "points": [], "contrasts": [], "ends": []}
    for name, base, distinct in (("scenario", first, other), ("mixed", np.union1d(first, other[::2]), other[1::2])):
        _grow(material, document, name, np.sort(base), {"distinct": distinct, "duplicates": sessions})
    return document


def _grow(material: Material, document: Row, name: str, base: Places, pools: Mapping[str, Places]) -> None:
    """Add the points, contrasts and ends of one query set to ``document``."""
    asked = material.about(base)
    meetings = material.meetings(asked)
    common = min(map(len, pools.values()))
    grid = sorted({round(step * common / (STEPS - 1)) for step in range(STEPS)})
    grown: dict[tuple[str, int], Floats] = {}
    head = {**material.head, "set": name, "base": len(base)}
    for kind, pool in pools.items():
        for added in sorted({*grid, len(pool)}):
            runs = _shuffled(material, base, pool, added, asked)
            grown[kind, added] = runs.mean(axis=0)
            band = {f"{m}_{end}": float(pick(runs[:, :, c].mean(axis=1))) if len(asked) else None
                    for c, m in enumerate(CURVE) for end, pick in (("low", np.min), ("high", np.max))}  # fmt: skip
            at = {**head, "kind": kind, "added": added, "documents": len(base) + added, "shuffles": len(runs)}
            document["points"].append({**at, **scored(grown[kind, added], meetings, CURVE), **band})
        document["ends"].append(_end(head, kind, common, (grown[kind, 0], grown[kind, common]), meetings))
    for added in grid[1:]:
        more = grown["duplicates", added] - grown["distinct", added]
        document["contrasts"].append({**head, "added": added, **scored(more, meetings, CURVE)})
    pair = (grown["distinct", common], grown["duplicates", common])
    document["ends"].append(_end(head, "difference", common, pair, meetings))


def _end(head: Row, kind: str, added: int, pair: tuple[Floats, Floats], meetings: list[str]) -> Row:
    """What changes in a ``pair`` of values at the size that both kinds reach: from the base, or between the kinds."""
    start, end = (mean(values[:, 0]) for values in pair)
    factor = (head["base"] + added) / head["base"] if head["base"] else None
    row = scored(pair[1] - pair[0], meetings, CURVE)
    return {**head, "kind": kind, "added": added, "factor": factor, "start": start, "end": end, **row}


def _shuffled(material: Material, base: Places, pool: Places, added: int, asked: Places) -> Floats:
    """Values (shuffles, Q, len(CURVE)) with the first ``added`` of each shuffled ``pool``; none or all need one."""
    columns = [NAMES.index(name) for name in CURVE]
    seeds = range(SEEDS) if 0 < added < len(pool) else range(1)
    orders = [np.random.Generator(np.random.PCG64(seed)).permutation(pool)[:added] for seed in seeds]
    return np.array([material.values(np.union1d(base, order).astype(int), asked)[:, columns] for order in orders])
