"""Daemons by recorded pid: start once, find again after the parent died, stop, and never act on a name.

A record holds the pid and the kernel's start time of that process; a pid that was reused has another start time, so a
stale record can never lead to somebody else's process.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lossmap import canon, settings
from lossmap.errors import LossmapError

# Servers refuse uid 0; this is the account that owns nothing else ("nobody").
SERVER_ID = 65534

# Children of this very process: kept so that their end is collected (a zombie still has a pid).
_CHILDREN: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True)
class Record:
    """One running daemon. ``started`` is field 22 of /proc/<pid>/stat (clock ticks since boot)."""

    pid: int
    started: int
    argv0: str
    endpoint: str
    version: str


def as_root() -> bool:
    return os.geteuid() == 0


def identity() -> dict[str, Any]:
    """Popen arguments that drop root's privileges; nothing for an ordinary user."""
    return {"user": SERVER_ID, "group": SERVER_ID, "extra_groups": []} if as_root() else {}


def runtime() -> Path:
    """The runtime folder, created when absent; refused when another account made it (/var/tmp is open to all)."""
    path = settings.load().runtime
    path.mkdir(parents=True, exist_ok=True)
    if path.stat().st_uid != os.geteuid():
        raise LossmapError(
            "the runtime folder belongs to somebody else",
            where=path,
            observed=f"uid {path.stat().st_uid}",
            expected=f"uid {os.geteuid()}",
            next_command="LOSSMAP_RUNTIME=<a folder of your own> lossmap engine up",
            exit_code=2,
        )
    path.chmod(0o755 if as_root() else 0o700)
    return path


def server_folder(path: Path) -> Path:
    """``path`` below the runtime folder, created and owned by the server account, closed to others."""
    path.mkdir(parents=True, exist_ok=True)
    if as_root():
        for folder, _, files in os.walk(path):
            for entry in (folder, *(os.path.join(folder, name) for name in files)):
                os.chown(entry, SERVER_ID, SERVER_ID, follow_symlinks=False)
    path.chmod(0o700)
    require_reachable(path)
    return path


def reachable(path: Path) -> bool:
    """Whether the server account can enter or execute ``path``; no permission is ever changed to make it so."""
    return subprocess.run(["test", "-x", str(path)], cwd="/", **identity()).returncode == 0


def require_reachable(path: Path) -> None:
    if not reachable(path):
        raise LossmapError(
            "the server account cannot reach a folder of the engine, and no parent is opened for it",
            where=path,
            observed=f"no access for uid {SERVER_ID if as_root() else os.geteuid()}",
            next_command="set LOSSMAP_RUNTIME and LOSSMAP_CACHE to folders outside a home, as /var/tmp/lossmap",
            exit_code=2,
        )


@contextmanager
def lock(name: str) -> Iterator[None]:
    """Held while a server is looked up, started or stopped: two calls at once give one server."""
    with open(runtime() / f"{name}.lock", "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def live(name: str) -> Record | None:
    """The recorded daemon if it still runs; a dead or reused pid counts as none."""
    path = _path(name)
    if not path.exists():
        return None
    try:
        record = Record(**canon.read_json(path))
    except (LossmapError, TypeError):
        return None
    return record if alive(record) else None


def alive(record: Record) -> bool:
    if record.pid in _CHILDREN:
        _CHILDREN[record.pid].poll()
    return _start_time(record.pid) == record.started


def spawn(
    name: str, argv: Sequence[str], *, endpoint: str, version: str, log: Path, env: Mapping[str, str], cwd: Path
) -> Record:
    """Start a daemon in its own session, so that it outlives this process, and record it. Call under ``lock``."""
    with open(log, "wb") as out:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=dict(env),
            cwd=cwd,
            **identity(),
        )
    _CHILDREN[child.pid] = child
    # A child that is dead already has no start time; 0 matches no process, and the wait reports the log.
    record = Record(child.pid, _start_time(child.pid) or 0, argv[0], endpoint, version)
    canon.write_json(_path(name), asdict(record))
    return record


def wait_ready(name: str, record: Record, ready: Callable[[], bool], log: Path, timeout: float) -> None:
    """Poll until ``ready``; a daemon that dies or hangs is reported with the end of its log (seconds)."""
    deadline = time.monotonic() + timeout
    while not ready():
        dead = not alive(record)
        if dead or time.monotonic() > deadline:
            stop(name)
            raise LossmapError(
                f"{name} {'died while starting' if dead else f'did not answer within {timeout:.0f} s'}",
                where=log,
                observed="\n" + tail(log),
                next_command="./run lossmap engine up (after mending what the log says)",
            )
        time.sleep(0.1)


def stop(name: str, first: signal.Signals = signal.SIGTERM, timeout: float = 30.0) -> bool:
    """Ask the recorded daemon to end, then kill it; True when one was running. Call under ``lock``."""
    record = live(name)
    if record:
        for sig, patience in ((first, timeout), (signal.SIGKILL, 10.0)):
            if _ended(record, sig, patience):
                break
        else:
            raise LossmapError(
                f"{name} does not end", observed=f"pid {record.pid}", next_command="./run lossmap engine down"
            )
    _path(name).unlink(missing_ok=True)
    return record is not None


def _ended(record: Record, sig: signal.Signals, patience: float) -> bool:
    deadline = time.monotonic() + patience
    if alive(record):
        os.kill(record.pid, sig)
    while alive(record):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def tail(log: Path, lines: int = 25) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.exists() else "(no log)"


def rss_bytes(record: Record) -> int:
    """Resident memory of the daemon itself, without its children."""
    try:
        pages = int(Path(f"/proc/{record.pid}/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def peak_rss_bytes(record: Record) -> int:
    """The most that the daemon ever held (VmHWM)."""
    try:
        status = Path(f"/proc/{record.pid}/status").read_text()
    except OSError:
        return 0
    return next((int(row.split()[1]) * 1024 for row in status.splitlines() if row.startswith("VmHWM:")), 0)


def _path(name: str) -> Path:
    return settings.load().runtime / f"{name}.json"


def _start_time(pid: int) -> int | None:
    """Clock ticks since boot; None for no process or a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The command name stands in parentheses and may hold spaces: count fields after it (state is field 3).
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])
