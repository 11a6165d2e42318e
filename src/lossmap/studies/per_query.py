"""Values per query of an arm, read fast and once: a chapter reads hundreds of such files."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lossmap import canon
from lossmap.judge.evaluate import PER_QUERY_HEADER
from lossmap.judge.measures import NAMES
from lossmap.studies import compare
from lossmap.studies.compare import Arm

FILES = ("metrics.json", "per_query.csv.gz")
WIDTH = len(PER_QUERY_HEADER)
WRITTEN = sorted(NAMES)
"""The measures of a query in the order in which the file has them."""


def read(folder: Path) -> Arm:
    """As compare.read_arm, in a third of its time, and kept as long as the two files stay as they are."""
    if not all((folder / name).is_file() for name in FILES):
        return compare.read_arm(folder)
    stats = [(folder / name).stat() for name in FILES]
    return _read(folder, tuple((stat.st_mtime_ns, stat.st_size) for stat in stats))


@cache
def _read(folder: Path, _: tuple[tuple[int, int], ...]) -> Arm:
    document = canon.read_json(folder / "metrics.json")
    found = _values(folder / "per_query.csv.gz")
    promised = sum(row["queries"] for row in document["rows"] if row["query_class"] == "all")
    # Whatever is not as a rule writes it goes through the reader that says what is wrong.
    if found is None or len(found[0]) != promised:
        return compare.read_arm(folder)
    return Arm(folder, document, *found)


def _values(path: Path) -> tuple[tuple[str, ...], NDArray[np.float64]] | None:
    """Query ids and values (Q, len(NAMES)); None where the file is not whole, sorted and free of quotes."""
    text = gzip.decompress(path.read_bytes()).decode()
    cells = text.replace("\n", ",").split(",")
    if '"' in text or len(cells) % (WIDTH * len(NAMES)) != WIDTH + 1:
        return None
    names, measures, values = (cells[WIDTH + place : -1 : WIDTH] for place in (1, 2, 3))
    ids = names[:: len(NAMES)]
    whole = measures == WRITTEN * len(ids) and all(names[k :: len(NAMES)] == ids for k in range(len(NAMES)))
    if not ids or not whole or any(a >= b for a, b in zip(ids, ids[1:])):
        return None
    table = np.fromiter(map(float, values), float, len(values)).reshape(len(ids), len(NAMES))
    table = table[:, [WRITTEN.index(name) for name in NAMES]]
    table.setflags(write=False)
    return tuple(ids), table
