"""Pinned files from package registries: a coordinate, a size, a sha256, and a place in the cache.

Maven's client for Python does not check a fresh download, and pip keeps what it likes: so the hash below is the only
thing that decides, and a file that fails it is deleted before anybody can use it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from lossmap import canon, settings
from lossmap.errors import LossmapError


@dataclass(frozen=True)
class Artifact:
    """``coordinate`` is ``group:name:type:version``, as the registry's client takes it."""

    coordinate: str
    sha256: str

    @property
    def filename(self) -> str:
        _, name, kind, version = self.coordinate.split(":")
        return f"{name}-{version}.{kind}"


def fetch(artifact: Artifact) -> Path:
    """The cached file of ``artifact``; downloaded when absent. Raises on a wrong hash and keeps nothing then."""
    target = settings.load().cache / "artifacts" / artifact.filename
    if target.exists() and canon.file_sha256(target) == artifact.sha256:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        part = Path(scratch) / artifact.filename
        _download(artifact, part)
        observed = canon.file_sha256(part)
        if observed != artifact.sha256:
            raise LossmapError(
                "a registry artefact has the wrong hash",
                where=artifact.coordinate,
                observed=observed,
                expected=artifact.sha256,
                next_command="run again; if it repeats, the pin or the registry's copy is wrong",
            )
        shutil.move(part, target)
    return target


def _download(artifact: Artifact, part: Path) -> None:
    if settings.load().offline:
        raise LossmapError(
            "an artefact is not in the cache and LOSSMAP_OFFLINE is set",
            where=artifact.coordinate,
            expected=settings.load().cache / "artifacts" / artifact.filename,
            next_command="unset LOSSMAP_OFFLINE and run `./run lossmap doctor`",
        )
    client = [sys.executable, "-m", "maven_artifact.main", artifact.coordinate, str(part)]
    done = subprocess.run(client, capture_output=True, text=True)
    if done.returncode or not part.exists():
        raise LossmapError(
            "a registry artefact could not be downloaded",
            where=artifact.coordinate,
            observed=(done.stderr or done.stdout).strip()[-400:],
            next_command="check the network, then run again; `./run lossmap doctor` lists what is missing",
        )
