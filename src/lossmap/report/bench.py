"""Wall time and peak memory of the rules, read from Snakemake's own benchmark files."""

from __future__ import annotations

import csv
import os
import platform
from pathlib import Path
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
                measured = {"seconds": float(row["s"]), "max_rss_mib": _number(row["max_rss"])}
                rows.append({"rule": rule, **measured, "reused": _reused(folder, rule)})
    servers = {
        name: {"version": state.get("version"), "peak_rss_mib": (state.get("peak_rss_bytes") or 0) / 2**20}
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
    found = {"rules.json": "bench"}
    if (measured := at.build / "bench" / "latency.json").exists():
        canon.write_json(folder / measured.name, canon.read_json(measured))
        found[measured.name] = "latency"
    written = {
        name: ledger.entry(folder / name, rule, at.scale, collect.digests(at)[rule], {}) for name, rule in found.items()
    }
    ledger.write(folder, at.scale, written)
    return document


def _reused(folder: Path, rule: str) -> int:
    """How many texts or chunks a rule found already done: a time over those is no time of the work."""
    note = folder / f"{rule}.reused.json"
    return int(canon.read_json(note)["reused"]) if note.exists() else 0


def _number(text: str) -> float | None:
    """Snakemake writes ``-`` where a rule ended before the first sample."""
    return None if text in ("-", "NA", "") else float(text)
