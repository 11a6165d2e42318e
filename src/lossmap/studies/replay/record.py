"""The rule of one model and task: store, calibrate, freeze, score every stage, and call the witnesses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lossmap import canon
from lossmap.index import vectors
from lossmap.index.vectors import Vectors
from lossmap.layout import Layout
from lossmap.memory import calibrate, dump, freeze, frozen, lexical, tasks
from lossmap.memory.calibrate import Calibration
from lossmap.memory.frozen import Frozen
from lossmap.memory.lexical import Lexical
from lossmap.memory.store import Store
from lossmap.memory.tasks import Group, Task
from lossmap.studies.replay import run, witness

OF_TASK = ("tier", "judged_by", "keyed", "obtained", "reason")
OF_STANZA = ("corresponds", "arm_of", "strip_punct")
OF_QUERY = ("relevant", "missing", "size", "eligible", "admitted", "admitted_eligible", "lexical", "fallback")
SEEDS = 20

Matrix = NDArray[np.float32]


@dataclass(frozen=True)
class Told:
    """A task under one model: vectors of the lines of each group and of each question, lexical lists, calibrations."""

    task: Task
    lists: Lexical
    lines: Mapping[str, Vectors]
    asked: Mapping[str, Matrix]
    calibrations: Mapping[str, Calibration] = field(default_factory=dict)

    @property
    def thresholds(self) -> dict[str, float]:
        return {name: found.threshold for name, found in self.calibrations.items()}

    def stored(self, group: Group) -> Matrix:
        """Vectors (stored, dimension) of the rows of a group."""
        kept = self.lines[group.name].take(self.lists.kept[group.name])
        return kept.distinct[kept.inverse]


def record(
    at: Layout,
    model: str,
    name: str,
    pin_from: Path | None = None,
    cap: int | None = None,
    out: Path | None = None,
) -> Path:
    """Write task.json, frozen.npz, values.npz, queries.csv.gz and dump.csv.gz; the folder.

    ``pin_from``: a folder of earlier cards (<task>.json, or <task>/task.json) whose thresholds are taken. ``cap``:
    queries a subtask (default: the task's own). A task that could not be had leaves its card with the reason, and
    empty files. Raises where the lexical lists are of other texts.
    """
    out, task = out or run.folder(at, model, name), tasks.load(at, name, cap)
    out.mkdir(parents=True, exist_ok=True)
    card = {"task": name, "model": model, "pin_from": pin_from.as_posix() if pin_from else None, "cap": cap}
    card |= {key: getattr(task, key) for key in OF_TASK} | {key: task.stanza.get(key) for key in OF_STANZA}
    if not task.obtained:
        _empty(out, card)
        return out
    told = _told(at, task, model, pin_from)
    queries = np.array([told.asked[question.query_id] for question in task.questions], np.float32)
    found = freeze.freeze(task, told.lists, told.lines, told.thresholds, queries)
    values = run.scored(found)
    identity = {
        "dense": witness.dense(_qrels(told), _dense(told), values["s0"]),
        "live": witness.live(task, found, _filled(told), told.asked, told.thresholds),
    }
    constants = {"rrf_k": frozen.K, "threshold_factor": frozen.FLOOR_FACTOR, "depth": found.depth}
    groups = [_group(told, group, found) for group in task.groups]
    _write(out, found, values, name)
    canon.write_json(out / "task.json", {**card, **constants, "groups": groups, "identity": identity})
    return out


def _told(at: Layout, task: Task, model: str, pin_from: Path | None) -> Told:
    lists = lexical.load(lexical.folder(at, task))
    lines = {group.name: vectors.of(model, "passage", group.texts)[0] for group in task.groups}
    asked, _ = vectors.of(model, "query", [question.text for question in task.questions])
    by_query = {
        question.query_id: asked.distinct[row]
        for question, row in zip(task.questions, asked.inverse.tolist(), strict=True)
    }
    told = Told(task, lists, lines, by_query)
    return replace(told, calibrations={group.name: _calibration(told, group, model, pin_from) for group in task.groups})


def _calibration(told: Told, group: Group, model: str, pin_from: Path | None) -> Calibration:
    """The recorded calibration of a group where a folder of records has one, else one over what is stored."""
    subtasks = _subtasks(told.task, group)
    pinned = calibrate.pinned(pin_from, told.task.name, subtasks, model) if pin_from else None
    return pinned or calibrate.calibrate(told.stored(group))


def _subtasks(task: Task, group: Group) -> frozenset[str]:
    return frozenset(question.subtask for question in task.questions if question.group == group.name)


def _dense(told: Told) -> dict[str, list[int]]:
    """The dense order of every question, by the witness."""
    found: dict[str, list[int]] = {}
    for group in told.task.groups:
        mine = [question for question in told.task.questions if question.group == group.name]
        keys = [group.keys[line] for line in told.lists.kept[group.name].tolist()]
        allowed = {
            scene: np.array([row for row, key in enumerate(keys) if key in told.task.candidates[scene]], np.int64)
            for scene in {question.scene for question in mine if question.scene}
        }
        asked = np.array([told.asked[question.query_id] for question in mine], np.float32)
        found |= witness.by_cosine(mine, told.stored(group), asked, allowed)
    return found


def _qrels(told: Told) -> dict[str, dict[str, int]]:
    """The judgements of the questions themselves, rows by their numbers; what the store lacks under its key."""
    rows = {
        group.name: {group.keys[line]: str(row) for row, line in enumerate(told.lists.kept[group.name].tolist())}
        for group in told.task.groups
    }
    return {q.query_id: {rows[q.group].get(key, key): 1 for key in q.gold} for q in told.task.questions}


def _filled(told: Told) -> Iterator[tuple[Group, Store]]:
    """Each group in a live store of its own, in memory."""
    for group in told.task.groups:
        store, lines = Store(":memory:"), told.lines[group.name]
        store.fill(group.keys, group.texts, lines.distinct[lines.inverse], told.task.keyed)
        yield group, store


def _group(told: Told, group: Group, found: Frozen) -> dict[str, Any]:
    """The card of one stored corpus."""
    first, stored = found.groups.index(group.name), told.stored(group)
    return {
        "name": group.name,
        "subtasks": sorted(_subtasks(told.task, group)),
        **told.lists.counts[group.name],
        "calibration": calibrate.record(told.calibrations[group.name]),
        "band": calibrate.band(stored, SEEDS),
        "methods": {name: calibrate.calibrate(stored, name).threshold for name in calibrate.METHODS},
        "floor": float(found.floor[first]),
        "gate": float(found.gate[first]),
        "pool": int(found.size[first]),
    }


def _write(out: Path, found: Frozen, values: Mapping[str, Any], task: str) -> None:
    frozen.save(out / "frozen.npz", found)
    with canon.atomic(out / "values.npz") as handle:
        np.savez(handle, **values)
    fields = [getattr(found, name).tolist() for name in OF_QUERY]
    scores = [values[name].tolist() for name in values]
    rows = zip(found.subtasks, found.query_ids, *fields, *scores, strict=True)
    canon.write_csv_gz(out / "queries.csv.gz", ("subtask", "qid", *OF_QUERY, *values), rows)
    dump.write(out / "dump.csv.gz", found, task)


def _empty(out: Path, card: Mapping[str, Any]) -> None:
    """What Snakemake waits for, of a task that could not be had: files that hold nothing, and a card that says why."""
    for name in ("frozen.npz", "values.npz"):
        with canon.atomic(out / name) as handle:
            np.savez(handle)
    for name in ("queries.csv.gz", "dump.csv.gz"):
        canon.write_csv_gz(out / name, (), ())
    canon.write_json(out / "task.json", {**card, "groups": []})
