"""A corpus on disk: world, plants and talk as shards of meetings with their queries, facts, qrels and checksums."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.synthetic import aggregates, rules
from lossmap.synthetic import world as worlds
from lossmap.synthetic.pools import REGISTERS
from lossmap.synthetic.render import Positions, render
from lossmap.synthetic.rules import Book
from lossmap.synthetic.world import Config, Plant, Session, World

SHORT_TURN_WORDS = 4
LEAST = max(low for low, _ in (aggregates.COUNTED, aggregates.LISTED, aggregates.EVENTFUL, aggregates.DATED))
"""Meetings that one question needs: with fewer, the draw of its gold finds too small a pool."""
NEXT = "./run lossmap synth generate --folder FOLDER"
LICENCE = """SPDX-License-Identifier: CC0-1.0

Every meeting, person, team, product and question in this folder was invented by the generator of the lossmap project,
from a seed and without a language model. Those who wrote the generator give up all their rights in this output,
worldwide and as far as the law allows, under the Creative Commons CC0 1.0 Universal dedication: anybody may copy,
change and use it for any purpose without asking. It comes without any warranty.
"""


class Held(NamedTuple):
    """What is kept of a rendered meeting once its row is on disk: counts of turns, short turns and words."""

    register: str
    turns: int
    short: int
    words: int


_state: dict[str, Any] = {}


def generate(config: Config, out: Path, workers: int | None = None, book: Book | None = None) -> dict[str, Any]:
    """Write the corpus of ``config`` to the folder ``out`` and return its stats.

    Shards are rendered by ``workers`` processes (default: the cores this process may use) and written as they come;
    the bytes depend on ``config`` alone. ``book`` takes the place of what rules.build makes of the world. Everything
    is written beside ``out`` first and renamed at the end. Raises LossmapError where ``out`` exists already, or a
    plant names no session.
    """
    if out.exists():
        raise LossmapError(
            "the folder is there already", where=out, expected="a new folder", next_command=f"rm -r {out}", exit_code=2
        )
    if book is None:
        _require_enough(config)
    world = worlds.build(config)
    book = rules.build(world) if book is None else book
    _check_plants(world, book.plants)
    with _whole(out) as folder:
        held, positions = _meetings(world, book.plants, folder / "meetings", workers or _cores())
        queries, facts = rules.resolve(book, positions)
        stats = {**_stats(world, held, queries), "rules": book.counts}
        canon.write_json(folder / "config.json", {**asdict(config), "generator": worlds.GENERATOR_VERSION})
        canon.write_jsonl(folder / "queries.jsonl", queries)
        canon.write_jsonl(folder / "facts.jsonl", facts)
        canon.write_text(folder / "qrels-files.tsv", "".join(_qrels(world, queries)))
        canon.write_json(folder / "stats.json", stats)
        canon.write_text(folder / "LICENSE", LICENCE)
        canon.write_sums(folder)
    return stats


def _require_enough(config: Config) -> None:
    if config.meetings < LEAST:
        raise LossmapError(
            "too few meetings to ask every kind of question about",
            where="meetings",
            observed=config.meetings,
            expected=f"at least {LEAST}",
            next_command=f"{NEXT} --meetings {LEAST}",
            exit_code=2,
        )


def verify(folder: Path) -> int:
    """Check every file of a generated folder against SHA256SUMS; the number of files."""
    again = f"move {folder} away if it is there, then generate it with the settings of its config.json: {NEXT}"
    return canon.check_sums(folder, again)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _whole(out: Path) -> Iterator[Path]:
    """A temporary neighbour of ``out`` that takes its name once the body is through, and goes away if it fails."""
    out.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
    try:
        yield folder
        umask = os.umask(0)
        os.umask(umask)
        folder.chmod(0o777 & ~umask)
        folder.rename(out)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _check_plants(world: World, plants: dict[str, tuple[Plant, ...]]) -> None:
    keys = {session.key for session in world.sessions}
    for key, some in plants.items():
        for plant in some:
            if key not in keys or plant.session != key or not 1 <= len(plant.turns) <= 2:
                raise LossmapError(
                    "a plant cannot be placed",
                    where=f"{plant.plant_id} of session {plant.session}, listed under {key}",
                    observed=f"{len(plant.turns)} turns",
                    expected="1 or 2 turns in a session of this world",
                )


def _meetings(
    world: World, plants: dict[str, tuple[Plant, ...]], folder: Path, workers: int
) -> tuple[list[Held], Positions]:
    """Every shard on disk; the counts of the meetings in order and the turn ranges of the plants."""
    folder.mkdir()
    size = world.config.shard_size
    shards = [
        (world.sessions[at : at + size], folder / f"part-{number:04d}.jsonl")
        for number, at in enumerate(range(0, len(world.sessions), size))
    ]
    workers = min(workers, len(shards))
    if workers == 1:
        _prepare(world, plants)
        try:
            return _gather(map(_shard, shards))
        finally:
            _state.clear()
    with get_context().Pool(workers, _prepare, (world, plants)) as pool:
        return _gather(pool.imap(_shard, shards))


def _prepare(world: World, plants: dict[str, tuple[Plant, ...]]) -> None:
    _state.update(world=world, plants=plants)


def _shard(task: tuple[Sequence[Session], Path]) -> tuple[list[Held], Positions]:
    """One shard, a meeting at a time: memory holds one meeting and the counts."""
    sessions, path = task
    held: list[Held] = []
    positions: Positions = {}

    def rows() -> Iterator[dict[str, Any]]:
        for session in sessions:
            row, places = render(_state["world"], session, _state["plants"].get(session.key, ()))
            short = sum(turn["content"].count(" ") < SHORT_TURN_WORDS for turn in row["turns"])
            held.append(Held(row["register"], row["turn_count"], short, row["word_count"]))
            positions.update(places)
            yield row

    canon.write_jsonl(path, rows())
    return held, positions


def _gather(shards: Iterable[tuple[list[Held], Positions]]) -> tuple[list[Held], Positions]:
    held: list[Held] = []
    positions: Positions = {}
    for some, places in shards:
        held += some
        positions.update(places)
    return held, positions


def _qrels(world: World, queries: Sequence[dict[str, Any]]) -> Iterator[str]:
    for query in queries:
        for key in query["gold_files"]:
            yield f"{query['query_id']} 0 {world.session(key).file_uuid} 1\n"


def _stats(world: World, held: Sequence[Held], queries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    joined = sum(session.cluster is not None for session in world.sessions)
    classes = Counter((query["query_class"], query["surface"]) for query in queries)
    return {
        "meetings": len(held),
        "turns": sum(one.turns for one in held),
        "words": sum(one.words for one in held),
        "teams": len(world.teams),
        "series": len(world.series),
        "speakers": len({person.speaker_id for session in world.sessions for person in session.attendees}),
        "near_duplicate_join_probability": world.config.near_duplicate_rate,
        "near_duplicate_fraction_in_clusters": joined / len(held),
        "queries": {
            name: {surface: classes[name, surface] for surface in sorted({s for n, s in classes if n == name})}
            for name in sorted({name for name, _ in classes})
        },
        "registers": {name: _register(some) for name in REGISTERS if (some := [h for h in held if h.register == name])},
    }


def _register(held: Sequence[Held]) -> dict[str, Any]:
    """The talk of one register; a short turn has at most SHORT_TURN_WORDS words."""
    turns, words = sum(one.turns for one in held), sum(one.words for one in held)
    return {
        "meetings": len(held),
        "words": words,
        "median_words": median(one.words for one in held),
        "short_turn_share": sum(one.short for one in held) / turns,
        "mean_words_per_turn": words / turns,
    }
