"""A trained cross-encoder: from a recipe of rerankers.yaml to a folder of the cache, once for every scale and checkout.

The folder is named by the recipe, with the hash of the base in it, and by the groups that the model saw. It appears
whole or not at all, and holds the model, its tokenizer, and the card that results name.
"""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from lossmap import canon, layout, transcript
from lossmap.encode import rerankers
from lossmap.encode.cross import Pair
from lossmap.errors import LossmapError
from lossmap.layout import Layout
from lossmap.studies import bases, checkpoints, export, groups, tune
from lossmap.studies.checkpoints import Choice, HeldOut
from lossmap.studies.groups import Group, Pool, Recipe
from lossmap.studies.tune import Loop

PARITY_PAIRS = 200
CURVE = 25
VERSIONS = ("torch", "transformers", "onnx", "tokenizers")
OUTPUT = "trained"


@dataclass(frozen=True)
class Task:
    """A recipe over its data: what is learnt, from which groups, chosen on which lists."""

    name: str
    stanza: Mapping[str, Any]
    loop: Loop
    mined: list[Group]
    held: HeldOut
    source: Mapping[str, Any]

    @property
    def identity(self) -> dict[str, Any]:
        return {"recipe": rerankers.recipe(self.stanza), "groups_sha256": groups.sha256(self.mined)}

    @property
    def folder(self) -> Path:
        return rerankers.folder(self.name, self.identity)

    @property
    def done(self) -> bool:
        return (self.folder / rerankers.CARD).exists()


def of(name: str, stanza: Mapping[str, Any]) -> Task:
    """The task of a recipe, from the frozen legs and judgements that its ``data`` names."""
    data, loop = stanza["data"], Loop(**stanza["loop"])
    at = layout.load(data["scale"], data["index"])
    given = {**stanza["groups"], "groups": loop.groups * loop.steps, "seed": loop.seed}
    recipe = Recipe(**{field.name: given[field.name] for field in fields(Recipe)})
    pool: Pool = groups.pool(at, data["corpus"], recipe.depth)
    card = transcript.read_card(at.corpus(data["corpus"]))
    source = {key: card[key] for key in ("key", "version", "tier", "licence", "judged_by")}
    return Task(name, stanza, loop, list(groups.mine(pool, recipe)), checkpoints.held_out(pool, recipe), source)


def task(name: str) -> Task:
    """The task of a stanza of kind ``trained``."""
    chosen = rerankers.get(name)
    if chosen.kind != rerankers.TRAINED:
        known = [other.name for other in rerankers.registry().values() if other.kind == rerankers.TRAINED]
        raise LossmapError(
            "a re-ranker that no recipe trains", observed=f"{name}, of kind {chosen.kind}", expected=known,
            next_command="./run lossmap train NAME", exit_code=2,
        )  # fmt: skip
    return of(name, chosen.stanza)


def torch_is_there() -> bool:
    return importlib.util.find_spec("torch") is not None


def ready(name: str) -> bool:
    """Whether ``run`` needs nothing installed: the model is in the cache, or torch is there to train it."""
    return torch_is_there() or task(name).done


def run(at: Layout, chapter: str, name: str) -> Path:
    """The rule: the folder of a trained model, trained where the cache has none, and its card beside the chapter."""
    found = task(name)
    if not found.done:
        if not torch_is_there():
            raise LossmapError(
                "to train needs the group hub", where=name, observed="no module torch",
                expected="requirements/hub.txt installed",
                next_command=f"./run hub; ./run lossmap train {name} --scale {at.scale}",
            )  # fmt: skip
        _whole(found.folder, lambda scratch: make(found, scratch))
    canon.write_json(at.stage(chapter) / f"{OUTPUT}.json", canon.read_json(found.folder / rerankers.CARD))
    return found.folder


def _whole(folder: Path, fill: Callable[[Path], object]) -> None:
    """Fill a neighbour and rename it; where another run was faster, its folder stays."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        scratch.chmod(0o755)
        fill(scratch)
        if not folder.exists():
            scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def make(work: Task, out: Path) -> None:
    """Train, choose, export, hold the export against its source, and describe all of it in the folder ``out``."""
    begun, length = time.monotonic(), work.stanza["max_length"]
    tune.seeded(work.loop.seed)
    texts = [text for group in work.mined for text in (group.query, *group.passages)]
    base = bases.load(work.stanza["base"], work.loop.dropout, texts)
    choice = Choice(base.model, work.held, lambda pairs: tune.scores(base.model, base.tokenizer, pairs, length))
    losses = tune.train(base.model, base.tokenizer, work.mined, work.loop, choice.check)
    choice.restore()
    base.tokenizer.save(str(out / rerankers.TOKENIZER))
    export.write(base.model, base.tokenizer, length, out / rerankers.WEIGHTS)
    compared = _some(work.held.pairs, work.loop.seed)
    worst = export.parity(base.model, out, length, compared)
    seconds = {"seconds": time.monotonic() - begun, "scoring_seconds": choice.seconds}
    canon.write_json(out / "runinfo.json", seconds)
    parity = {"pairs": len(compared), "largest_difference": f"{worst:.1e}", "limit": str(export.PARITY)}
    canon.write_json(out / rerankers.CARD, {**_card(work, losses, choice), "parity": parity, "files": _hashes(out)})


def _some(pairs: Sequence[Pair], seed: int) -> list[Pair]:
    return [pairs[i] for i in np.random.default_rng(seed).permutation(len(pairs))[:PARITY_PAIRS]]


def _hashes(out: Path) -> dict[str, str]:
    return {name: canon.file_sha256(out / name) for name in (rerankers.WEIGHTS, rerankers.TOKENIZER)}


def _card(work: Task, losses: Sequence[float], choice: Choice) -> dict[str, Any]:
    """What made the weights, without times: equal runs write equal cards."""
    return {
        "name": work.name,
        "source": dict(work.source),
        **work.identity,
        "groups": len(work.mined),
        "queries": len({group.query for group in work.mined}),
        "losses": [float(np.mean(losses[i : i + CURVE])) for i in range(0, len(losses), CURVE)],
        "losses_every": CURVE,
        "held_out": {
            "pages": work.held.pages,
            "queries": len(work.held.query_ids),
            "before": work.held.quality(None),
            "checkpoints": choice.curve,
        },
        "chosen": choice.best,
        "versions": {name: version(name) for name in VERSIONS},
    }
