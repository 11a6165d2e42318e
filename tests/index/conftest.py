"""Modules beside these tests are importable by name, as in tests/report."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
