"""Canonical bytes: JSON, hashes and files that appear whole or not at all."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from lossmap.errors import LossmapError

WRITE = "./run PATH --config scale=SCALE, with this path below the checkout"
SUMS = "SHA256SUMS"
WORKFLOW_MARK = ".snakemake_timestamp"


def rounded(value: Any, places: int = 6) -> Any:
    """Floats of a JSON-like value rounded to ``places`` decimals, recursively; -0.0 becomes 0.0."""
    if isinstance(value, float):
        return round(value, places) + 0.0
    if isinstance(value, Mapping):
        return {str(k): rounded(v, places) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(v, places) for v in value]
    return value


def dumps(value: Any) -> str:
    """Canonical document text: sorted keys, indent 2, UTF-8, 6 decimals, final newline (spec/harness 9.1)."""
    return json.dumps(rounded(value), sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def line(value: Any) -> str:
    """Canonical one-line JSON: sorted keys, compact, full float precision."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """sha256 of the canonical one-line JSON of ``value``."""
    return hashlib.sha256(line(value).encode()).hexdigest()


def file_sha256(path: Path | str) -> str:
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def sums(folder: Path) -> dict[str, str]:
    """sha256 by path of every file but the sums themselves and the mark that a workflow leaves, sorted by path."""
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return {path: file_sha256(folder / path) for path in paths if path not in (SUMS, WORKFLOW_MARK)}


def write_sums(folder: Path) -> None:
    write_text(folder / SUMS, "".join(f"{sha}  {path}\n" for path, sha in sums(folder).items()))


def check_sums(folder: Path, next_command: str) -> int:
    """Check every file of ``folder`` against its SHA256SUMS; the number of files.

    Raises LossmapError with ``next_command`` naming the first file that is missing, changed or not listed: a shard
    that nobody listed would be read like the others.
    """
    if not (folder / SUMS).is_file():
        raise LossmapError(
            "a folder has no checksums", where=folder, expected=f"a file {SUMS}", next_command=next_command
        )
    lines = (row.partition("  ") for row in (folder / SUMS).read_text("utf-8").splitlines())
    listed, found = {path: sha for sha, _, path in lines}, sums(folder)
    for path in sorted(listed.keys() | found.keys()):
        if listed.get(path) != found.get(path):
            raise LossmapError(
                "a file is missing, changed or not one of its folder",
                where=folder / path,
                observed=found.get(path, "no such file"),
                expected=listed.get(path, f"nothing: {SUMS} does not list it"),
                next_command=next_command,
            )
    return len(listed)


@contextmanager
def atomic(path: Path | str, mode: str = "wb") -> Iterator[IO[Any]]:
    """Write to a temporary neighbour and rename: a reader sees the old file or the whole new one, never a part."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    handle = tempfile.NamedTemporaryFile(mode, dir=path.parent, prefix=f".{path.name}.", delete=False, **text)
    try:
        with handle:
            yield handle
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(handle.name, 0o666 & ~umask)
        os.replace(handle.name, path)
    except OSError as error:
        raise LossmapError(
            "a file could not be written", where=path, observed=error, next_command="free space, then run again"
        ) from error
    finally:
        Path(handle.name).unlink(missing_ok=True)


def write_text(path: Path | str, text: str) -> None:
    with atomic(path) as handle:
        handle.write(text.encode())


def write_json(path: Path | str, value: Any) -> None:
    write_text(path, dumps(value))


def read_json(path: Path | str) -> Any:
    """A document that a rule wrote. Raises LossmapError on one that is absent, cut short or altered."""
    with _opened(path) as handle:
        try:
            return json.load(handle)
        except ValueError as error:
            raise _damaged("a document that a rule wrote is damaged", path, "no JSON", error) from error


def _opened(path: Path | str, mode: str = "r") -> IO[Any]:
    """A file that a rule should have written; its absence names the way to get it."""
    try:
        return open(path, mode, encoding=None if "b" in mode else "utf-8")
    except FileNotFoundError as error:
        raise LossmapError("a file that a rule writes is not there", where=path, next_command=WRITE) from error


def write_jsonl(path: Path | str, rows: Iterable[Mapping[str, Any]]) -> int:
    """Rows as canonical lines; the number written."""
    count = 0
    with atomic(path) as handle:
        for row in rows:
            handle.write(line(row).encode() + b"\n")
            count += 1
    return count


def read_jsonl(path: Path | str) -> Iterator[dict[str, Any]]:
    """Rows of a file that a rule wrote. Raises LossmapError naming the line that is cut short or altered."""
    with _opened(path, "rb") as handle:
        for number, raw in enumerate(handle, 1):
            try:
                row = json.loads(raw.decode())
            except ValueError as error:
                where, seen = f"{path}, line {number}", repr(raw.decode(errors="replace")[:80])
                raise _damaged("a line of a file that a rule wrote is damaged", where, seen, error) from error
            yield row


def _damaged(what: str, where: object, observed: object, error: ValueError) -> LossmapError:
    expected, mend = f"one JSON object ({error})", f"remove the file, then {WRITE}"
    return LossmapError(what, where=where, observed=observed, expected=expected, next_command=mend)


@contextmanager
def gzip_atomic(path: Path | str) -> Iterator[io.TextIOWrapper]:
    """A gzip text file whose bytes depend on its text alone (no name, no time in the header)."""
    with atomic(path) as raw, gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0, compresslevel=9) as packed:
        with io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as text:
            yield text


def write_csv_gz(path: Path | str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with gzip_atomic(path) as text:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def read_csv_gz(path: Path | str) -> Iterator[list[str]]:
    """Rows without the header."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as text:
        reader = csv.reader(text)
        next(reader)
        yield from reader
