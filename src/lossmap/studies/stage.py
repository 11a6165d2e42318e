"""Studies over the arms of one stage: contrasts, sensitivity of verdicts, approximate recall, the index card."""

from __future__ import annotations

from typing import Any

import numpy as np

from lossmap import canon, layout, transcript
from lossmap.judge import qrels, runs
from lossmap.layout import Layout
from lossmap.search import legs
from lossmap.studies import compare, judging, sensitivity
from lossmap.studies.measure import index_block

DEPTHS = (10, 48)
LOW_RECALL = 0.5


def classes(at: Layout) -> dict[str, str]:
    return {q.query_id: q.query_class for key in at.corpora for q in transcript.read_queries(at.corpus(key))}


def contrasts(at: Layout, stage: str) -> dict[str, Any]:
    """deltas.json: every contrast of arms.yaml, paired and with both intervals."""
    arms, class_of = at.stage(stage) / "arms", classes(at)
    return {
        "contrasts": [
            {"under_test": factor, **compare.compare(arms / arm, arms / control, class_of)}
            for arm, control, factor in layout.arms(at)["stages"][stage]["contrasts"]
        ]
    }


def verdicts(at: Layout, stage: str) -> dict[str, Any]:
    """sensitivity.json per corpus: every arm and contrast under every relevance policy."""
    stanza = layout.arms(at)["stages"][stage]
    pairs = [(arm, control) for arm, control, _ in stanza["contrasts"]]
    found = {name: runs.read_run(at.stage(stage) / "arms" / name / "run.txt.gz") for name in stanza["arms"]}
    out = []
    for key in at.corpora:
        corpus = judging.load(at, key)
        if qrels.grade(corpus.coverage).qrels:
            study = sensitivity.sensitivity(corpus.coverage, found, corpus.classes, corpus.groups, pairs)
            out.append({"corpus": key, "tier": corpus.card["tier"], "judged_by": corpus.card["judged_by"], **study})
    return {"corpora": out}


def ann(at: Layout) -> list[dict[str, Any]]:
    """Recall of every HNSW leg against the exact leg of its scope, by id and by score.

    By id a hit counts only when the exact list holds the same row. By score it counts when it is as near as the exact
    list's last: equal texts have equal vectors, and which of them a list ends with is no matter of quality.
    """
    stanzas = layout.arms(at)["legs"]
    exact = {spec["scope"]: legs.load(at.leg(name)) for name, spec in stanzas.items() if spec["kind"] == "exact"}
    return [
        _ann_row(name, spec, legs.load(at.leg(name)), exact[spec["scope"]], depth)
        for name, spec in stanzas.items()
        if spec["kind"] == "hnsw"
        for depth in DEPTHS
    ]


def _ann_row(name: str, spec: dict[str, Any], approximate: legs.Leg, exact: legs.Leg, depth: int) -> dict[str, Any]:
    by_id = legs.recall(approximate, exact, depth)
    by_score = legs.recall_by_score(approximate, exact, depth)
    hits = (approximate.rows >= 0).sum(axis=1)
    return {
        "leg": name,
        "scope": spec["scope"],
        "filter": spec.get("filter", "none"),
        "k": spec["k"],
        "depth": depth,
        "queries": len(by_id),
        **_spread("recall", by_id),
        **_spread("recall_by_score", by_score),
        "hits_mean": float(hits.mean()) if len(hits) else 0.0,
        "queries_without_hits": int((hits == 0).sum()),
    }


def _spread(name: str, values: np.ndarray) -> dict[str, float | None]:
    if not len(values):
        return {f"{name}_{part}": None for part in ("mean", "p5", "min", "low_share")}
    return {
        f"{name}_mean": float(values.mean()),
        f"{name}_p5": float(np.quantile(values, 0.05)),
        f"{name}_min": float(values.min()),
        f"{name}_low_share": float((values < LOW_RECALL).mean()),
    }


def index_card(at: Layout) -> dict[str, Any]:
    """index.json: what was injected, chunked, judged and indexed, and how well the graph finds its neighbours."""
    manifest = canon.read_json(at.index_folder / "manifest.json")
    injections = {key: canon.read_json(at.injection(key) / "manifest.json") for key in at.corpora}
    judged = {key: canon.read_json(at.build / "judge" / f"{key}.json") for key in at.corpora}
    chunking = manifest["chunking"]
    counts = [injection["counts"] for injection in injections.values()]
    return {
        **index_block(manifest),
        "index_sha256": manifest["index_sha256"],
        "identity": manifest["identity"],
        "engine": manifest["engine"],
        "segments": sum(c["segments"] for c in counts),
        "speakers": sum(c["speakers"] for c in counts),
        "words_per_chunk": chunking["words"] / chunking["chunks"] if chunking["chunks"] else 0.0,
        "distinct_texts": chunking["distinct_texts"],
        "duplicate_share": 1 - chunking["distinct_texts"] / chunking["chunks"] if chunking["chunks"] else 0.0,
        "state": manifest["state"],
        "injection": injections,
        "judgements": judged,
        "ann": ann(at),
    }
