"""Studies over the arms of one stage: contrasts, sensitivity of verdicts, approximate recall, the index card."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lossmap import canon, layout, transcript
from lossmap.judge import qrels, runs
from lossmap.layout import Layout
from lossmap.studies import ann, compare, judging, peers, sensitivity
from lossmap.studies.measure import index_block


def classes(at: Layout) -> dict[str, str]:
    return {q.query_id: q.query_class for key in at.scored for q in transcript.read_queries(at.corpus(key))}


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
    for key in at.scored:
        corpus = judging.load(at, key)
        if qrels.grade(corpus.coverage).qrels:
            study = sensitivity.sensitivity(corpus.coverage, found, corpus.classes, corpus.groups, pairs)
            out.append({"corpus": key, "tier": corpus.card["tier"], "judged_by": corpus.card["judged_by"], **study})
    return {"corpora": out}


def index_card(at: Layout) -> dict[str, Any]:
    """index.json: what was injected, chunked, judged and indexed, and how well the graph finds its neighbours."""
    manifest = canon.read_json(at.index_folder / "manifest.json")
    injections = {key: canon.read_json(at.injection(key) / "manifest.json") for key in at.documents}
    judged = {key: canon.read_json(at.judged(key).with_name(f"{key}.json")) for key in at.scored}
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
        "ann": ann.every(at),
    }


STUDIES: dict[str, Callable[[Layout, str], Any]] = {
    "corpus": lambda at, _: transcript.read_card(at.corpus(at.documents[0])),
    "inject": lambda at, _: canon.read_json(at.injection(at.documents[0]) / "manifest.json"),
    "index": lambda at, _: index_card(at),
    "deltas": contrasts,
    "sensitivity": verdicts,
    "peers": lambda at, _: peers.table(),
}
