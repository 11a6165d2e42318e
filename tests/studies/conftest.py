"""Modules beside these tests are importable by name, as in tests/report."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lossmap import canon, layout
from lossmap.layout import Layout

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def rooted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Layout]:
    """A root of its own at smoke scale: its indexes, and the arms of the chapter on corpora."""

    def make(indexes: dict[str, Any], arms: dict[str, Any] | None = None) -> Layout:
        config = {"scale": "smoke", "scales": {"smoke": {"indexes": indexes}}}
        canon.write_json(tmp_path / "workflow/config/config.yaml", config)
        canon.write_json(tmp_path / "workflow/config/arms.yaml", {"stages": {"corpora": {"arms": arms or {}}}})
        monkeypatch.setenv("LOSSMAP_ROOT", str(tmp_path))
        return layout.load()

    return make
