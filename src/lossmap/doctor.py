"""What is there, in which version and size, what is missing, and the command that mends it."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lossmap import canon, settings
from lossmap.encode import models
from lossmap.engine import distribution, opensearch, postgres, status
from lossmap.errors import LossmapError

TEX_PROGRAMS = ("latexmk", "pdflatex")
TEX_FILES = ("booktabs.sty", "microtype.sty", "cleveref.sty", "natbib.sty", "lmodern.sty")
TEX_PACKAGES = "latexmk texlive-latex-recommended texlive-fonts-recommended lmodern texlive-latex-extra poppler-utils"
TEX_MEND = f"apt-get update && apt-get install -y --no-install-recommends {TEX_PACKAGES}"
# The full index, its vectors and both data folders.
DISK_BYTES = 5 << 30


@dataclass(frozen=True)
class Row:
    """``needed``: `./run paper` fails without it. ``size`` in bytes, None where it has no meaning."""

    part: str
    there: bool
    version: str = ""
    size: int | None = None
    where: str = ""
    mend: str = ""
    needed: bool = True


def report() -> list[Row]:
    """One row a part, in the order of the line: environment, servers, models, TeX, corpora, disk."""
    sections = (_python, _packages, _servers, _models, _tex, _corpora, _hub, _disk)
    return [row for section in sections for row in section()]


def main(out: Callable[[str], object] = print) -> int:
    """Print the report; 0 when everything that `./run paper` needs is there, else 1."""
    rows = report()
    for row in rows:
        state = "ok" if row.there else ("MISSING" if row.needed else "absent")
        size = "" if row.size is None else _human(row.size)
        out(f"{state:<8}{row.part:<28}{row.version:<16}{size:>9}  {row.where}".rstrip())
        if not row.there and row.mend:
            out(f"{'':<8}mend: {row.mend}")
    return int(any(row.needed and not row.there for row in rows))


def _python() -> Iterator[Row]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Row("python", sys.version_info >= (3, 11), version, where=sys.prefix, mend="install Python >= 3.11")


def _packages() -> Iterator[Row]:
    for line in (settings.load().root / "requirements" / "core.in").read_text().splitlines():
        name = re.match(r"[\w.-]*", line)[0]
        if name:
            yield _package(name, mend="./run setup")


def _package(name: str, mend: str, needed: bool = True) -> Row:
    try:
        found = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return Row(name, False, mend=mend, needed=needed)
    return Row(name, True, found.version, sum(file.size or 0 for file in found.files or []), needed=needed)


def _servers() -> Iterator[Row]:
    config = settings.load()
    if config.opensearch_url:
        yield Row("opensearch", True, "external")
    elif launcher := opensearch.path_binary():
        yield Row("opensearch", True, opensearch.home_version(launcher.parents[1]), where=str(launcher))
    else:
        yield _java()
        home = distribution.assembled_home()
        size = _tree_bytes(home) if home.exists() else None
        version = distribution.OPENSEARCH_VERSION
        yield Row("opensearch", home.exists(), version, size, str(home), mend="./run lossmap engine fetch")
    yield Row("postgres", True, "external") if config.postgres_dsn else _postgres()
    for name, row in status().items():
        yield Row(
            f"{name} server",
            row["state"] != "down",
            row.get("version", ""),
            row.get("rss_bytes"),
            row.get("endpoint", ""),
            mend="./run lossmap engine up",
            needed=False,
        )


def _java() -> Row:
    try:
        path = distribution.java()
    except LossmapError as error:
        return Row("java", False, where=str(error).split("\n")[1].strip(), mend="./run setup")
    return Row("java", True, str(distribution.java_major(path)), _tree_bytes(path.parents[1]), str(path))


def _postgres() -> Row:
    try:
        folder = postgres.binaries()
    except LossmapError:
        return Row("postgres", False, mend="./run setup")
    return Row("postgres", True, postgres.binary_version(folder / "postgres"), _tree_bytes(folder.parent), str(folder))


def _models() -> Iterator[Row]:
    for name, model in models.registry().items():
        path = settings.load().cache / "artifacts" / model.artifact.filename
        there = path.exists() and canon.file_sha256(path) == model.artifact.sha256
        version = model.artifact.coordinate.rsplit(":", 1)[1]
        size = path.stat().st_size if there else None
        yield Row(f"model {name}", there, version, size, str(path), mend="./run lossmap models fetch")


def _tex() -> Iterator[Row]:
    for program in TEX_PROGRAMS:
        yield _program(program, needed=True)
    for name in TEX_FILES:
        path = _kpsewhich(name)
        yield Row(name, bool(path), where=path, mend=TEX_MEND)
    yield _program("pdftotext", needed=False)


def _program(name: str, needed: bool) -> Row:
    path = shutil.which(name)
    return Row(name, path is not None, where=path or "", mend=TEX_MEND, needed=needed)


def _kpsewhich(name: str) -> str:
    if not shutil.which("kpsewhich"):
        return ""
    return subprocess.run(["kpsewhich", name], capture_output=True, text=True).stdout.strip()


def _corpora() -> Iterator[Row]:
    config = settings.load()
    mend = "LOSSMAP_MIRROR=<folder of tarballs>, where the upstream cannot be reached"
    yield Row("corpora mirror", config.mirror is not None, where=str(config.mirror or ""), mend=mend, needed=False)
    found = sorted(config.root.glob("build/*/corpora/*/corpus.json"))
    mend = "./run lossmap corpora fetch --accept-licenses"
    yield Row(
        "corpora read",
        bool(found),
        f"{len(found)} folders",
        where=", ".join(f"{p.parts[-4]}/{p.parts[-2]}" for p in found),
        mend=mend,
        needed=False,
    )


def _hub() -> Iterator[Row]:
    mend = "./run hub"
    yield _package("sentence-transformers", mend=mend, needed=False)


def _disk() -> Iterator[Row]:
    config = settings.load()
    for name, path in (("checkout", config.root), ("cache", config.cache), ("runtime", config.runtime)):
        existing = next(folder for folder in (path, *path.parents) if folder.exists())
        free = shutil.disk_usage(existing).free
        mend = f"free {_human(DISK_BYTES)} there, or move it (LOSSMAP_CACHE, LOSSMAP_RUNTIME)"
        yield Row(f"free disk, {name}", free >= DISK_BYTES, size=free, where=str(path), mend=mend)


def _tree_bytes(folder: Path) -> int:
    return sum(os.lstat(Path(base, name)).st_size for base, _, files in os.walk(folder) for name in files)


def _human(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"
