"""Rankings made comparable: one total order, scores that only say the rank, and the TREC run file.

trec_eval breaks ties by document id, descending, and reads scores in single precision: with raw scores the naming of
documents alone can move a measure. So ties are broken here, by what a document is, and trec_eval never sees one.
"""

from __future__ import annotations

import gzip
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from lossmap import canon
from lossmap.errors import LossmapError

Ranking = list[tuple[str, float]]
Run = dict[str, Ranking]
Identity = tuple[str, str, int]

DIGEST = "_digest"


@lru_cache(maxsize=1 << 18)
def identity(doc_id: str) -> Identity:
    """(doc_type, file_uuid, chunk_index) of ``{uuid}_{i}`` or ``{uuid}_digest_{n}``; a digest has index -1 - n."""
    head, _, number = doc_id.rpartition("_")
    if not head or not number.isdecimal():
        raise LossmapError(
            "a document id follows no known convention",
            where=doc_id,
            expected="{file_uuid}_{chunk_index} or {file_uuid}_digest_{section}",
        )
    if head.endswith(DIGEST):
        return "digest", head.removesuffix(DIGEST), -1 - int(number)
    return "chunk", head, int(number)


def normalise(
    ranking: Sequence[tuple[str, float]],
    preserve_order: bool = False,
    of: Callable[[str], Identity] = identity,
) -> Ranking:
    """``ranking`` by (-score, doc_type, file_uuid, chunk_index), re-scored n, n - 1, ..., 1.

    ``preserve_order`` keeps the given order (lists whose position is their score). Raises on a document that occurs
    twice and on a score that is not a number.
    """
    if len({doc for doc, _ in ranking}) != len(ranking):
        raise LossmapError("a ranking holds a document twice", observed=f"{len(ranking)} rows", where=ranking[0][0])
    if not preserve_order:
        if any(math.isnan(score) for _, score in ranking):
            raise LossmapError("a ranking holds a score that is not a number", where=ranking[0][0])
        ranking = sorted(ranking, key=lambda row: (-row[1], *of(row[0])))
    return [(doc, float(len(ranking) - place)) for place, (doc, _) in enumerate(ranking)]


def normalise_run(
    run: Mapping[str, Sequence[tuple[str, float]]],
    preserve_order: bool = False,
    of: Callable[[str], Identity] = identity,
) -> Run:
    return {query_id: normalise(run[query_id], preserve_order, of) for query_id in sorted(run)}


def write_run(path: Path, run: Mapping[str, Ranking], tag: str) -> None:
    """TREC run of a normalised run, gzipped: ``query Q0 document rank score tag``, ranks from 1."""
    with canon.gzip_atomic(path) as text:
        for query_id, ranking in sorted(run.items()):
            text.writelines(
                f"{query_id} Q0 {doc} {rank} {score!r} {tag}\n" for rank, (doc, score) in enumerate(ranking, 1)
            )


def read_run(path: Path) -> Run:
    """The run of a file of :func:`write_run`, by rank. The format has no line for an empty ranking, so it is absent."""
    found: dict[str, list[tuple[int, str, float]]] = defaultdict(list)
    with gzip.open(path, "rt", encoding="utf-8") as text:
        for row in text:
            query_id, _, doc, rank, score, _ = row.split()
            found[query_id].append((int(rank), doc, float(score)))
    return {query_id: [(doc, score) for _, doc, score in sorted(rows)] for query_id, rows in found.items()}
