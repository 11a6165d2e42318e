"""Fetching under the licence gate: a source, a staging folder, the lock's check, a rename. Nothing half is left."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lossmap import canon, settings
from lossmap.corpora import licence, lock, registry, sources
from lossmap.corpora.registry import Stanza
from lossmap.corpora.sources import NotObtainable, Source
from lossmap.errors import LossmapError

FETCH = "./run lossmap corpora fetch --accept-licenses"


def fetch(
    keys: Iterable[str] | None,
    *,
    accept_licenses: bool = False,
    accept_noncommercial: bool = False,
    mirror: Path | None = None,
    destination: Path | None = None,
) -> list[dict[str, Any]]:
    """Per corpus its outcome: the record of ``key.fetched.json``, or why it was skipped or failed.

    Raises LossmapError with exit code 2 on an unknown key and 3 where a licence was not accepted. A corpus of tier B
    or C, or one that cannot be had, is skipped where it was not named, and is a failure where it was.
    """
    stanzas = registry.select(keys)
    gated = [s for s in stanzas if keys is None or licence.passes(s, accept_noncommercial) or not s.obtain]
    if not licence.accepted(accept_licenses) or len(gated) < len(stanzas):
        licence.print_list(stanzas)
        raise _not_accepted([s.key for s in stanzas if s not in gated])
    where = destination or registry.raw_folder()
    return [_outcome(stanza, keys is not None, accept_noncommercial, mirror, where) for stanza in stanzas]


def _not_accepted(refused: list[str]) -> LossmapError:
    flag = "--accept-noncommercial" if refused else "--accept-licenses"
    return LossmapError(
        "the licences above were not accepted",
        where=", ".join(refused) or None,
        expected=f"{flag}, or {licence.ACCEPT_VARIABLE}=1 for tier A",
        next_command=f"{FETCH}{' --accept-noncommercial' if refused else ''}",
        exit_code=3,
    )


def _outcome(
    stanza: Stanza, named: bool, accept_noncommercial: bool, mirror: Path | None, destination: Path
) -> dict[str, Any]:
    if not stanza.obtain:
        return {"key": stanza.key, "obtained": False, "failed": named, "reason": stanza.reason}
    if not licence.passes(stanza, accept_noncommercial):
        reason = f"tier {stanza.tier} was not asked for"
        return {"key": stanza.key, "obtained": False, "failed": False, "reason": reason}
    try:
        return {**fetch_one(stanza, destination, mirror), "failed": False}
    except LossmapError as error:
        print(f"error: {error}", file=sys.stderr)
        return {"key": stanza.key, "obtained": False, "failed": True, "reason": _first_line(error)}


def fetch_one(stanza: Stanza, destination: Path, mirror: Path | None = None) -> dict[str, Any]:
    """One corpus as ``destination/key/`` beside ``key.fetched.json``; that record, the same for every source.

    Raises LossmapError on a damaged source, a wrong hash, changed evidence or a full disk, NotObtainable where no
    source answers. What stood in ``destination/key/`` stays then.
    """
    files, target = lock.entry(stanza), destination / stanza.key
    with _exclusive(destination, stanza.key):
        wanted = {problem.path for problem in lock.problems(target, files)}
        if wanted:
            kind = _replace(stanza, mirror or settings.load().mirror, target, wanted, files)
        else:
            licence.check_evidence(stanza, target)
            kind = "what was here already"
        record = _record(stanza, files)
        canon.write_json(destination / f"{stanza.key}.fetched.json", record)
    print(f"{stanza.key}: {record['files']} files, {record['bytes']} bytes, from {kind}", file=sys.stderr)
    return record


@contextmanager
def _exclusive(destination: Path, key: str) -> Iterator[None]:
    """Two fetches of one corpus take turns; the second finds the files right."""
    destination.mkdir(parents=True, exist_ok=True)
    with open(destination / f".{key}.lock", "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def _scratch(destination: Path, key: str) -> Iterator[Path]:
    """A folder on the destination's file system, gone afterwards; a full disk becomes an error that says so.

    Its name is fixed, so that the next run (which holds the lock) clears what a killed one left.
    """
    scratch = destination / f".{key}.scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        scratch.mkdir()
        yield scratch
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise LossmapError(
            "the disk is full: nothing of the corpus was kept" if full else "a corpus could not be copied",
            where=error.filename or destination,
            observed=f"{error}; {shutil.disk_usage(destination).free} bytes are free now",
            next_command="free space, then run again" if full else "check the folder's permissions, then run again",
        ) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _replace(stanza: Stanza, mirror: Path | None, target: Path, wanted: set[str], files: Mapping[str, str]) -> str:
    """Build the whole folder beside ``target``, check it, swap it in; the kind of source that had the wanted files."""
    destination = target.parent
    with _scratch(destination, stanza.key) as scratch:
        staging = scratch / "files"
        staging.mkdir()
        if right := files.keys() - wanted:
            sources.unpack(Source("folder", target), right.__contains__, staging)
        source = sources.local(stanza, mirror) or _download(stanza, destination)
        try:
            sources.unpack(source, wanted.__contains__, staging)
            lock.require(stanza, staging, files, _mend(stanza, source))
        finally:
            if source.kind == "upstream":
                source.path.unlink(missing_ok=True)
        if target.exists():
            os.rename(target, scratch / "before")
        os.rename(staging, target)
    return source.kind


def _download(stanza: Stanza, destination: Path) -> Source:
    try:
        return sources.download(stanza, destination)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            sources.part_of(stanza, destination).unlink(missing_ok=True)
        raise


def _mend(stanza: Stanza, source: Source) -> str:
    if source.kind == "upstream":
        return f"{FETCH} --only {stanza.key}; if it repeats, upstream's commit no longer holds what was pinned"
    return f"restore {source.path}, or fetch from elsewhere: {FETCH} --only {stanza.key} --mirror DIR"


def _record(stanza: Stanza, files: Mapping[str, str]) -> dict[str, Any]:
    return {
        "key": stanza.key,
        "obtained": True,
        "version": stanza.version,
        "tier": stanza.tier,
        "licence": stanza.licence,
        "files": len(files),
        "bytes": sum(int(stamp.split()[1]) for stamp in files.values()),
        "lock": canon.digest(files),
    }


def _first_line(error: LossmapError) -> str:
    return str(error).splitlines()[0]


def obtain(
    key: str,
    destination: Path,
    strict: bool = False,
    *,
    accept_noncommercial: bool = False,
    mirror: Path | None = None,
) -> dict[str, Any]:
    """For a rule: the record of one corpus, its licence printed and, for tier A, accepted.

    A corpus that cannot be had gives ``{"key", "obtained": False, "reason"}``, or raises with ``strict``. A wrong
    hash, changed evidence, a damaged archive and a full disk always raise: they are to be mended, not recorded.
    """
    stanza = registry.select([key])[0]
    print(licence.describe(stanza), file=sys.stderr)
    try:
        if not stanza.obtain:
            raise NotObtainable(stanza.reason or "no source", where=key)
        if not licence.passes(stanza, accept_noncommercial):
            raise NotObtainable(f"tier {stanza.tier} is not accepted here", where=key, exit_code=3)
        return fetch_one(stanza, destination, mirror)
    except NotObtainable as error:
        if strict:
            raise
        print(f"not obtained: {error}", file=sys.stderr)
        return {"key": key, "obtained": False, "reason": _first_line(error)}


def main(
    only: Iterable[str] | None = None,
    accept_licenses: bool = False,
    accept_noncommercial: bool = False,
    mirror: Path | None = None,
    destination: Path | None = None,
) -> int:
    """`lossmap corpora fetch`: 0 all right, 1 download or checksum, 2 misuse, 3 a licence was not accepted."""
    try:
        outcomes = fetch(
            only or None,
            accept_licenses=accept_licenses,
            accept_noncommercial=accept_noncommercial,
            mirror=mirror,
            destination=destination,
        )
    except LossmapError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    for row in outcomes:
        if not row["obtained"]:
            print(f"{row['key']}: {'FAILED' if row['failed'] else 'skipped'}: {row['reason']}")
    return int(any(row["failed"] for row in outcomes))


def lock_main(only: Iterable[str] | None = None, mirror: Path | None = None, destination: Path | None = None) -> int:
    """`lossmap corpora lock`: write the entries of the named corpora from whatever source has them; 0 when done.

    Raises where the licence evidence is not the one that the stanza names: a new lock never hides a changed licence.
    """
    where = destination or registry.raw_folder()
    for stanza in (s for s in registry.select(only or None) if s.obtain):
        with _exclusive(where, stanza.key), _scratch(where, stanza.key) as scratch:
            source = sources.local(stanza, mirror or settings.load().mirror) or _download(stanza, where)
            sources.unpack(source, sources.matcher(stanza.obtain["files"]), scratch)
            licence.check_evidence(stanza, scratch)
            files = {path: lock.stamp(scratch / path) for path in sources.listed(scratch)}
        lock.write({stanza.key: files})
        print(f"{stanza.key}: {len(files)} files locked, from {source.kind}")
    return 0
