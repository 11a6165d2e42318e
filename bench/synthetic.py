"""The synthetic corpus at full scale with one process and with two, side by side in one run.

    PYTHONPATH=src python bench/synthetic.py [meetings]

Prints seconds, words a second, the peak resident memory of the largest process, and whether the bytes are the same.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lossmap import canon
from lossmap.synthetic.generate import SUMS, generate
from lossmap.synthetic.world import Config

MEETINGS = 2000


def run(meetings: int, workers: int, out: Path) -> None:
    """One generation in a process of its own, so that each peak is its own."""
    begin = time.perf_counter()
    stats = generate(Config(meetings=meetings), out, workers=workers)
    seconds = time.perf_counter() - begin
    peaks = [resource.getrusage(who).ru_maxrss / 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(
        f"workers {workers}: {seconds:.1f} s, {stats['words']} words, {stats['words'] / seconds:.0f} words/s, "
        f"peak {peaks[0]:.0f} MiB (parent), {peaks[1]:.0f} MiB (largest worker)"
    )


def main() -> None:
    meetings = int(sys.argv[1]) if len(sys.argv) > 1 else MEETINGS
    if len(sys.argv) > 2:
        return run(meetings, int(sys.argv[2]), Path(sys.argv[3]))
    with tempfile.TemporaryDirectory() as folder:
        outs = [Path(folder) / f"workers-{workers}" for workers in (1, 2)]
        for workers, out in enumerate(outs, 1):
            subprocess.run([sys.executable, __file__, str(meetings), str(workers), str(out)], check=True)
        size = sum(path.stat().st_size for path in outs[0].rglob("*") if path.is_file())
        same = canon.file_sha256(outs[0] / SUMS) == canon.file_sha256(outs[1] / SUMS)
        print(f"{meetings} meetings, {size / 1e6:.0f} MB; bytes of both runs are {'the same' if same else 'DIFFERENT'}")


if __name__ == "__main__":
    main()
