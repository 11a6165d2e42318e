"""nix/check.py as a module, and copies of what it reads."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
READ = ("flake.nix", "flake.lock", "nix", "requirements", "Snakefile", "src/lossmap/engine/distribution.py")


@pytest.fixture(scope="session")
def checks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("nix_check", ROOT / "nix/check.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy that a test may break."""
    for name in READ:
        source, target = ROOT / name, tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)
    return tmp_path
