"""Hits that only one leg found: how many stand in the top ten of a fusion, and what they are worth.

Two stories are told of geometric and harmonic means. A document that one leg lacks scores zero, so it is annihilated
(the published one); or the engine leaves the missing leg out together with its weight, so the document keeps the full
score of the leg that found it, and is favoured (spec/engine.md). The first predicts as few single-leg hits as there are
documents in both lists, the second more than under the arithmetic mean, which counts a missing leg as zero.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.index import table
from lossmap.judge import intervals, permutation, qrels
from lossmap.judge.measures import NAMES
from lossmap.layout import Layout
from lossmap.search import legs
from lossmap.studies import compare, judging, scores, stacks
from lossmap.studies.compare import Arm
from lossmap.studies.stacks import HEADLINE, Family, Floats

TOP = 10
NOTHING, NO_HIT, STRANGER = -1, -2, -3
"""No rows, and unlike each other: past the end of a list, past the end of a leg, a document of no chunk."""
REFERENCE = "arithmetic_mean"
Row = dict[str, Any]


@dataclass(frozen=True)
class Bench:
    """What every arm of one bench is read against: doc ids to rows, legs to their rows (Q, depth), relevant rows."""

    at: Layout
    rows: Mapping[str, int]
    relevant: Mapping[str, frozenset[int]]

    def top(self, path: Path, query_ids: Sequence[str]) -> NDArray[np.int64]:
        """Rows (Q, TOP) of the first TOP documents of a run, NOTHING where a list is shorter."""
        found = np.full((len(query_ids), TOP), NOTHING)
        place = {query_id: i for i, query_id in enumerate(query_ids)}
        cells = gzip.decompress(path.read_bytes()).decode().split()
        for query_id, document, rank in zip(cells[::6], cells[2::6], cells[3::6]):
            if int(rank) <= TOP and query_id in place:
                found[place[query_id], int(rank) - 1] = self.rows.get(document, STRANGER)
        return found

    def legs(self, arm: Arm, depth: int) -> list[NDArray[np.int64]]:
        """Rows (Q, depth) of the legs that an arm was fused from, NO_HIT after the last hit."""
        return [self._leg(arm, name, depth) for name in arm.document["arm"]["legs"]]

    def _leg(self, arm: Arm, name: str, depth: int) -> NDArray[np.int64]:
        frozen, digest = _frozen(self.at.leg(name))
        if digest != arm.document["legs"].get(name):
            raise _refusal(
                self.at, "a leg is not the one of the arm", arm, name, digest, arm.document["legs"].get(name)
            )
        if depth > frozen.rows.shape[1]:
            raise _refusal(self.at, "a leg was not frozen as deep as the arm", arm, name, frozen.rows.shape[1], depth)
        of = {query_id: i for i, query_id in enumerate(frozen.query_ids)}
        rows = frozen.rows[[of[query_id] for query_id in arm.query_ids], :depth].astype(np.int64)
        return np.where(rows < 0, NO_HIT, rows)


def _refusal(at: Layout, what: str, arm: Arm, leg: str, observed: object, expected: object) -> LossmapError:
    again = scores.again(at, arm.folder)
    where = f"{leg} of {arm.folder}"
    return LossmapError(what, where=where, observed=observed, expected=expected, next_command=again, exit_code=3)


@dataclass(frozen=True)
class Counts:
    """Of one arm, per query (Q,): rows of the top ten, of these found by one leg only (by the first; by the second),
    relevant ones, relevant single-leg ones, and documents that both legs hold at the arm's depth."""

    hits: Floats
    first: Floats
    second: Floats
    relevant: Floats
    relevant_single: Floats
    both: Floats

    @property
    def single(self) -> Floats:
        return self.first + self.second


def study(at: Layout, family: Family) -> dict[str, Any]:
    """The document: ``rows``, one a bench and hybrid arm of two legs, and ``means``, the combinations that skip a
    missing leg against the arithmetic mean of the same normalisation and weights.

    Shares of a row: ``single`` of the top ten; ``if_annihilated``, what it would be if both-leg documents always came
    first; ``relevant_single`` of the relevant hits; ``worth_single`` and ``worth_both``, how much of either kind is
    relevant. A row of ``means`` has the paired difference in single-leg hits per query and its ``story``.
    """
    rows: list[Row] = []
    means: list[Row] = []
    for name in family.benches:
        for counted in _counted(at, family, name):
            rows += [_row(family, name, arm, counts) for arm, counts in counted]
            means += _means(family, name, counted)
    return {"top": TOP, "intervals": intervals.card(), "permutation": permutation.card(), "rows": rows, "means": means}


def _counted(at: Layout, family: Family, name: str) -> Iterator[list[tuple[Arm, Counts]]]:
    """The arms of two legs, corpus by corpus."""
    arms = [stacks.read(at, family, name, arm) for arm in (family.control, *family.arms)]
    of_corpus = zip(*(stacks.by_corpus(arm) for arm in arms if len(arm.document["arm"]["legs"]) == 2))
    bench: Bench | None = None
    for some in of_corpus:
        bench = bench or _bench(replace(at, bench=name))
        yield [(arm, count(bench, arm)) for arm in some]


def _bench(at: Layout) -> Bench:
    rows = _rows_of(at.index_folder)
    relevant = {
        query_id: frozenset(rows[document] for document, grade in documents.items() if grade > 0)
        for key in at.scored
        for query_id, documents in qrels.grade(judging.load(at, key).coverage).qrels.items()
    }
    return Bench(at, rows, relevant)


@lru_cache(maxsize=1)
def _rows_of(folder: Path) -> dict[str, int]:
    """Document id to row; benches of one index follow each other and share it."""
    return {doc_id: row for row, doc_id in enumerate(table.doc_ids(table.load(folder)))}


@lru_cache(maxsize=4)
def _frozen(path: Path) -> tuple[legs.Leg, str]:
    """A leg and the sha256 of its file."""
    return legs.load(path), canon.file_sha256(path)


def count(bench: Bench, arm: Arm) -> Counts:
    """Where each row of the arm's top ten came from; every row must be in a leg, or the legs are not the arm's."""
    stanza = arm.document["arm"]
    depth = stanza.get("leg_depth", stanza["size"])
    top = bench.top(arm.folder / "run.txt.gz", arm.query_ids)
    lists = bench.legs(arm, depth)
    held = [(top[:, :, None] == rows[:, None, :]).any(axis=2) for rows in lists]
    there = top != NOTHING
    if not (held[0] | held[1] | ~there).all():
        alien = f"{int((there & ~held[0] & ~held[1]).sum())} rows of the top {TOP}"
        raise _refusal(bench.at, "a fused list holds a document that neither leg has", arm, "the legs", alien, "no row")
    gold = np.array([[row in bench.relevant[q] for row in rows] for q, rows in zip(arm.query_ids, top.tolist())])
    alone = held[0] ^ held[1]
    tables = (there, alone & held[0], alone & held[1], gold, gold & alone)
    hits, first, second, relevant, relevant_single = (each.sum(axis=1).astype(float) for each in tables)
    return Counts(hits, first, second, relevant, relevant_single, _shared(*lists))


def _shared(first: NDArray[np.int64], second: NDArray[np.int64]) -> Floats:
    """How many rows (Q,) both legs have."""
    pairs = zip(first.tolist(), second.tolist())
    return np.array([len((set(a) & set(b)) - {NO_HIT}) for a, b in pairs], float)


def _head(family: Family, bench: str, arm: Arm) -> Row:
    row = next(row for row in arm.document["rows"] if row["query_class"] == "all")
    carried = {key: row[key] for key in ("corpus", "tier", "judged_by")}
    return {"family": family.name, "bench": bench, "arm": arm.name, **carried, "queries": len(arm.query_ids)}


def _row(family: Family, bench: str, arm: Arm, counts: Counts) -> Row:
    single, hits, relevant = counts.single.sum(), counts.hits.sum(), counts.relevant.sum()
    stanza = arm.document["arm"]
    return {
        **_head(family, bench, arm),
        "leg_depth": stanza.get("leg_depth", stanza["size"]),
        "combination": stanza.get("combination", "rrf"),
        "single_per_query": float(counts.single.mean()),
        "of_legs": {name: float(side.mean()) for name, side in zip(stanza["legs"], (counts.first, counts.second))},
        "both_at_depth_per_query": float(counts.both.mean()),
        "single": _share(single, hits),
        "if_annihilated": _share(np.maximum(counts.hits - counts.both, 0).sum(), hits),
        "relevant_single": _share(counts.relevant_single.sum(), relevant),
        "worth_single": _share(counts.relevant_single.sum(), single),
        "worth_both": _share(relevant - counts.relevant_single.sum(), hits - single),
        HEADLINE: float(arm.values[:, NAMES.index(HEADLINE)].mean()),
    }


def _share(part: float, of: float) -> float | None:
    return float(part / of) if of else None


def _means(family: Family, bench: str, counted: Sequence[tuple[Arm, Counts]]) -> Iterator[Row]:
    """Each combination that is not the arithmetic mean against the one that differs in nothing else."""
    of = {_recipe(arm): (arm, counts) for arm, counts in counted if "combination" in arm.document["arm"]}
    for (combination, *rest), (arm, counts) in of.items():
        reference = of.get((REFERENCE, *rest))
        if combination != REFERENCE and reference:
            yield {**_head(family, bench, arm), "combination": combination, **_against(arm, counts, *reference)}


def _recipe(arm: Arm) -> tuple[Any, ...]:
    stanza = arm.document["arm"]
    rest = {key: value for key, value in stanza.items() if key not in ("id", "axis", "combination")}
    return stanza["combination"], canon.line(rest)


def _against(arm: Arm, counts: Counts, reference: Arm, plain: Counts) -> Row:
    """Paired by query: more single-leg hits than the reference, fewer, or not to be told."""
    groups = [compare.meeting_of(query_id) for query_id in arm.query_ids]
    column = NAMES.index(HEADLINE)
    pair = np.column_stack((counts.single - plain.single, arm.values[:, column] - reference.values[:, column]))
    estimate = intervals.means_with_intervals(pair, groups)
    tested = permutation.p_values(pair, groups)[permutation.ALL]
    low, high = estimate.meetings[0]
    sides = {
        side: {"delta": float(estimate.mean[i]), "intervals": estimate.interval(i), "p_values": tested.of(i)}
        for i, side in enumerate(("single_per_query", HEADLINE))
    }
    return {
        "control": reference.name,
        **sides,
        "annihilated_per_query": float(np.maximum(counts.hits - counts.both, 0).mean()),
        "observed_per_query": float(counts.single.mean()),
        "story": "favoured" if low > 0 else "annihilated" if high < 0 else "undecided",
    }
