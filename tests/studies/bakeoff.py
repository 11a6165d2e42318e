"""A root with scored arms of Stage 5 in it: what studies over families read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import planted
import pytest

from lossmap import canon, layout
from lossmap.judge import evaluate
from lossmap.layout import Layout

LEGS = {
    "bm25": {"kind": "text", "scope": "corpus", "depth": 500},
    "exact": {"kind": "exact", "scope": "corpus", "depth": 500},
}
CONTROL = "rrf-30-default"
FUSION = [
    {"axis": "control"},
    {"axis": "inert", "rank_constant": 30},
    {"axis": "rank_constant", "rank_constant": 60},
    {"axis": "combination", "normalization": "min_max", "combination": "geometric_mean"},
    {"axis": "weighting", "normalization": "min_max", "combination": "arithmetic_mean", "weights": [0.7, 0.3]},
]
ARMS = ("rrf-30", "rrf-60", "norm-min_max-geometric_mean", "norm-min_max-arithmetic_mean-w70_30")
RERANKED = [{"axis": "control", "final": 12}, {"axis": "rerank", "rerank": {"by": "cross"}, "final": 12}]
GATE = {
    "up": {"class": "all", "measure": "nDCG@10"},
    "protected": ["lookup", "verbatim"],
    "families": ["fusion", "parts"],
}
PER_CLASS = {"lookup": 6, "summarize": 3}


def root(
    at: Path, monkeypatch: pytest.MonkeyPatch, benches: list[str], agreed: list[str] | None = None, parts: bool = False
) -> Layout:
    """Families fusion (and parts, with a re-ranker) over ``benches``; the agreement chapter over ``agreed``."""
    indexes = {
        b.split("/")[0]: {"documents": [], "scored": [b.partition("/")[2] or b]} for b in [*benches, *(agreed or [])]
    }
    families = {"fusion": {"benches": benches}, **({"parts": {"benches": benches}} if parts else {})}
    known = {
        "fusion": {"control": CONTROL, "arms": FUSION},
        "parts": {"control": f"{CONTROL}.final12", "arms": RERANKED},
    }
    known |= {name: {"control": CONTROL, "arms": FUSION[:1]} for name in ("pool", "budget")}
    asked = {name: {"benches": agreed or benches} for name in families}
    chapters = {"stage5": {"families": families}, "agreement": {"families": asked}}
    scale = {"indexes": indexes, "chapters": chapters, "rerankers": {"cross": "tiny", "bi": "bge"}}
    stage = {"defaults": {"mode": "hybrid", "legs": ["bm25", "exact"], "size": 48}, "families": known}
    config = at / "workflow" / "config"
    canon.write_json(config / "config.yaml", {"scale": "smoke", "scales": {"smoke": scale}})
    canon.write_json(config / "arms.yaml", {"legs": LEGS, "stages": {"stage5": stage}})
    canon.write_json(config / "gates.yaml", {"stage5": GATE})
    canon.write_json(config / "rerankers.yaml", {"tiny": {"data": {"corpus": "learned.dev"}}, "bge": {}})
    monkeypatch.setenv("LOSSMAP_ROOT", str(at))
    return layout.load()


def queries(key: str) -> dict[str, str]:
    """Query id to class."""
    names = [name for name, count in PER_CLASS.items() for _ in range(count)]
    return {f"{key}:m{place % 4}:{place:03d}": name for place, name in enumerate(names)}


def score(
    at: Layout, bench: str, arms: Mapping[str, float | Mapping[str, float]], tier: str = "A", level: float = 0.4
) -> None:
    """``arms``: id to what it adds to every measure of the control, or by class; the control is scored too."""
    key = bench.partition("/")[2] or bench
    asked = queries(key)
    planted.corpus(at, key, [], {query_id: ("x", name) for query_id, name in asked.items()}, {})
    steady = level + 0.01 * np.arange(len(asked)) / len(asked)
    for arm, gain in {CONTROL: 0.0, f"{CONTROL}.final12": 0.0, **arms}.items():
        gains = [gain.get(name, 0.0) if isinstance(gain, Mapping) else gain for name in asked.values()]
        values = dict(zip(asked, (steady + gains).tolist()))
        planted.arm(at.stage("stage5") / "scored" / bench / arm, arm, values, asked, tier=tier)


def lack(at: Layout, bench: str, arms: tuple[str, ...] = ARMS) -> None:
    """A bench whose corpus could not be had."""
    for arm in (CONTROL, f"{CONTROL}.final12", f"{CONTROL}.cross50.final12", *arms):
        folder = at.stage("stage5") / "scored" / bench / arm
        canon.write_json(folder / "metrics.json", {"arm": {"id": arm}, "hashes": planted.HASHES, "rows": []})
        canon.write_csv_gz(folder / "per_query.csv.gz", evaluate.PER_QUERY_HEADER, [])
