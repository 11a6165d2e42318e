"""Where things live and what is external: one place that reads the environment."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs


@dataclass(frozen=True)
class Settings:
    """Folders and endpoints of this process.

    ``cache`` outlives a checkout (environment, artefacts, vectors); ``runtime`` belongs to one checkout (server data,
    sockets, recorded pids). As root both lie where an unprivileged server account can read them.
    """

    root: Path
    cache: Path
    runtime: Path
    mirror: Path | None
    opensearch_url: str | None
    opensearch_port: int
    postgres_dsn: str | None
    engines: str
    offline: bool


def _root() -> Path:
    return Path(os.environ.get("LOSSMAP_ROOT") or Path(__file__).resolve().parents[2])


def _cache() -> Path:
    if explicit := os.environ.get("LOSSMAP_CACHE"):
        return Path(explicit).absolute()
    return Path("/var/cache/lossmap") if os.geteuid() == 0 else Path(platformdirs.user_cache_dir("lossmap"))


def _runtime(root: Path) -> Path:
    if explicit := os.environ.get("LOSSMAP_RUNTIME"):
        return Path(explicit).absolute()
    # A short path: a Unix socket name ends at 107 bytes.
    tag = hashlib.sha256(str(root).encode()).hexdigest()[:8]
    return Path("/var/tmp") / f"lossmap-{os.geteuid()}-{tag}"


def _mirror(root: Path) -> Path | None:
    for candidate in (os.environ.get("LOSSMAP_MIRROR"), root.parent / "shared" / "corpora"):
        if candidate and Path(candidate).is_dir():
            return Path(candidate)
    return None


def load() -> Settings:
    root = _root()
    env = os.environ
    return Settings(
        root=root,
        cache=_cache(),
        runtime=_runtime(root),
        mirror=_mirror(root),
        opensearch_url=env.get("LOSSMAP_OPENSEARCH_URL") or None,
        opensearch_port=int(env.get("LOSSMAP_OPENSEARCH_PORT", "0")),
        postgres_dsn=env.get("LOSSMAP_POSTGRES_DSN") or None,
        engines=env.get("LOSSMAP_ENGINES", "auto"),
        offline=bool(env.get("LOSSMAP_OFFLINE")),
    )
