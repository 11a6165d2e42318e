"""What can be said of flake.nix and flake.lock without a binary cache. Nothing is built.

    python3 nix/check.py [ROOT]

Two groups. With Python alone: do the lock, the recorded attributes, the wheels and the requirements name the same
versions? With Nix (Debian's nix-bin suffices): does the flake parse, agree with its lock, and evaluate against
nix/stub, which has the recorded attributes and no other? Exit 1 when a check finds a fault; where Nix is absent its
checks are counted and named as skipped.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SYSTEM = "x86_64-linux"
OUTPUTS = (
    f"devShells.{SYSTEM}.default",
    f"devShells.{SYSTEM}.assembled",
    f"packages.{SYSTEM}.paper",
    f"formatter.{SYSTEM}",
)
FLAKE = ("flake.nix", "flake.lock", "nix")
INSTALL = "apt-get install -y --no-install-recommends nix-bin git"

Faults = list[str]


def lock_agreement(inputs: dict[str, Any], lock: dict[str, Any]) -> Faults:
    """Where a version-7 lock says something else than the flake's ``inputs`` (url, and the follows edges of each)."""
    nodes = lock["nodes"]
    locked = nodes[lock["root"]].get("inputs", {})
    faults = [f"lock version {lock['version']}, not 7"] if lock["version"] != 7 else []
    faults += [f"input {name} is in flake.nix or flake.lock only" for name in sorted(set(locked) ^ set(inputs))]
    for name in sorted(set(locked) & set(inputs)):
        faults += [f"input {name}: {fault}" for fault in _node_faults(inputs[name], nodes[locked[name]])]
    return faults


def _node_faults(declared: dict[str, Any], node: dict[str, Any]) -> Iterator[str]:
    original, locked = node["original"], node["locked"]
    url = f"{original['type']}:{original['owner']}/{original['repo']}"
    url += f"/{original['ref']}" if "ref" in original else ""
    if url != declared["url"]:
        yield f"flake.nix has {declared['url']}, flake.lock has {url}"
    if [locked[key] for key in ("type", "owner", "repo")] != [original[key] for key in ("type", "owner", "repo")]:
        yield "flake.lock locked another repository than it names"
    if not re.fullmatch(r"[0-9a-f]{40}", locked["rev"]):
        yield f"rev {locked['rev']!r} is not 40 hexadecimal digits"
    if sri_hex(locked["narHash"]) is None:
        yield f"narHash {locked['narHash']!r} is not a SHA-256"
    edges = {inner: spec.get("follows") for inner, spec in declared.get("inputs", {}).items()}
    want = {inner: path.split("/") for inner, path in edges.items() if path}
    have = {inner: path for inner, path in node.get("inputs", {}).items() if isinstance(path, list)}
    if want != have:
        yield f"follows edges: flake.nix has {want}, flake.lock has {have}"


def sri_hex(sri: str) -> str | None:
    """Hexadecimal digits of ``sha256-<base64>``; None when it is malformed."""
    kind, _, text = sri.partition("-")
    try:
        digest = base64.b64decode(text, validate=True)
    except binascii.Error:
        return None
    return digest.hex() if kind == "sha256" and len(digest) == 32 else None


def pin_agreement(root: Path) -> Faults:
    """The recorded attributes were written for the branch and commit that flake.lock names."""
    node = _json(root / "flake.lock")["nodes"]["nixpkgs"]
    lock = {"ref": node["original"].get("ref"), "rev": node["locked"]["rev"]}
    recorded = attributes(root)["nixpkgs"]
    return [
        f"nixpkgs {key}: flake.lock has {lock[key]}, nix/stub/attrs.json has {recorded[key]}"
        for key in lock
        if lock[key] != recorded[key]
    ]


def wheel_agreement(root: Path) -> Faults:
    """Each wheel of nix/wheels.json is the version and one of the files that the requirements pin, for our Python."""
    pins, faults = requirements(root), []
    interpreters = [name for name in attributes(root)["packages"] if re.fullmatch(r"python\d+", name)]
    tags = {"py3", *(f"cp{name.removeprefix('python')}" for name in interpreters)}
    for wheel in _json(root / "nix/wheels.json"):
        name = wheel["pname"].replace("_", "-")
        versions, hashes = pins.get(name, (set(), set()))
        if wheel["version"] not in versions:
            faults.append(f"{name}: nix/wheels.json has {wheel['version']}, requirements have {sorted(versions)}")
        if sri_hex(wheel["hash"]) not in hashes:
            faults.append(f"{name}: the hash of nix/wheels.json is none of those that the requirements pin")
        if wheel["python"] not in tags:
            faults.append(f"{name}: a wheel for {wheel['python']}, but flake.nix takes {', '.join(interpreters)}")
    return faults


def coverage(root: Path) -> Faults:
    """Everything of core.in is in the shell, and every recorded attribute is used."""
    known = attributes(root)
    flake = (root / "flake.nix").read_text()
    wheels = _json(root / "nix/wheels.json")
    given = {*known["packages"], *known["python"], *(wheel["pname"].replace("_", "-") for wheel in wheels)}
    asked = re.findall(r"^([\w.-]+)", (root / "requirements/core.in").read_text(), flags=re.MULTILINE)
    used = {*re.findall(r"\.([A-Za-z][\w-]*)", flake), *(name for wheel in wheels for name in wheel["dependencies"])}
    listed = [name for group in ("packages", "python", "texlive") for name in known[group]]
    return [
        *(f"{name} is in requirements/core.in and not in the shell" for name in asked if name not in given),
        *(f"{name} is recorded in nix/stub/attrs.json and not used" for name in listed if name not in used),
    ]


def snakemake_is_new_enough(root: Path) -> Faults:
    """The recorded Snakemake satisfies the Snakefile's min_version."""
    found = re.search(r'min_version\("([\d.]+)"\)', (root / "Snakefile").read_text())
    if found is None:
        return ["the Snakefile names no min_version"]
    least = found[1]
    recorded = attributes(root)["packages"]["snakemake"]["version"]
    numbers = [[int(part) for part in version.split(".")] for version in (recorded, least)]
    return [] if numbers[0] >= numbers[1] else [f"recorded Snakemake {recorded}, the Snakefile needs {least}"]


def version_notes(root: Path) -> list[str]:
    """Recorded versions that differ from the plain machine's: no fault, since nixpkgs moves by itself, but said."""
    plain = {name: versions for name, (versions, _) in requirements(root).items()}
    engine = (root / "src/lossmap/engine/distribution.py").read_text()
    plain["opensearch"] = set(re.findall(r'^OPENSEARCH_VERSION = "(.+)"', engine, flags=re.MULTILINE))
    known = attributes(root)
    return [
        f"{name}: nixpkgs {entry['version']} (as recorded), plain machine {', '.join(sorted(plain[name]))}"
        for name, entry in sorted({**known["packages"], **known["python"]}.items())
        if "version" in entry and name in plain and entry["version"] not in plain[name]
    ]


def attributes(root: Path) -> dict[str, Any]:
    return _json(root / "nix/stub/attrs.json")


def requirements(root: Path) -> dict[str, tuple[set[str], set[str]]]:
    """Versions and SHA-256 digests by package name, over requirements/*.txt."""
    pins: dict[str, tuple[set[str], set[str]]] = {}
    for path in sorted((root / "requirements").glob("*.txt")):
        for block in re.split(r"\n(?=[a-z0-9])", path.read_text()):
            if head := re.match(r"([\w.-]+)==([^\s;]+)", block):
                versions, hashes = pins.setdefault(head[1], (set(), set()))
                versions.add(head[2])
                hashes.update(re.findall(r"sha256:([0-9a-f]{64})", block))
    return pins


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


class Nix:
    """Nix on a copy of the flake, in a store of its own: /nix is neither needed nor written."""

    def __init__(self, folder: Path) -> None:
        self.tree = folder / "tree"
        config = "experimental-features = nix-command flakes\nbuild-users-group =\nsubstituters =\n"
        places = {f"NIX_{name}_DIR": str(folder / name.lower()) for name in ("STORE", "STATE", "LOCALSTATE", "LOG")}
        self.env = {**os.environ, "NIX_CONFIG": config, "HOME": str(folder), **places}
        self.stub = ["--override-input", "nixpkgs", f"path:{self.tree}/nix/stub", "--no-write-lock-file"]

    def run(self, *command: str) -> tuple[str, Faults]:
        """Standard output, and the last lines of what it said when it failed."""
        done = subprocess.run(command, cwd=self.tree, env=self.env, capture_output=True, text=True)
        said = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("warning:")]
        return done.stdout, [f"{' '.join(command[:4])}: " + " | ".join(said[-4:])] if done.returncode else []

    def parse(self) -> Faults:
        files = sorted(str(path) for path in self.tree.rglob("*.nix"))
        return [fault for file in files for fault in self.run("nix-instantiate", "--parse", file)[1]]

    def agreement(self) -> Faults:
        expression = "(import ./flake.nix).inputs"
        text, faults = self.run("nix", "--offline", "eval", "--json", "--impure", "--expr", expression)
        return faults or lock_agreement(json.loads(text), _json(self.tree / "flake.lock"))

    def lock_is_stable(self) -> Faults:
        path = self.tree / "flake.lock"
        before = path.read_bytes()
        faults = self.run("nix", "--offline", "flake", "lock")[1]
        changed = path.read_bytes() != before
        path.write_bytes(before)
        return faults or (["`nix --offline flake lock` changes flake.lock"] if changed else [])

    def flake_check(self) -> Faults:
        return self.run("nix", "--offline", "flake", "check", "--no-build", *self.stub)[1]

    def outputs(self) -> Faults:
        calls = (["nix", "--offline", "eval", "--raw", f".#{name}.drvPath", *self.stub] for name in OUTPUTS)
        return [fault for call in calls for fault in self.run(*call)[1]]


@contextmanager
def nix_copy(root: Path) -> Iterator[Nix]:
    """A git checkout of the flake alone: Nix reads only what git knows, and must not write into the real tree."""
    with tempfile.TemporaryDirectory(prefix="lossmap-nix-") as folder:
        nix = Nix(Path(folder))
        nix.tree.mkdir()
        for name in FLAKE:
            source, target = root / name, nix.tree / name
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)
        for command in (["git", "init", "-q"], ["git", "add", "-A"]):
            subprocess.run(command, cwd=nix.tree, env=nix.env, check=True)
        yield nix


PLAIN: dict[str, Callable[[Path], Faults]] = {
    "lock and recorded attributes name one nixpkgs": pin_agreement,
    "wheels are those of the requirements": wheel_agreement,
    "the shell has what core.in asks, and no attribute is idle": coverage,
    "Snakemake is new enough": snakemake_is_new_enough,
}
WITH_NIX: dict[str, Callable[[Nix], Faults]] = {
    "every .nix file parses": Nix.parse,
    "flake.nix and flake.lock agree": Nix.agreement,
    "`nix flake lock` changes nothing": Nix.lock_is_stable,
    "`nix flake check --no-build` against recorded attributes": Nix.flake_check,
    "shells, paper and formatter evaluate against recorded attributes": Nix.outputs,
}


def missing_programs() -> list[str]:
    return [name for name in ("nix", "nix-instantiate", "git") if shutil.which(name) is None]


def check(root: Path) -> dict[str, Faults]:
    """Faults by check; the checks that need Nix are left out where it is absent."""
    found = {label: test(root) for label, test in PLAIN.items()}
    if not missing_programs():
        with nix_copy(root) as nix:
            found |= {label: test(nix) for label, test in WITH_NIX.items()}
    return found


def main(arguments: list[str]) -> int:
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parents[1]
    begin = time.monotonic()
    found = check(root)
    for label, faults in found.items():
        print(f"nix: {'FAULT' if faults else 'ok':<6}{label}")
        for fault in faults:
            print(f"nix:       {fault}")
    for note in version_notes(root):
        print(f"nix: note  {note}")
    if missing := missing_programs():
        print(f"nix: SKIPPED {len(WITH_NIX)} checks, no {', '.join(missing)}; mend it with: {INSTALL}")
        for label in WITH_NIX:
            print(f"nix: skip  {label}")
    broken = sum(map(bool, found.values()))
    seconds = time.monotonic() - begin
    print(f"nix: {len(found) - broken} checks passed, {broken} failed, in {seconds:.1f} s; nothing built")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
