"""Which rule wrote which bytes: one ledger.json per stage directory, checked before anything is rendered."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lossmap import canon
from lossmap.errors import LossmapError

NAME = "ledger.json"
# Snakemake drops this file into directory outputs; it holds a time and belongs to nobody's result.
IGNORED = (NAME, ".snakemake_timestamp")
SOURCE = Path(__file__).resolve().parents[2]


def _module_file(name: str, source: Path) -> Path | None:
    """The file that defines module ``name`` below ``source``, or None where it is no module of the project."""
    stem = source.joinpath(*name.split("."))
    for candidate in (stem.with_suffix(".py"), stem / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


def _imports(path: Path, module: str) -> set[str]:
    """Dotted names that ``path`` imports, function-level imports included; relative ones are made absolute."""
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes(), filename=str(path))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*parent, *([node.module] if node.module else [])])
            # `from a import b`: b may be a module or a name inside a; whichever exists as a file counts.
            names.add(base)
            names.update(f"{base}.{alias.name}" for alias in node.names)
    return names


def closure(modules: Iterable[str], source: Path = SOURCE) -> dict[str, str]:
    """Module name -> sha256 of its file, for ``modules`` and every project module they import, transitively.

    Raises LossmapError for a name in ``modules`` that has no file.
    """
    waiting, found = list(modules), dict[str, str]()
    for name in waiting:
        if _module_file(name, source) is None:
            raise LossmapError("a rule names a module that does not exist", where=name, expected=f"a file in {source}")
    while waiting:
        name = waiting.pop()
        path = _module_file(name, source)
        if path is None or name in found:
            continue
        found[name] = canon.file_sha256(path)
        waiting.extend(_imports(path, name))
        waiting.extend(name.rsplit(".", 1)[:-1])
    return found


def code_digest(modules: Iterable[str], source: Path = SOURCE) -> str:
    """One hash over the import closure of ``modules``: it changes when code that a rule runs changes, and only then."""
    return canon.digest(closure(modules, source))


def entry(path: Path, rule: str, scale: str, code: str, inputs: Mapping[str, str]) -> dict[str, Any]:
    """The ledger's record of one file; ``inputs`` maps an input path to its sha256."""
    return {
        "sha256": canon.file_sha256(path),
        "rule": rule,
        "scale": scale,
        "code": code,
        "inputs": dict(sorted(inputs.items())),
    }


def _files(stage_dir: Path) -> list[str]:
    every = (path for path in stage_dir.rglob("*") if path.is_file() and path.name not in IGNORED)
    return sorted(path.relative_to(stage_dir).as_posix() for path in every)


def write(stage_dir: Path, scale: str, entries: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Write the ledger.json of ``stage_dir``; ``entries`` (see :func:`entry`) by path below it."""
    document = {"scale": scale, "entries": dict(entries), "digest": canon.digest([scale, entries])}
    canon.write_json(stage_dir / NAME, document)
    return document


def _refuse(what: str, stage_dir: Path, name: str, rule: str, observed: object = None, expected: object = None) -> None:
    raise LossmapError(
        what,
        where=stage_dir / name,
        observed=observed,
        expected=expected,
        next_command=f"./run --forcerun {rule} results/{stage_dir.name}",
    )


def read(stage_dir: Path) -> dict[str, Any]:
    """The ledger of ``stage_dir``; refused where it is absent or was edited by hand."""
    stage_dir = Path(stage_dir)
    if not (stage_dir / NAME).is_file():
        _refuse("a stage directory has no ledger", stage_dir, NAME, stage_dir.name)
    document = canon.read_json(stage_dir / NAME)
    expected = canon.digest([document.get("scale"), document.get("entries")])
    if document.get("digest") != expected:
        _refuse("a ledger was edited", stage_dir, NAME, stage_dir.name, document.get("digest"), expected)
    return document


def check(stage_dir: Path) -> dict[str, Any]:
    """Compare the bytes of every file with the ledger; the ledger's document when all agree.

    Raises LossmapError for a changed, missing or unlisted file, and for a ledger that was edited.
    """
    stage_dir = Path(stage_dir)
    document = read(stage_dir)
    entries = document["entries"]
    for name in _files(stage_dir):
        if name not in entries:
            _refuse("a result has no ledger entry", stage_dir, name, stage_dir.name)
    for name, record in entries.items():
        if not (stage_dir / name).is_file():
            _refuse("a result of the ledger is missing", stage_dir, name, record["rule"])
        observed, expected = canon.file_sha256(stage_dir / name), record["sha256"]
        if observed != expected:
            _refuse("a result differs from its ledger entry", stage_dir, name, record["rule"], observed, expected)
    return document


def stages(results_root: Path) -> list[str]:
    """Names of the stage directories below ``results_root``: those that hold a ledger."""
    return sorted(path.parent.name for path in Path(results_root).glob(f"*/{NAME}"))


def merge(dirs: Iterable[Path], out: Path) -> dict[str, Any]:
    """The checked ledgers of ``dirs`` as one document, keys ``<stage>/<file>``, written to ``out``."""
    entries: dict[str, Any] = {}
    scales: set[str] = set()
    for stage_dir in sorted(map(Path, dirs)):
        document = check(stage_dir)
        scales.add(document["scale"])
        entries.update({f"{stage_dir.name}/{name}": record for name, record in document["entries"].items()})
    if len(scales) > 1:
        raise LossmapError("stages of different scales cannot be rendered together", observed=sorted(scales))
    document = {"scale": next(iter(scales), None), "entries": entries}
    canon.write_json(out, document)
    return document


def stale(entries: Mapping[str, Mapping[str, Any]], digests: Mapping[str, str]) -> list[str]:
    """Files whose recorded code digest is not the present one of their rule (``digests``: rule -> code digest)."""
    return sorted(name for name, record in entries.items() if record["code"] != digests.get(record["rule"]))
