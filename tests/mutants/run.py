"""Prove that each guard is alive: apply one patch to a copy of the tree, run the test it names, expect red.

A patch names its test in its first line: ``test: tests/search/test_pin.py::test_name``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
COPIED = ("src", "tests", "workflow", "paper", "pyproject.toml", "run", "Snakefile", "requirements", "profiles")


def red(patch: Path) -> bool:
    """Whether the patched copy fails the test that the patch names."""
    test = patch.read_text(encoding="utf-8").splitlines()[0].removeprefix("test:").strip()
    with tempfile.TemporaryDirectory(prefix="lossmap-mutant-") as scratch:
        for name in COPIED:
            source = ROOT / name
            (shutil.copytree if source.is_dir() else shutil.copyfile)(source, Path(scratch) / name)
        subprocess.run(["git", "apply", "--directory=", str(patch)], cwd=scratch, check=True)
        environment = {**_environment(), "PYTHONPATH": f"{scratch}/src", "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", test],
            cwd=scratch,
            env=environment,
            capture_output=True,
            text=True,
        )
    # Exit code 1 is a failed test; anything else (no such test, an import error) proves nothing.
    return done.returncode == 1


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("LOSSMAP_R")}


def main() -> int:
    patches = sorted(HERE.glob("*.patch"))
    # Each works on a copy of its own, so that as many run at a time as there are cores.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        proved = dict(zip(patches, pool.map(red, patches)))
    for patch, failed in proved.items():
        print("red, as it must be" if failed else "GREEN: the guard is dead", patch.name)
    return 0 if patches and all(proved.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
