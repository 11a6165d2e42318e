"""Where things live and what is external: one place that reads the environment."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from lossmap.errors import LossmapError


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
    if explicit := os.environ.get("LOSSMAP_MIRROR"):
        if not Path(explicit).is_dir():
            raise _unusable("LOSSMAP_MIRROR", explicit, "an existing folder")
        return Path(explicit)
    beside = root.parent / "shared" / "corpora"
    return beside if beside.is_dir() else None


def _unusable(name: str, observed: str, expected: str) -> LossmapError:
    """A setting that would be ignored is an error, or a run is not the one that was asked for."""
    mend = f"correct or unset {name}"
    return LossmapError(
        "a setting is unusable", where=name, observed=observed, expected=expected, next_command=mend, exit_code=2
    )


def _choice(name: str, default: str, known: tuple[str, ...]) -> str:
    value = os.environ.get(name) or default
    if value not in known:
        raise _unusable(name, value, " or ".join(known))
    return value


def _port() -> int:
    value = os.environ.get("LOSSMAP_OPENSEARCH_PORT") or "0"
    if not value.isdigit() or int(value) > 65_535:
        raise _unusable("LOSSMAP_OPENSEARCH_PORT", value, "0 (a free one) to 65535")
    return int(value)


def load() -> Settings:
    root = _root()
    env = os.environ
    return Settings(
        root=root,
        cache=_cache(),
        runtime=_runtime(root),
        mirror=_mirror(root),
        opensearch_url=env.get("LOSSMAP_OPENSEARCH_URL") or None,
        opensearch_port=_port(),
        postgres_dsn=env.get("LOSSMAP_POSTGRES_DSN") or None,
        engines=_choice("LOSSMAP_ENGINES", "auto", ("auto", "embedded")),
        offline=bool(env.get("LOSSMAP_OFFLINE")),
    )
