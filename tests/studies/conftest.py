"""A root of their own for the studies' tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lossmap import canon, layout
from lossmap.layout import Layout


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
