"""Families of arms, and everything that was measured over the same queries side by side.

A chapter has some seventy arms over several benches. What their intervals and p-values cost is the resampling of the
queries, so all contrasts over one set of queries are stacked as columns and resampled once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lossmap import transcript
from lossmap.errors import LossmapError
from lossmap.judge.evaluate import CLASSES
from lossmap.layout import Layout
from lossmap.studies import compare, per_query, scores
from lossmap.studies.compare import Arm

HEADLINE = "nDCG@10"
"""The measure of studies that follow one."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Family:
    """Arms that share a control, and the benches on which both are scored.

    ``arms``: id to axis (what it varies), without the control. ``factor``: hashes in which an arm may differ from the
    control. ``stage``: the stage of arms.yaml whose folder holds the scored arms.
    """

    name: str
    control: str
    arms: Mapping[str, str]
    benches: tuple[str, ...]
    factor: tuple[str, ...] = ()
    stage: str = "stage5"

    def card(self) -> dict[str, Any]:
        arms = [{"arm": arm, "axis": axis} for arm, axis in self.arms.items()]
        head = {"family": self.name, "control": self.control, "factor": list(self.factor)}
        return {**head, "benches": list(self.benches), "arms": arms}


@dataclass(frozen=True)
class Contrast:
    """One arm and its control over one corpus of one bench."""

    family: Family
    bench: str
    arm: Arm
    control: Arm
    head: Mapping[str, Any]

    @property
    def axis(self) -> str:
        return self.family.arms[self.arm.name]

    @property
    def names(self) -> dict[str, Any]:
        """The fields that say what a row is about."""
        ids = {"family": self.family.name, "bench": self.bench, "arm": self.arm.name, "axis": self.axis}
        return {**ids, "control": self.family.control, **self.head}


@dataclass(frozen=True)
class Stack:
    """Contrasts over the same queries of one corpus; ``classes`` and ``groups`` (meetings) in their order."""

    query_ids: tuple[str, ...]
    classes: tuple[str, ...]
    groups: tuple[str, ...]
    contrasts: list[Contrast] = field(default_factory=list)

    def parts(self) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """Each class that has queries, and ``all``, with the queries (Q,) it takes."""
        names = np.array(self.classes, object)
        for name in CLASSES:
            keep = np.ones(len(names), bool) if name == "all" else names == name
            if keep.any():
                yield name, keep

    def deltas(self, column: int | None = None) -> Floats:
        """Arm minus control: (Q, A, M), or (Q, A) of one measure."""
        taken = slice(None) if column is None else column
        return np.stack([c.arm.values[:, taken] - c.control.values[:, taken] for c in self.contrasts], axis=1)

    def members(self, keep: NDArray[np.bool_]) -> list[str]:
        """The meetings of the queries of one part."""
        return [group for group, kept in zip(self.groups, keep) if kept]


def declared(
    at: Layout, chapter: str, family: Callable[[str], Mapping[str, Any]], stage: str = "stage5"
) -> list[Family]:
    """The families that this scale's config names for ``chapter``.

    ``family`` gives what arms.yaml says of a name: control (an id), arms (id to axis) and, where one is under test,
    factor (names of hashes).
    """
    asked = scores.chapter(at, chapter).get("families", {})
    return [of(name, family(name), spec["benches"], stage) for name, spec in asked.items()]


def of(name: str, said: Mapping[str, Any], benches: Iterable[str], stage: str = "stage5") -> Family:
    """A family of what arms.yaml says of it, over ``benches``."""
    arms = {arm: axis for arm, axis in said["arms"].items() if arm != said["control"]}
    return Family(name, said["control"], arms, tuple(benches), tuple(said.get("factor", ())), stage)


def stacks(at: Layout, families: Sequence[Family]) -> list[Stack]:
    """Every arm of every family beside its control; a corpus without scored queries has no stack.

    Raises where an arm and its control differ in a hash that the family does not name as the factor under test, or
    did not score the same queries.
    """
    found: dict[tuple[str, ...], Stack] = {}
    for family in families:
        for bench in family.benches:
            for contrast in _contrasts(at, family, bench):
                ids = contrast.arm.query_ids
                if ids not in found:
                    found[ids] = Stack(ids, asked(at, bench, contrast.arm), tuple(map(compare.meeting_of, ids)))
                found[ids].contrasts.append(contrast)
    return list(found.values())


def read(at: Layout, family: Family, bench: str, arm: str) -> Arm:
    return per_query.read(scores.scored(at, bench, family.stage) / arm)


def asked(at: Layout, bench: str, arm: Arm) -> tuple[str, ...]:
    """The class of every query of an arm, as the corpora of its bench have it."""
    here = replace(at, bench=bench)
    class_of = {q.query_id: q.query_class for key in here.scored for q in transcript.read_queries(here.corpus(key))}
    if lost := [query_id for query_id in arm.query_ids if query_id not in class_of]:
        raise LossmapError(
            "a query has no class",
            where=arm.folder,
            observed=", ".join(lost[:5]),
            expected="queries of a corpus that the bench asks",
            next_command="measure the arm again over the corpus as it is",
            exit_code=2,
        )
    return tuple(class_of[query_id] for query_id in arm.query_ids)


def by_corpus(arm: Arm) -> list[Arm]:
    """An arm as one arm a corpus: corpora are never pooled. None where nothing was scored."""
    keys = [row["corpus"] for row in arm.document["rows"] if row["query_class"] == "all"]
    return [arm] if len(keys) == 1 else [_part(arm, key) for key in keys]


def _part(arm: Arm, corpus: str) -> Arm:
    keep = [query_id.split(":", 1)[0] == corpus for query_id in arm.query_ids]
    rows = [row for row in arm.document["rows"] if row["corpus"] == corpus]
    ids = tuple(query_id for query_id, kept in zip(arm.query_ids, keep) if kept)
    return Arm(arm.folder, {**arm.document, "rows": rows}, ids, arm.values[np.array(keep)])


def head(arm: Arm, control: Arm) -> dict[str, Any]:
    """corpus, tier and judged_by of two arms over one corpus; the tier is the worse of the two."""
    (row,) = compare.heads(arm, control)
    return {key: row[key] for key in ("corpus", "tier", "judged_by")}


def _contrasts(at: Layout, family: Family, bench: str) -> Iterator[Contrast]:
    control = read(at, family, bench, family.control)
    for name in family.arms:
        arm = read(at, family, bench, name)
        compare.require_alike(arm, control, family.factor)
        for mine, theirs in zip(by_corpus(arm), by_corpus(control)):
            yield Contrast(family, bench, mine, theirs, head(mine, theirs))
