"""The smoke scale on what the Nix shell gives: about 90 s, so .ci/run asks for it and a plain `./run test` does not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.timeout(900)  # the whole smoke scale
@pytest.mark.skipif(not os.environ.get("LOSSMAP_SIMULATE"), reason="set LOSSMAP_SIMULATE=1 for it, as .ci/run does")
def test_smoke_scale_in_the_played_shell() -> None:
    script = Path(__file__).with_name("simulate.py")
    env = {**os.environ, "PYTHONPATH": str(script.parents[2] / "src")}
    subprocess.run([sys.executable, script], env=env, check=True)
