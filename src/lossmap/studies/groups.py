"""What a cross-encoder is trained on: a claim, a passage that settles it, and passages that two legs rank high.

Mining reads frozen legs and judgements alone, so that the same groups come out wherever the legs are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest

import numpy as np

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.index import table, vectors
from lossmap.judge import qrels
from lossmap.layout import Layout
from lossmap.search import legs
from lossmap.studies import judging
from lossmap.studies.compare import meeting_of


@dataclass(frozen=True)
class Recipe:
    """``near`` negatives come from the first ``first`` of the interleaved list, ``far`` from what follows to the end.

    ``depth`` is that of each leg; ``held_out`` pages give no group and choose the checkpoint; ``groups`` are drawn.
    """

    near: int
    far: int
    first: int
    depth: int
    held_out: int
    groups: int
    seed: int


@dataclass(frozen=True)
class Group:
    """``passages``: the gold one first, then the negatives."""

    query: str
    passages: tuple[str, ...]


@dataclass(frozen=True)
class Pool:
    """One corpus over its index: rows are those of the chunk table, ``pages`` the clusters of claims."""

    query_ids: list[str]
    queries: list[str]
    pages: list[str]
    gold: list[frozenset[int]]
    lexical: list[list[int]]
    dense: list[list[int]]
    texts: list[str]
    doc_ids: list[str]
    page_of_row: list[str]
    qrels: Mapping[str, Mapping[str, int]]


def pool(at: Layout, key: str, depth: int) -> Pool:
    """The judged queries of corpus ``key`` with both frozen legs to ``depth``."""
    corpus, rows = judging.load(at, key), table.load(at.index_folder)
    judged = qrels.grade(corpus.coverage).qrels
    texts = {query.query_id: query.text for query in corpus.queries}
    ids = table.doc_ids(rows)
    row_of = {doc_id: row for row, doc_id in enumerate(ids)}
    asked = [query.query_id for query in vectors.queries(at)]
    places = [place for place, query_id in enumerate(asked) if query_id in judged]
    found = [legs.of_index(at, name) for name in ("bm25", "exact")]
    for leg in found:
        _require_same(at, leg.query_ids, asked)
    lexical, dense = ([leg.top(place, depth) for place in places] for leg in found)
    kept = [asked[place] for place in places]
    pages = [meeting_of(query_id).partition(":")[2] for query_id in kept]
    return Pool(
        kept, [texts[q] for q in kept], pages,
        [frozenset(row_of[doc] for doc in judged[q]) for q in kept],
        lexical, dense, [row.text for row in rows], ids,
        _pages_of([row.meeting_id for row in rows], set(pages)), judged,
    )  # fmt: skip


def _require_same(at: Layout, frozen: Sequence[str], asked: Sequence[str]) -> None:
    if list(frozen) != list(asked):
        raise LossmapError(
            "a frozen leg holds other queries than the corpus",
            where=at.leg("bm25"),
            observed=f"{len(frozen)} queries",
            expected=f"{len(asked)}",
            next_command=f"./run {at.leg('bm25').relative_to(at.root)} --config scale={at.scale}",
        )


def _pages_of(meetings: Sequence[str], pages: set[str]) -> list[str]:
    """The page of each document: itself, or what stands before its number; empty where no claim asks about it."""
    stems = [meeting if meeting in pages else meeting.rpartition("-")[0] for meeting in meetings]
    return [stem if stem in pages else "" for stem in stems]


def held_out(pool: Pool, recipe: Recipe) -> frozenset[str]:
    """Pages whose claims choose the checkpoint: drawn by the seed from the sorted pages."""
    pages = sorted(set(pool.pages))
    if recipe.held_out >= len(pages):
        raise LossmapError(
            "more pages are held out than there are", observed=recipe.held_out, expected=f"fewer than {len(pages)}",
            next_command="correct held_out in workflow/config/rerankers.yaml",
        )  # fmt: skip
    rng = np.random.default_rng([recipe.seed, 0])
    return frozenset(pages[i] for i in rng.permutation(len(pages))[: recipe.held_out])


def interleaved(one: Sequence[int], other: Sequence[int]) -> list[int]:
    """Rows of two rankings in turn, each once."""
    turns = zip_longest(one, other)
    return list(dict.fromkeys(row for pair in turns for row in pair if row is not None))


def candidates(pool: Pool, query: int, open_pages: set[str]) -> list[int]:
    """Rows that may be negatives of a query, best first.

    Only pages that training claims ask about: a passage of a held-out page, or of the test set that shares the pool,
    would otherwise be learnt as one that settles nothing.
    """
    ranked = interleaved(pool.lexical[query], pool.dense[query])
    return [row for row in ranked if row not in pool.gold[query] and pool.page_of_row[row] in open_pages]


def negatives(ranked: Sequence[int], recipe: Recipe, rng: np.random.Generator) -> list[int]:
    """``near`` of the first and ``far`` of the rest; what one side lacks the other gives; fewer if both are short."""
    near, far = list(ranked[: recipe.first]), list(ranked[recipe.first :])
    wanted = recipe.near + recipe.far
    from_far = min(len(far), max(recipe.far, wanted - len(near)))
    from_near = min(len(near), wanted - from_far)
    drawn = [rng.choice(len(part), size, replace=False) for part, size in ((near, from_near), (far, from_far))]
    return [near[i] for i in drawn[0]] + [far[i] for i in drawn[1]]


def mine(pool: Pool, recipe: Recipe) -> Iterator[Group]:
    """``recipe.groups`` groups, epoch by epoch, each epoch in a new order with new draws."""
    closed = held_out(pool, recipe)
    open_pages = set(pool.pages) - closed
    ranked = {i: candidates(pool, i, open_pages) for i, page in enumerate(pool.pages) if page in open_pages}
    usable = [i for i, rows in ranked.items() if len(rows) >= recipe.near + recipe.far]
    if not usable:
        raise LossmapError(
            "no query has enough negatives", observed=0, expected="at least one",
            next_command="deepen depth in workflow/config/rerankers.yaml",
        )  # fmt: skip
    for number in range(recipe.groups):
        epoch, place = divmod(number, len(usable))
        if place == 0:
            rng = np.random.default_rng([recipe.seed, 1 + epoch])
            order = rng.permutation(len(usable))
        query = usable[order[place]]
        gold = sorted(pool.gold[query])[rng.integers(len(pool.gold[query]))]
        rows = [gold, *negatives(ranked[query], recipe, rng)]
        yield Group(pool.queries[query], tuple(pool.texts[row] for row in rows))


def sha256(groups: Sequence[Group]) -> str:
    """What the model saw: query text and passage texts, in the order in which it saw them."""
    return canon.digest([asdict(group) for group in groups])
