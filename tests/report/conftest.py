from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import tree  # noqa: E402


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A complete results root at smoke scale."""
    return tree.plant(tmp_path / "results")
