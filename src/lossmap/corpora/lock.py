"""corpora.lock: sha256 and bytes of every file of every corpus, the one check that all sources end in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lossmap import canon
from lossmap.corpora import licence, registry
from lossmap.corpora.registry import Stanza
from lossmap.errors import LossmapError

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Problem:
    """A file that is not what the lock says; ``observed`` is a state or ``sha256 bytes``."""

    path: str
    observed: str
    expected: str


def stamp(path: Path) -> str:
    """What the lock keeps of one file: ``<sha256> <bytes>``."""
    return f"{canon.file_sha256(path)} {path.stat().st_size}"


def load() -> dict[str, dict[str, str]]:
    """Per corpus key, its relative POSIX paths and their stamps."""
    path = registry.config_path("corpora.lock")
    return canon.read_json(path)["corpora"] if path.exists() else {}


def entry(stanza: Stanza) -> dict[str, str]:
    """The locked files of one corpus. Raises where the lock does not know it."""
    known = load()
    if stanza.key not in known:
        raise LossmapError(
            "a corpus has no entry in corpora.lock",
            where=registry.config_path("corpora.lock"),
            observed=", ".join(sorted(known)) or "an empty lock",
            expected=stanza.key,
            next_command=f"./run lossmap corpora lock --only {stanza.key}",
        )
    return known[stanza.key]


def problems(folder: Path, files: Mapping[str, str]) -> list[Problem]:
    """Files of ``folder`` that are missing or differ from the lock, sorted by path."""
    found = []
    for path, expected in sorted(files.items()):
        target = folder / path
        observed = stamp(target) if target.is_file() else "missing"
        if observed != expected:
            found.append(Problem(path, observed, expected))
    return found


def require(stanza: Stanza, folder: Path, files: Mapping[str, str], next_command: str) -> None:
    """Raise unless the licence evidence and every locked file under ``folder`` are exactly what was pinned."""
    licence.check_evidence(stanza, folder)
    if wrong := problems(folder, files):
        missing = sum(p.observed == "missing" for p in wrong)
        altered = len(wrong) - missing
        raise LossmapError(
            f"{len(wrong)} of {len(files)} files of a corpus are wrong ({missing} missing, {altered} altered)",
            where=f"{stanza.key}: {', '.join(p.path for p in wrong[:5])}{', ...' if len(wrong) > 5 else ''}",
            observed=wrong[0].observed,
            expected=wrong[0].expected,
            next_command=next_command,
        )


def write(entries: Mapping[str, Mapping[str, str]]) -> None:
    """Merge ``entries`` into the lock, canonical bytes."""
    merged = {**load(), **entries}
    canon.write_json(registry.config_path("corpora.lock"), {"schema_version": SCHEMA_VERSION, "corpora": merged})


def verify(destination: Path, keys: Iterable[str] | None = None) -> dict[str, list[Problem]]:
    """Offline: per fetched corpus its problems; a corpus named in ``keys`` must be there, others may be absent."""
    named = keys is not None
    stanzas = [s for s in registry.select(keys) if s.obtain and (named or (destination / s.key).is_dir())]
    return {s.key: problems(destination / s.key, entry(s)) for s in stanzas}


def verify_main(only: Iterable[str] | None = None, destination: Path | None = None) -> int:
    """Print each missing or altered file; 0 when there is none, 1 otherwise."""
    found = verify(destination or registry.raw_folder(), only or None)
    known = load()
    for key, wrong in found.items():
        for problem in wrong:
            print(f"{key}: {problem.path}: observed {problem.observed}, expected {problem.expected}")
        print(f"{key}: {len(known[key]) - len(wrong)} files right, {len(wrong)} wrong")
    if not found:
        print("no corpus has been fetched: lossmap corpora fetch --accept-licenses")
    if any(found.values()):
        print("mend: lossmap corpora fetch --accept-licenses")
    return int(any(found.values()))
