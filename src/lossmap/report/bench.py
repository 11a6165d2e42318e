"""Wall time and peak memory of the rules, read from Snakemake's own benchmark files."""

from __future__ import annotations

import csv
import os
import platform
from typing import Any

from lossmap import canon, engine
from lossmap.layout import Layout
from lossmap.report import collect, ledger


def run(at: Layout) -> dict[str, Any]:
    """results/bench: rules.json with seconds and resident MiB of each rule, and what the two servers hold."""
    rows = []
    folder = at.build / "bench"
    for path in sorted(folder.rglob("*.tsv")):
        rule = path.relative_to(folder).with_suffix("").as_posix()
        with open(path, encoding="utf-8", newline="") as handle:
            for row in csv.DictReader(handle, delimiter="\t"):
                rows.append({"rule": rule, "seconds": float(row["s"]), "max_rss_mib": _number(row["max_rss"])})
    servers = {
        name: {"version": state.get("version"), "rss_mib": (state.get("rss_bytes") or 0) / 2**20}
        for name, state in engine.status().items()
    }
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "machine": platform.machine()}
    document = {
        "scale": at.scale,
        "machine": machine,
        "rules": rows,
        "servers": servers,
        "seconds_total": sum(row["seconds"] for row in rows),
    }
    folder = at.results / "bench"
    canon.write_json(folder / "rules.json", document)
    ledger.write(folder, "bench", at.scale, collect.digests(at)["bench"], {})
    return document


def _number(text: str) -> float | None:
    """Snakemake writes ``-`` where a rule ended before the first sample."""
    return None if text in ("-", "NA", "") else float(text)
