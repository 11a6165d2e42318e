"""Where the files of a corpus come from: a folder, a mirror's tarball, or upstream's archive over HTTPS.

Every source ends as files in a staging folder; what they are worth is decided by the lock, never here.
"""

from __future__ import annotations

import fnmatch
import shutil
import sys
import tarfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import requests

from lossmap import progress, settings
from lossmap.corpora.registry import Stanza
from lossmap.errors import LossmapError

GZIP_MAGIC = b"\x1f\x8b"
COPY_BLOCK = 1 << 18
NETWORK_BLOCK = 1 << 14  # what a broken connection loses at most
TIMEOUT = (10, 60)  # seconds to connect, seconds without a byte

Wanted = Callable[[str], bool]


class NotObtainable(LossmapError):
    """No source has the corpus: a stage records it instead of stopping."""


@dataclass(frozen=True)
class Source:
    """``kind`` is repository, folder, tarball or upstream; ``inner``: the folder of an archive that is the corpus."""

    kind: str
    path: Path
    inner: str = ""


def matcher(globs: Iterable[str]) -> Wanted:
    """Whether a relative path fits one of ``globs``; ``*`` also crosses folders."""
    patterns = tuple(globs)
    return lambda path: any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def local(stanza: Stanza, mirror: Path | None) -> Source | None:
    """The corpus in the repository or the mirror: its tarball, its unpacked folder, or the mirror being that folder."""
    obtain = stanza.obtain or {}
    if "folder" in obtain:
        return Source("repository", settings.load().root / obtain["folder"])
    if mirror is None:
        return None
    if (mirror / obtain["mirror"]).is_file():
        return Source("tarball", mirror / obtain["mirror"], obtain.get("inner", ""))
    # The first globs are licence and prose, which any folder may hold; the last one is the corpus itself.
    for folder in (mirror / obtain["mirror"].removesuffix(".tar.gz"), mirror / stanza.key, mirror):
        if any(folder.glob(obtain["files"][-1])):
            return Source("folder", folder)
    return None


def listed(folder: Path) -> list[str]:
    """Relative POSIX paths of the files below ``folder``, sorted; none where it does not exist."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def unpack(source: Source, wanted: Wanted, staging: Path) -> None:
    """Copy the wanted files of ``source`` below ``staging``; nothing else is written."""
    if source.path.is_dir():
        for path in filter(wanted, listed(source.path)):
            with open(source.path / path, "rb") as stream:
                _copy(stream, staging / path)
        return
    try:
        with tarfile.open(source.path, "r:gz") as archive:
            # A mirror's tarball begins at the corpus, upstream's may hold it one folder deeper.
            deeper = source.inner and any(inside(name, source.inner) for name in archive.getnames())
            for member in archive:
                path = inside(member.name, source.inner if deeper else "")
                if member.isfile() and path and wanted(path):
                    _copy(archive.extractfile(member), staging / path)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise _damaged(source.path, error) from error
    except OSError as error:
        # gzip reports a bad magic number or checksum as an OSError without a number; a full disk has one.
        if error.errno is not None:
            raise
        raise _damaged(source.path, error) from error


def inside(name: str, inner: str = "") -> str | None:
    """The path of an archive member below its first folder and, in that, below the folder ``inner``.

    None for what lies elsewhere or would leave it.
    """
    path = PurePosixPath(name)
    parts = path.parts[1:]
    if path.is_absolute() or ".." in path.parts or not parts or "\\" in name or "\0" in name:
        return None
    below = "/".join(parts)
    return below if not inner else below.removeprefix(f"{inner}/") if below.startswith(f"{inner}/") else None


def _copy(stream: object, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target, "wb") as handle:
        shutil.copyfileobj(stream, handle, COPY_BLOCK)


def _damaged(path: Path, error: Exception) -> LossmapError:
    return LossmapError(
        "an archive is truncated or damaged",
        where=path,
        observed=f"{path.stat().st_size} bytes; {error}",
        expected="a whole tar.gz",
        next_command="copy or download the archive again, then run again",
    )


def download(stanza: Stanza, folder: Path) -> Source:
    """Upstream's archive as a whole file in ``folder``, resumed from its .part where one is left.

    Raises NotObtainable when no network answers, and LossmapError on anything that is not a gzip archive.
    """
    part = part_of(stanza, folder)
    if settings.load().offline:
        raise _nowhere(stanza, "LOSSMAP_OFFLINE is set")
    have = _size(part)
    print(f"{stanza.key}: downloading {stanza.obtain['archive']}, {have} bytes are here already", file=sys.stderr)
    try:
        _stream(stanza, part, have)
    except requests.exceptions.ChunkedEncodingError as error:
        raise _nowhere(stanza, f"the download broke off after {_size(part)} bytes: {error}") from error
    except requests.exceptions.RequestException as error:
        raise _nowhere(stanza, error) from error
    print(f"{stanza.key}: {_size(part)} bytes downloaded", file=sys.stderr)
    return Source("upstream", part.replace(part.with_suffix("")), stanza.obtain.get("inner", ""))


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def part_of(stanza: Stanza, folder: Path) -> Path:
    """Where a download of ``stanza`` grows."""
    return folder / f"{stanza.key}-{stanza.obtain['commit'][:8]}.tar.gz.part"


def _stream(stanza: Stanza, part: Path, have: int) -> None:
    url = stanza.obtain["archive"]
    headers = {"Range": f"bytes={have}-", "Accept-Encoding": "identity"} if have else {"Accept-Encoding": "identity"}
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
        if response.status_code == 416:
            part.unlink()
            return _stream(stanza, part, 0)
        if response.status_code not in (200, 206):
            raise _nowhere(stanza, f"HTTP status {response.status_code}")
        resumed = response.status_code == 206
        total = int(response.headers.get("Content-Length", 0)) + have * resumed
        blocks = response.iter_content(NETWORK_BLOCK)
        first = next(blocks, b"")
        if not resumed and not first.startswith(GZIP_MAGIC):
            raise _not_gzip(stanza, response.headers.get("Content-Type"), first)
        with (
            open(part, "ab" if resumed else "wb") as handle,
            progress.bar(None, f"fetch {stanza.key}", total, "bytes") as bar,
        ):
            bar.update(have * resumed)
            while first:
                handle.write(first)
                bar.update(len(first))
                first = next(blocks, b"")


def _not_gzip(stanza: Stanza, content_type: str | None, first: bytes) -> NotObtainable:
    html = "html" in (content_type or "") or first.lstrip()[:1] == b"<"
    return NotObtainable(
        f"upstream answered with {'an HTML page' if html else 'something else'} instead of a gzip archive",
        where=stanza.obtain["archive"],
        observed=f"{content_type}: {first[:60]!r}",
        expected="application/gzip",
        next_command=f"open the address in a browser, or give a folder holding {stanza.obtain['mirror']} to --mirror",
    )


def _nowhere(stanza: Stanza, why: object) -> NotObtainable:
    return NotObtainable(
        "a corpus is neither in a mirror nor to be had from upstream",
        where=stanza.obtain["archive"],
        observed=why,
        expected=f"the network, or {stanza.obtain['mirror']} (or its unpacked folder) in a mirror folder",
        next_command=f"go online and run again (a download resumes), or "
        f"`./run lossmap corpora fetch --accept-licenses --only {stanza.key} --mirror DIR` (or LOSSMAP_MIRROR=DIR)",
    )
