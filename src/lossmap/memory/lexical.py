"""The lexical lists of a task, asked of the store once and read by the replay of every model.

``build/<scale>/memory/lexical/<task>/`` holds ragged arrays, read as memory maps: ``offsets.npy`` (Q + 1), ``rows.i32``
(list order), ``bm25.f64`` (larger is better, nan for LIKE), ``fallback.npy`` (Q), ``kept-<n>.npy`` (the lines of group
n that the store holds, by row) and ``lists.json``, which says of which texts they are.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lossmap import canon, progress
from lossmap.errors import LossmapError
from lossmap.layout import Layout
from lossmap.memory import tasks
from lossmap.memory.groups import Group, Question
from lossmap.memory.store import Store
from lossmap.memory.tasks import Task

LISTS = "lists.json"
COUNTS = ("lines", "stored", "collapsed")
REMAKE = "./run results/replay --forcerun lexical"

Ints = NDArray[np.int64]
Found = tuple[NDArray[np.int32], NDArray[np.float64], bool]
"""Rows best first, their bm25 (larger is better, nan where the list came from LIKE), and whether it did."""


def folder(at: Layout, task: Task) -> Path:
    """Where the lists of ``task`` stand: with the task that its stanza names as having the same texts, if any."""
    return at.build / "memory" / "lexical" / str(task.stanza.get("lexical") or task.name)


def run(at: Layout, name: str) -> Path:
    """The rule: the lists of one task; of one that could not be had, lists of nothing. Returns their folder."""
    task = tasks.load(at, name)
    freeze(task, at)
    return folder(at, task)


def sha256(texts: Sequence[str]) -> str:
    found = hashlib.sha256()
    for text in texts:
        found.update(hashlib.sha256(text.encode()).digest())
    return found.hexdigest()


def freeze(task: Task, at: Layout) -> None:
    """Store each group without vectors, ask every question, and write the whole lists. All or nothing."""
    target = folder(at, task)
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        _write(task, scratch)
        shutil.rmtree(target, ignore_errors=True)
        scratch.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _write(task: Task, place: Path) -> None:
    asked: list[Question] = []
    lengths, fallback = [0], list[bool]()
    groups: list[dict[str, Any]] = []
    with open(place / "rows.i32", "wb") as rows, open(place / "bm25.f64", "wb") as bm25:
        for number, group in enumerate(task.groups):
            mine = [question for question in task.questions if question.group == group.name]
            counts, kept = _ask(group, mine, task, rows, bm25, lengths, fallback)
            np.save(place / f"kept-{number}.npy", kept)
            groups.append({"name": group.name, "sha256": sha256(group.texts), **counts})
            asked += mine
    np.save(place / "offsets.npy", np.cumsum(np.array(lengths, np.int64)))
    np.save(place / "fallback.npy", np.array(fallback, bool))
    queries = [[question.query_id, sha256([question.text])] for question in asked]
    canon.write_json(
        place / LISTS, {"keyed": task.keyed, "strip_punct": _strips(task), "groups": groups, "queries": queries}
    )


def _ask(
    group: Group,
    questions: Sequence[Question],
    task: Task,
    rows: IO[bytes],
    bm25: IO[bytes],
    lengths: list[int],
    fallback: list[bool],
) -> tuple[dict[str, int], Ints]:
    """Append the lists of the questions of one group; what the store kept of it. A text is asked once in a row."""
    store = Store(":memory:")
    population = store.fill(group.keys, group.texts, None, task.keyed)
    seen: dict[str, Found] = {}
    for question in progress.bar(questions, f"lexical {group.name}", len(questions), "queries"):
        if question.text not in seen:
            seen = {question.text: _listed(store, question.text, population.lines, _strips(task))}
        listed, score, fell = seen[question.text]
        rows.write(listed.tobytes())
        bm25.write(score.tobytes())
        lengths.append(len(listed))
        fallback.append(fell)
    return {name: getattr(population, name) for name in COUNTS}, np.asarray(population.kept, np.int64)


def _strips(task: Task) -> bool:
    return bool(task.stanza.get("strip_punct"))


def _listed(store: Store, text: str, limit: int, strip_punct: bool) -> Found:
    found = store.keyword(text, limit, strip_punct)
    rows = np.fromiter((hit[0] for hit in found.hits), np.int32, len(found.hits)) - np.int32(1)
    score = np.fromiter((np.nan if hit[2] is None else hit[2] for hit in found.hits), np.float64, len(found.hits))
    return rows, score, found.fallback


@dataclass(frozen=True)
class Lexical:
    """The lists of one folder. ``kept``: by group, the lines that the store holds, by row; ``counts``: lines, stored
    and collapsed of each."""

    place: Path
    keyed: str
    strip_punct: bool
    at: Mapping[str, int]
    texts: Mapping[str, str]
    counts: Mapping[str, Mapping[str, int]]
    kept: Mapping[str, Ints]
    offsets: Ints
    rows: NDArray[np.int32]
    bm25: NDArray[np.float64]
    fallback: NDArray[np.bool_]

    def of(self, query_id: str) -> Found:
        """The whole list of one query. Raises on one that was not asked."""
        if query_id not in self.at:
            raise self._stale("a query has no lexical list", query_id)
        i = self.at[query_id]
        part = slice(self.offsets[i], self.offsets[i + 1])
        return np.array(self.rows[part]), np.array(self.bm25[part]), bool(self.fallback[i])

    def require(self, task: Task) -> None:
        """Raise unless every document and question of ``task`` has the text that was stored and asked."""
        if (task.keyed, _strips(task)) != (self.keyed, self.strip_punct):
            raise self._stale(
                "lexical lists of a store that is keyed or asked otherwise", (self.keyed, self.strip_punct)
            )
        for group in task.groups:
            if self.texts.get(f"group {group.name}") != sha256(group.texts):
                raise self._stale("lexical lists of other documents", group.name)
        for question in task.questions:
            if self.texts.get(f"query {question.query_id}") != sha256([question.text]):
                raise self._stale("lexical lists of other questions", question.query_id)

    def _stale(self, what: str, observed: object) -> LossmapError:
        return LossmapError(
            what, where=self.place, observed=observed, expected="the texts of this task", next_command=REMAKE
        )


def load(place: Path) -> Lexical:
    """What :func:`freeze` wrote. Raises where it is absent or cut short."""
    said: dict[str, Any] = canon.read_json(place / LISTS)
    offsets = np.load(place / "offsets.npy")
    texts = {f"group {group['name']}": group["sha256"] for group in said["groups"]}
    texts |= {f"query {query_id}": sha for query_id, sha in said["queries"]}
    return Lexical(
        place=place,
        keyed=said["keyed"],
        strip_punct=said.get("strip_punct", False),
        at={query_id: i for i, (query_id, _) in enumerate(said["queries"])},
        texts=texts,
        counts={group["name"]: {name: group[name] for name in COUNTS} for group in said["groups"]},
        kept={group["name"]: np.load(place / f"kept-{i}.npy") for i, group in enumerate(said["groups"])},
        offsets=offsets,
        rows=_map(place / "rows.i32", np.int32, int(offsets[-1])),
        bm25=_map(place / "bm25.f64", np.float64, int(offsets[-1])),
        fallback=np.load(place / "fallback.npy"),
    )


def _map(path: Path, kind: Any, count: int) -> NDArray[Any]:
    """A memory map of ``count`` numbers; an empty file cannot be mapped."""
    if not path.is_file() or path.stat().st_size != count * np.dtype(kind).itemsize:
        raise LossmapError("lexical lists are cut short", where=path, expected=f"{count} numbers", next_command=REMAKE)
    return np.memmap(path, kind, "r", shape=(count,)) if count else np.empty(0, kind)
