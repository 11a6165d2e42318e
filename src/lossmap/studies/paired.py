"""Every arm of a family over one bench, query by query, as deltas against the family's control.

One count matrix serves all arms and measures of a corpus (judge/resampled), so that a chapter's intervals cost seconds.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lossmap import canon, layout, transcript
from lossmap.errors import LossmapError
from lossmap.judge import resampled
from lossmap.judge.measures import NAMES
from lossmap.layout import Layout
from lossmap.search import plan
from lossmap.studies import compare

ALL = "all"
CROSS = "cross"


@dataclass(frozen=True)
class Corpus:
    """One corpus of a bench: ``deltas`` (Q, A, len(NAMES)) of A arms by query, each query's class and meeting."""

    bench: str
    key: str
    tier: str
    judged_by: str
    deltas: NDArray[np.float64]
    classes: NDArray[np.object_]
    groups: NDArray[np.object_]

    @property
    def card(self) -> dict[str, str]:
        return {"bench": self.bench, "corpus": self.key, "tier": self.tier, "judged_by": self.judged_by}

    def asked(self, query_class: str) -> NDArray[np.bool_]:
        """Which queries are of a class; ``all`` names every one."""
        return np.ones(len(self.classes), bool) if query_class == ALL else self.classes == query_class

    def drawn(self, query_class: str, measures: Sequence[str]) -> resampled.Deltas | None:
        """Deltas of the queries of a class, arm by arm, and of each arm its ``measures``; None without a query."""
        keep = self.asked(query_class)
        if not keep.any():
            return None
        values = self.deltas[keep][:, :, [NAMES.index(name) for name in measures]]
        return resampled.resample(values.reshape(len(values), -1), list(self.groups[keep]))


@dataclass(frozen=True)
class Family:
    """A family at this scale: its control and its other ``arms``, id to axis."""

    name: str
    control: str
    arms: Mapping[str, str]


def family(at: Layout, name: str) -> Family:
    found = plan.family(at, name)
    arms = {arm: axis for arm, axis in found["arms"].items() if arm != found["control"]}
    return Family(name, found["control"], arms)


def scored(at: Layout, bench: str) -> Path:
    return at.stage(plan.STAGE) / "scored" / bench


def _arm(folder: Path) -> compare.Arm:
    """compare.read_arm, once for all families and classes; a folder that was written again is read again."""
    files = (folder / name for name in ("metrics.json", "per_query.csv.gz"))
    return _read(folder, tuple(path.stat().st_mtime_ns for path in files if path.exists()))


@functools.lru_cache(maxsize=1024)
def _read(folder: Path, written: tuple[int, ...]) -> compare.Arm:
    return compare.read_arm(folder)


def corpora(at: Layout, asked: Family, benches: Sequence[str]) -> list[Corpus]:
    """The corpora of ``benches`` in that order; one that was not obtained has no row and is left out.

    Raises where an arm and its control differ in the hash of queries, judgements, index or engine.
    """
    return [corpus for bench in benches for corpus in _bench(at, asked, bench)]


def _bench(at: Layout, asked: Family, bench: str) -> list[Corpus]:
    control = _arm(scored(at, bench) / asked.control)
    if not control.query_ids:
        return []
    arms = [_arm(scored(at, bench) / arm) for arm in asked.arms]
    for arm in arms:
        _require_alike(arm, control)
    owner = np.array([query_id.split(":", 1)[0] for query_id in control.query_ids], object)
    empty = np.empty((len(control.query_ids), 0, len(NAMES)))
    deltas = np.stack([arm.values - control.values for arm in arms], axis=1) if arms else empty
    names = _classes(at, bench, control)
    groups = np.array([compare.meeting_of(query_id) for query_id in control.query_ids], object)
    heads = [row for row in control.document["rows"] if row["query_class"] == ALL]
    tiers = {head["corpus"]: _tier(head["corpus"], (control, *arms)) for head in heads}
    return [
        Corpus(bench, head["corpus"], tiers[head["corpus"]], head["judged_by"], deltas[mine], names[mine], groups[mine])
        for head in heads
        if (mine := owner == head["corpus"]).any()
    ]


def _classes(at: Layout, bench: str, control: compare.Arm) -> NDArray[np.object_]:
    """The class of every query of ``control``; a scored query that its corpus does not know is refused."""
    keys = sorted({query_id.split(":", 1)[0] for query_id in control.query_ids})
    found = {q.query_id: q.query_class for key in keys for q in transcript.read_queries(at.corpus(key))}
    if lost := [query_id for query_id in control.query_ids if query_id not in found]:
        raise LossmapError(
            "scored queries that their corpus does not hold",
            where=f"{bench}: {control.name}",
            observed=", ".join(lost[:5]),
            expected=f"queries of {', '.join(keys)}",
            next_command="score the arms of this bench again",
        )
    return np.array([found[query_id] for query_id in control.query_ids], object)


def _tier(key: str, arms: Sequence[compare.Arm]) -> str:
    return transcript.worst(row["tier"] for arm in arms for row in arm.document["rows"] if row["corpus"] == key)


def _require_alike(arm: compare.Arm, control: compare.Arm) -> None:
    for name in compare.HASHES:
        ours, theirs = arm.document["hashes"].get(name), control.document["hashes"].get(name)
        if ours != theirs or not ours or arm.query_ids != control.query_ids:
            raise LossmapError(
                f"an arm and its control differ in {name}, or in the queries that they scored",
                where=f"{arm.folder} against {control.folder}",
                observed=f"{ours}, {len(arm.query_ids)} queries",
                expected=f"{theirs}, {len(control.query_ids)} queries",
                next_command="score both arms again on the same index and judgements",
                exit_code=2,
            )


def require_unseen(at: Layout, name: str, benches: Sequence[str]) -> None:
    """Raise (exit 2) where a family that re-ranks is asked over the corpus that its re-ranker learned from.

    The re-ranker's stanza names that corpus (data: corpus); one set of a corpus stands for all of it. A fixture is
    asked about what made it: its rows show that the stage runs, nothing else.
    """
    learned = _learned(at) if _reranks(at, name) else None
    for bench in benches:
        seen = [key for key in layout.load(at.scale, bench).scored if learned and _root(key) == _root(learned)]
        if seen:
            raise LossmapError(
                "a re-ranker would be judged on the corpus that it learned from",
                where=f"family {name}, bench {bench}",
                observed=f"{', '.join(seen)}; trained on {learned}",
                expected="a corpus that the re-ranker has not seen",
                next_command="take the bench out of the family's benches in workflow/config/config.yaml",
                exit_code=2,
            )


def _root(key: str) -> str:
    return key.split(".", 1)[0]


def _reranks(at: Layout, name: str) -> bool:
    return any(stanza.get("rerank", {}).get("by") == CROSS for stanza in plan.chosen(at, name).values())


def _learned(at: Layout) -> str | None:
    """The corpus that this scale's cross-encoder was trained on; None for one that this project did not train."""
    known = at.root / "workflow" / "config" / "rerankers.yaml"
    name = at.config["scales"].get(at.scale, {}).get("rerankers", {}).get(CROSS)
    return layout.stanza(at, known.name, name).get("data", {}).get("corpus") if name and known.exists() else None


def sources(cards: Sequence[Corpus]) -> list[dict[str, Any]]:
    """What a document says of its corpora: bench, corpus, tier, who judged, queries and meetings."""
    return [{**each.card, "queries": len(each.groups), "meetings": len(set(each.groups))} for each in cards]


def not_obtained(at: Layout, asked: Family, benches: Sequence[str]) -> list[str]:
    """The benches whose corpus could not be had: their control has no row."""
    return [b for b in benches if not canon.read_json(scored(at, b) / asked.control / "metrics.json")["rows"]]
