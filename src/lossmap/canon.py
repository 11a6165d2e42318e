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
    with _opened(path) as handle:
        return json.load(handle)


def _opened(path: Path | str) -> IO[str]:
    """A file that a rule should have written; its absence names the way to get it."""
    try:
        return open(path, encoding="utf-8")
    except FileNotFoundError as error:
        raise LossmapError(
            "a file that a rule writes is not there",
            where=path,
            next_command="./run PATH --config scale=SCALE, with this path below the checkout",
        ) from error


def write_jsonl(path: Path | str, rows: Iterable[Mapping[str, Any]]) -> int:
    """Rows as canonical lines; the number written."""
    count = 0
    with atomic(path) as handle:
        for row in rows:
            handle.write(line(row).encode() + b"\n")
            count += 1
    return count


def read_jsonl(path: Path | str) -> Iterator[dict[str, Any]]:
    with _opened(path) as handle:
        for text in handle:
            yield json.loads(text)


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
