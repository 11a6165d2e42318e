"""Both servers together: up, down, status, and a context for code that needs them."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

from lossmap import settings
from lossmap.engine import distribution, opensearch, postgres, process

SERVERS: dict[str, ModuleType] = {"opensearch": opensearch, "postgres": postgres}


def up() -> dict[str, str]:
    """Endpoints by server name. Idempotent: what runs is reused, what does not is started."""
    return {name: server.up() for name, server in SERVERS.items()}


def down() -> dict[str, bool]:
    """Stop what we started; True by name where something ran."""
    return {name: server.down() for name, server in SERVERS.items()}


def status() -> dict[str, dict[str, Any]]:
    """By server name: ``state`` up, down or external; endpoint, pid, version and resident bytes where they apply."""
    config = settings.load()
    external = {"opensearch": config.opensearch_url, "postgres": config.postgres_dsn}
    return {name: _state(name, external[name]) for name in SERVERS}


def without_password(endpoint: str) -> str:
    """A URL or a DSN as it may be printed."""
    return re.sub(r"//[^/@]*@|\bpassword=('(\\.|[^'])*'|\S+)\s*", lambda m: "//" if m[0][0] == "/" else "", endpoint)


def _state(name: str, external: str | None) -> dict[str, Any]:
    if external:
        return {"state": "external", "endpoint": without_password(external)}
    record = process.live(name)
    if record is None:
        return {"state": "down"}
    return {
        "state": "up",
        "endpoint": record.endpoint,
        "pid": record.pid,
        "version": record.version,
        "rss_bytes": process.rss_bytes(record),
        "peak_rss_bytes": process.peak_rss_bytes(record),
    }


def fetch() -> None:
    """Assemble what `up` would need and start nothing; external engines need nothing."""
    config = settings.load()
    if not config.postgres_dsn:
        postgres.binaries()
    if not config.opensearch_url and opensearch.path_binary() is None:
        distribution.java()
        distribution.assemble()
