"""The registry of re-rankers: workflow/config/rerankers.yaml as typed values, and their files on disk.

A re-ranker whose weights are absent raises wherever it is asked for scores or for what made them; nothing hands a list
on in its stead.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lossmap import canon, settings
from lossmap.encode import hub, models
from lossmap.errors import LossmapError

CONFIG = "workflow/config/rerankers.yaml"
WEIGHTS, TOKENIZER, CARD = "model.onnx", "tokenizer.json", "card.json"
TRAINED, FIXTURE, HUB, BI_ENCODER = KINDS = ("trained", "fixture", "hub", "bi-encoder")
RECIPE = ("base", "data", "groups", "loop", "max_length")


@dataclass(frozen=True)
class Reranker:
    """``max_length``: word-pieces of a pair, special ones included. ``stanza`` holds what its kind needs beside."""

    name: str
    kind: str
    max_length: int
    licence: str
    note: str
    stanza: Mapping[str, Any]

    @property
    def label(self) -> str:
        """What stands beside every row: a bi-encoder never passes for a cross-encoder, nor a fixture for a model."""
        return {TRAINED: "cross-encoder", HUB: "cross-encoder", FIXTURE: "fixture cross-encoder"}.get(
            self.kind, "second-stage bi-encoder"
        )

    @property
    def encoder(self) -> models.Model:
        """The encoder of a bi-encoder."""
        return models.get(self.stanza["model"])

    def files(self) -> tuple[Path, Path]:
        """Weights and tokenizer of a cross-encoder, checked by hash; raises where they are absent or changed."""
        if self.kind == TRAINED:
            found = trained(self)
            expected = canon.read_json(found / CARD)["files"]
            pairs = [(found / name, expected[name]) for name in (WEIGHTS, TOKENIZER)]
        else:
            folder = hub.folder(self.name, self.stanza) if self.kind == HUB else _fixture_folder(self.stanza)
            wanted = [self.stanza["files"][part] for part in ("weights", "tokenizer")]
            pairs = [(folder / one["path"], one["sha256"]) for one in wanted]
        for path, sha256 in pairs:
            _check(path, sha256, self)
        return pairs[0][0], pairs[1][0]

    def provenance(self) -> dict[str, Any]:
        """What a result names; raises where the weights are absent."""
        if self.kind == BI_ENCODER:
            served: dict[str, Any] = {"encoder": self.encoder.provenance()}
        else:
            weights, tokenizer = map(canon.file_sha256, self.files())
            served = {"weights_sha256": weights, "tokenizer_sha256": tokenizer, "max_length": self.max_length}
        return {"name": self.name, "kind": self.kind, "licence": self.licence, "note": self.note, **served}


def _fixture_folder(stanza: Mapping[str, Any]) -> Path:
    return settings.load().root / stanza["folder"]


def _check(path: Path, sha256: str, of: Reranker) -> None:
    observed = canon.file_sha256(path) if path.is_file() else "no such file"
    if observed != sha256:
        raise LossmapError(
            "the weights of a re-ranker are absent or changed",
            where=f"{of.name}: {path}",
            observed=observed,
            expected=sha256,
            next_command=mend(of),
        )


def mend(of: Reranker) -> str:
    """The command that brings the files of a re-ranker."""
    if of.kind == TRAINED:
        scale = of.stanza["data"]["scale"]
        return f"./run build/{scale}/stages/stage5/trained.json --config scale={scale} (the rule train)"
    return {
        HUB: f"./run hub; ./run lossmap rerankers --obtain {of.name}, where the hub is reachable",
        FIXTURE: f"restore {of.stanza.get('folder')} from the repository",
    }.get(of.kind, "./run lossmap models fetch")


@functools.cache
def registry() -> dict[str, Reranker]:
    with open(settings.load().root / CONFIG, encoding="utf-8") as handle:
        stanzas = yaml.safe_load(handle)
    return {name: _typed(name, stanza) for name, stanza in stanzas.items()}


def _typed(name: str, stanza: Mapping[str, Any]) -> Reranker:
    if stanza.get("kind") not in KINDS:
        raise LossmapError(
            "a re-ranker of unknown kind", where=f"{CONFIG}: {name}", observed=stanza.get("kind"), expected=KINDS,
            next_command=f"correct kind: in {CONFIG}", exit_code=2,
        )  # fmt: skip
    common = [stanza[key] for key in ("kind", "max_length", "licence", "note")]
    return Reranker(name, *common, stanza)


def get(name: str) -> Reranker:
    known = registry()
    if name not in known:
        raise LossmapError(
            "unknown re-ranker", observed=name, expected=sorted(known), exit_code=2,
            next_command=f"add a stanza to {CONFIG}",
        )  # fmt: skip
    return known[name]


def recipe(stanza: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a stanza that decides the weights."""
    return {key: stanza[key] for key in RECIPE}


def folder(name: str, identity: Mapping[str, Any]) -> Path:
    """Where the model trained by ``identity`` (recipe and groups) lies, or will."""
    return settings.load().cache / "rerankers" / f"{name}-{canon.digest(identity)[:16]}"


def trained(of: Reranker) -> Path:
    """The one complete folder of the cache that was trained by this recipe."""
    wanted = canon.rounded(recipe(of.stanza))
    places = sorted((settings.load().cache / "rerankers").glob(f"{of.name}-*/{CARD}"))
    found = [card.parent for card in places if canon.read_json(card)["recipe"] == wanted]
    if len(found) != 1:
        raise LossmapError(
            "a trained re-ranker is absent" if not found else "a recipe was trained on more than one set of groups",
            where=f"{of.name} in {settings.load().cache / 'rerankers'}",
            observed=[path.name for path in found],
            expected="one folder with this recipe",
            next_command=mend(of) if not found else "remove the folders that are not meant",
        )
    return found[0]


@dataclass(frozen=True)
class State:
    """Whether a re-ranker can score here, and the reason where it cannot."""

    obtained: bool
    reason: str = ""


def state(of: Reranker, obtain: bool = False) -> State:
    """``obtain``: try to fetch what is fetched; a model of the hub that cannot be had is a record, not a failure."""
    if of.kind == HUB and obtain and (reason := hub.obtain(of.name, of.stanza)):
        return State(False, reason)
    if of.kind == HUB and not hub.present(of.name, of.stanza):
        return State(False, f"not fetched; {mend(of)}")
    try:
        if of.kind == BI_ENCODER:
            of.encoder.files()
        else:
            of.files()
    except LossmapError as error:
        return State(False, str(error).partition("\n")[0])
    return State(True)
