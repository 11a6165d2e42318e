"""Parts of a stage: signed by the rule that wrote them, collected into results with a ledger of those signatures."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.layout import Layout
from lossmap.report import ledger

SIGNED = ".signed.json"


def digests(at: Layout) -> dict[str, str]:
    """Rule to the content hash of the code it runs now (workflow/config/code.yaml)."""
    with open(at.root / "workflow/config/code.yaml", encoding="utf-8") as handle:
        return {rule: ledger.code_digest(modules) for rule, modules in yaml.safe_load(handle)["code"].items()}


def sign(at: Layout, rule: str, code: str, outputs: Sequence[Path], inputs: Sequence[Path]) -> None:
    """Write, beside each output, which rule and code wrote these bytes and from what."""
    sources = {_name(at, path): canon.file_sha256(path) for path in inputs}
    for output in outputs:
        canon.write_json(signature_of(output), ledger.entry(output, rule, at.scale, code, sources))


def signature_of(part: Path) -> Path:
    return part.with_name(f".{part.name}{SIGNED}")


def _name(at: Layout, path: Path) -> str:
    return Path(path).absolute().relative_to(at.root).as_posix()


def collect(at: Layout, stage: str, parts: Sequence[Path]) -> Path:
    """Copy ``parts`` (below build/<scale>/stages/<stage>) to results, with the ledger of their signatures.

    The folder is filled under another name and renamed, so that a killed rule leaves the old one whole. A part that no
    rule signed, or whose bytes are not the signed ones (a call by hand), is refused; so is a row of tier B, but at the
    internal scale.
    """
    target, scratch = at.results / stage, at.results / f".{stage}.new"
    shutil.rmtree(scratch, ignore_errors=True)
    entries = {}
    for part in parts:
        name = Path(part).absolute().relative_to(at.stage(stage)).as_posix()
        entries[name] = _signature(at, Path(part))
        if at.public:
            _refuse_internal(Path(part))
        copy = scratch / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(part, copy)
    ledger.write(scratch, at.scale, entries)
    shutil.rmtree(target, ignore_errors=True)
    os.replace(scratch, target)
    return target


def _signature(at: Layout, part: Path) -> dict[str, Any]:
    path = signature_of(part)
    signed = canon.read_json(path) if path.exists() else {"sha256": "no signature", "rule": "RULE"}
    observed = canon.file_sha256(part)
    if signed["sha256"] != observed:
        raise LossmapError(
            "a part of a stage is not what its rule wrote",
            where=part,
            observed=observed,
            expected=signed["sha256"],
            next_command=f"./run --forcerun {signed['rule']} {_name(at, part)} --config scale={at.scale}",
        )
    return signed


def _tiers(value: Any) -> Iterator[str]:
    """Every licence tier that a document states, at any depth."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from [inner] if key == "tier" else _tiers(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _tiers(inner)


def _refuse_internal(part: Path) -> None:
    """No row of a tier other than A enters results, whatever made it."""
    if part.suffix != ".json":
        return
    tiers = set(_tiers(canon.read_json(part)))
    if tiers - {"A"}:
        raise LossmapError(
            "a row that may not be published",
            where=part,
            observed=f"licence tier {', '.join(sorted(tiers - {'A'}))}",
            expected="licence tier A",
            next_command="leave its corpus out of this scale, or: ./run paper --config accept_noncommercial=true",
        )
