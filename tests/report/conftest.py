from __future__ import annotations

from pathlib import Path

import pytest
import tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A complete results root at smoke scale."""
    return tree.plant(tmp_path / "results")
