"""Paths and names of one scale: where each rule of the workflow reads and writes, decided once."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lossmap import canon, settings
from lossmap.errors import LossmapError

MAIN = "main"
INTERNAL = "internal"
CORPUS_FILES = ("meetings.jsonl", "queries.jsonl", "gold.jsonl", "corpus.json")


@dataclass(frozen=True)
class Layout:
    """Folders below build/<scale>; ``results`` is the committed folder at full scale only.

    A bench is an index and the queries that are scored over it: ``bench`` is ``index`` for all queries of that index,
    or ``index/corpus`` for those of one corpus.
    """

    root: Path
    scale: str
    config: dict[str, Any]
    bench: str = MAIN

    @property
    def build(self) -> Path:
        return self.root / "build" / self.scale

    @property
    def results(self) -> Path:
        return self.root / "results" if self.scale in ("full", "shipped") else self.build / "results"

    @property
    def raw(self) -> Path:
        """Fetched corpora: shared by all scales."""
        return self.root / "build" / "corpora"

    @property
    def generated(self) -> Path:
        """The synthetic corpus of this scale, before any meeting is chosen."""
        return self.build / "synthetic"

    @property
    def index(self) -> str:
        return self.bench.partition("/")[0]

    @property
    def stanza(self) -> dict[str, Any]:
        """The index of this bench in config.yaml; empty where results are only rendered."""
        indexes = self.config["scales"].get(self.scale, {}).get("indexes", {})
        return indexes.get(self.index, {"documents": [], "scored": []})

    @property
    def documents(self) -> list[str]:
        """Keys of the corpora whose meetings the index holds."""
        return self.stanza["documents"]

    @property
    def scored(self) -> list[str]:
        """Keys of the corpora whose queries this bench asks."""
        only = self.bench.partition("/")[2]
        return [only] if only else self.stanza["scored"]

    @property
    def graph(self) -> bool:
        """Whether the index holds an HNSW graph; one that only exact legs read does without."""
        return self.stanza.get("graph", True)

    @property
    def header(self) -> str:
        """The header policy of a chunk's vector (index/header)."""
        return self.stanza.get("header", self.config["header"])

    @property
    def model(self) -> str:
        """The encoder of the index and of the queries that are asked over it (models.yaml)."""
        return self.stanza.get("model", self.config["model"])

    @property
    def window(self) -> int | None:
        """Word-pieces at which the encoder cuts; None for the registry's."""
        return self.stanza.get("window")

    @property
    def digests(self) -> str | None:
        """The header policy of the digest plane; None for an index of chunks alone."""
        return self.stanza.get("digests")

    @property
    def order(self) -> str:
        """How segments are read (index/read); only the study of stability reads them otherwise."""
        return self.stanza.get("order", "total")

    @property
    def splitter(self) -> str:
        """What cuts long turns into sentences (index/split); only the study of stability takes another."""
        return self.stanza.get("splitter", "punkt")

    @property
    def writing(self) -> dict[str, Any]:
        """How documents reach the engine, where that differs from index/build.Writing."""
        return self.stanza.get("writing", {})

    @property
    def vectors(self) -> str:
        """Which vectors enter the graph (index/carriers)."""
        return self.stanza.get("vectors", "own")

    @property
    def public(self) -> bool:
        """Whether results of this scale may be published: no row of a tier other than A enters them."""
        return self.scale != INTERNAL

    def corpus(self, key: str) -> Path:
        return self.build / "corpora" / key

    def injection(self, key: str) -> Path:
        return self.build / "inject" / self.index / key

    @property
    def index_folder(self) -> Path:
        return self.build / "index" / self.index

    @property
    def query_vectors(self) -> Path:
        return self.build / "queries" / f"{self.bench}.npz"

    def judged(self, key: str) -> Path:
        """Judgements of a corpus over this index; suffixes .npz, .json, .qrels.gz are added."""
        return self.build / "judge" / self.index / key

    @property
    def index_name(self) -> str:
        return f"lossmap-{self.scale}-{self.index}"

    @property
    def schema(self) -> str:
        return f"lossmap_{self.scale}_{self.index}".replace("-", "_")

    def leg(self, name: str) -> Path:
        return self.build / "legs" / self.bench / f"{name}.npz"

    def note_reuse(self, rule: str, reused: int) -> None:
        """For the bench: how much of its work a rule found done already."""
        canon.write_json(self.build / "bench" / f"{rule}-{self.index}.reused.json", {"reused": reused})

    def stage(self, name: str) -> Path:
        """The parts of a stage, one folder an arm; the stage rule copies them to results."""
        return self.build / "stages" / name


class _Strict(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Refuses a key that stands twice in a mapping: the later stanza would hide the first."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        # Merged keys (<<) may be written over, so what counts is what is written here.
        written = [key.value for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        if len(set(map(str, written))) < len(written):
            twice = sorted({str(key) for key in written if written.count(key) > 1})
            raise LossmapError(
                "a key stands twice in a configuration",
                where=str(node.start_mark).strip(),
                observed=twice,
                expected="each key once",
                next_command="take one of them out",
                exit_code=2,
            )
        return super().construct_mapping(node, deep)  # type: ignore[no-any-return]


@functools.cache
def _yaml(root: Path, name: str) -> dict[str, Any]:
    with open(root / "workflow" / "config" / name, encoding="utf-8") as handle:
        return yaml.load(handle, _Strict)  # noqa: S506 -- a safe loader


def load(scale: str | None = None, bench: str = MAIN) -> Layout:
    root = settings.load().root
    config = _yaml(root, "config.yaml")
    scale = scale or config["scale"]
    if scale not in config["scales"] and scale != "shipped":
        raise LossmapError("unknown scale", observed=scale, expected=[*config["scales"], "shipped"], exit_code=2)
    return Layout(root, scale, config, bench)


def stanza(layout: Layout, name: str, key: str) -> dict[str, Any]:
    """One entry of a file of workflow/config."""
    return pick(_yaml(layout.root, name), key, name)


def arms(layout: Layout) -> dict[str, Any]:
    """workflow/config/arms.yaml."""
    return _yaml(layout.root, "arms.yaml")


def arm(layout: Layout, stage: str, name: str) -> dict[str, Any]:
    """One stanza; unknown names list the known ones."""
    return pick(arms(layout)["stages"][stage]["arms"], name, "arm")


def leg(layout: Layout, name: str) -> dict[str, Any]:
    return pick(arms(layout)["legs"], name, "leg")


def pick(stanzas: Mapping[str, Any], name: str, kind: str) -> dict[str, Any]:
    """One of several stanzas; an unknown name lists the known ones."""
    if name not in stanzas:
        raise LossmapError(
            f"unknown {kind}",
            observed=name,
            expected=sorted(stanzas),
            exit_code=2,
            next_command="add a stanza to workflow/config/arms.yaml",
        )
    return stanzas[name]
