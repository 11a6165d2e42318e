"""One arm, measured: frozen legs to a ranking, a ranking to the metrics document and its files."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lossmap import canon, layout
from lossmap.errors import LossmapError
from lossmap.index import table
from lossmap.judge import evaluate, intervals, measures, qrels, runs
from lossmap.judge.evaluate import Evaluation
from lossmap.judge.qrels import Graded, RelevancePolicy
from lossmap.layout import Layout
from lossmap.search import arms, legs, pin, pipeline, rerank, staged
from lossmap.studies import ann, judging

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Options:
    """What a call may move apart from the arm itself; ``limit`` 0 scores every query."""

    policy: RelevancePolicy = RelevancePolicy()
    limit: int = 0
    expect_files: int = 0

    def __post_init__(self) -> None:
        if self.limit < 0:
            raise LossmapError(
                "a limit below zero",
                observed=self.limit,
                expected="0 for all queries, or N",
                exit_code=2,
                next_command="./run lossmap measure --help",
            )


def ranking(at: Layout, arm: Mapping[str, Any]) -> dict[str, list[tuple[str, float]]]:
    """Query id to (document id, score), best first, from the frozen legs of this scale.

    The score of a list that was re-ranked or diversified is its place: two scales of score never meet in one list.
    """
    rows = table.load(at.index_folder)
    doc_ids, frozen = table.doc_ids(rows), {name: legs.of_index(at, name) for name in arm["legs"]}
    if not staged.of(arm):
        ranked = pipeline.rank(arm, frozen)
        return {query_id: [(doc_ids[row], score) for row, score in hits] for query_id, hits in ranked.items()}
    scores = legs.of_index(at, arm["rerank"]["by"]) if "rerank" in arm else None
    final = staged.rank(arm, frozen, scores, lambda row: rows[row].file_uuid)[-1][1]
    return {
        query_id: [(doc_ids[row], score) for row, score in rerank.positional(chosen)]
        for query_id, chosen in final.items()
    }


def measure(at: Layout, arm_id: str, arm: Mapping[str, Any], out: Path, options: Options = Options()) -> dict[str, Any]:
    """Write metrics.json and metrics.md, per_query.csv.gz, run and qrels, runinfo.json into ``out``; the document."""
    begin = time.monotonic()
    manifest = canon.read_json(at.index_folder / "manifest.json")
    check_files(at, manifest, options.expect_files)
    run = ranking(at, arm)
    scored: list[tuple[judging.Corpus, Graded, Evaluation]] = []
    for key in at.scored:
        corpus = judging.load(at, key)
        graded = limited(qrels.grade(corpus.coverage, options.policy), options.limit)
        if graded.qrels:
            mine = {query_id: run[query_id] for query_id in graded.qrels if query_id in run}
            found = evaluate.evaluate(corpus.card, corpus.queries, graded.qrels, mine, corpus.groups)
            scored.append((corpus, graded, found))
    document = _document(at, arm_id, arm, options, manifest, scored)
    canon.write_json(out / "metrics.json", document)
    canon.write_text(out / "metrics.md", markdown(document))
    _write_runs(out, arm_id, scored)
    # The one file that may differ between two runs.
    canon.write_json(out / "runinfo.json", {"elapsed_seconds": time.monotonic() - begin, "host": platform.platform()})
    return document


def score(scale: str, chapter: str, arm_id: str, arm: Mapping[str, Any], benches: Sequence[str]) -> None:
    """The rule: one arm of a chapter over several benches, a folder each."""
    for bench in benches:
        at = layout.load(scale, bench)
        measure(at, arm_id, arm, at.stage(chapter) / "scored" / bench / arm_id)


def check_files(at: Layout, manifest: Mapping[str, Any], expected: int) -> None:
    """The indexed files against the injection's own count (0), a given one, or nothing (-1); exit 3 on a difference."""
    injected = sum(canon.read_json(at.injection(key) / "manifest.json")["counts"]["files"] for key in at.documents)
    wanted = expected or injected
    if wanted > 0 and manifest["chunking"]["files"] != wanted:
        raise LossmapError(
            "the index does not hold the expected files",
            where=at.index_folder / "manifest.json",
            observed=manifest["chunking"]["files"],
            expected=wanted,
            next_command=f"./run lossmap index --scale {at.scale}, or --expect-files N",
            exit_code=3,
        )


def limited(graded: Graded, limit: int) -> Graded:
    """The first ``limit`` queries by id; all of them for 0."""
    return replace(graded, qrels={q: graded.qrels[q] for q in sorted(graded.qrels)[:limit]}) if limit else graded


def _write_runs(out: Path, arm_id: str, scored: list[tuple[judging.Corpus, Graded, Evaluation]]) -> None:
    run = {query_id: hits for _, _, found in scored for query_id, hits in found.run.items()}
    runs.write_run(out / "run.txt.gz", run, arm_id)
    qrels.write_qrels(out / "qrels.txt.gz", {q: docs for _, graded, _ in scored for q, docs in graded.qrels.items()})
    rows = (row for _, _, found in scored for row in evaluate.per_query_rows(arm_id, found.per_query))
    canon.write_csv_gz(out / "per_query.csv.gz", evaluate.PER_QUERY_HEADER, sorted(rows))


def _document(
    at: Layout,
    arm_id: str,
    arm: Mapping[str, Any],
    options: Options,
    manifest: Mapping[str, Any],
    scored: list[tuple[judging.Corpus, Graded, Evaluation]],
) -> dict[str, Any]:
    judged = {q: docs for _, graded, _ in scored for q, docs in graded.qrels.items()}
    return {
        "schema_version": SCHEMA_VERSION,
        "scale": at.scale,
        "arm": {"id": arm_id, **arm, "leg_stanzas": {name: layout.leg(at, name) for name in arm["legs"]}},
        "metric_engine": measures.provenance(),
        "interval_method": intervals.card(),
        "relevance_policy": options.policy.card(),
        "retrieval": {
            "stage": "rerank" if staged.of(arm) else "retrieve",
            "fusion": _fusion(arm),
            "llm_required": False,
            "limit_queries": options.limit,
        },
        "index": index_block(manifest),
        "ann": ann.of_arm(at, arm),
        "legs": {name: canon.file_sha256(at.leg(name)) for name in arm["legs"]},
        **({"reranker": legs.of_index(at, arm["rerank"]["by"]).meta["reranker"]} if "rerank" in arm else {}),
        "hashes": {
            **evaluate.hashes(judged),
            "index": manifest["index_sha256"],
            "engine": canon.digest(manifest["engine"]),
        },
        "corpora": [
            {
                **{k: corpus.card[k] for k in ("key", "name", "version", "tier", "licence", "judged_by")},
                **graded.summary(),
                "empty_rankings": len(found.per_query.empty),
                "unanswered_queries": len(found.per_query.unanswered),
            }
            for corpus, graded, found in scored
        ],
        "rows": [row for _, _, found in scored for row in found.rows],
    }


def _fusion(arm: Mapping[str, Any]) -> dict[str, Any] | None:
    """The pipeline that the engine would be asked for, resolved; None for one leg alone."""
    if arm["mode"] != "hybrid":
        return None
    explicit = any(name in arm for name in arms.FUSION)
    return {"pipeline": pin.pipeline_id(arm), "processors": pin.processors(arm), "selected_explicitly": explicit}


def index_block(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What of the index a result names: the same at every rebuild of the same index."""
    state = manifest["state"]
    surveyed = ("embedding_models", "embedding_verdict", "embedding_unattributed", "embedding_dimension")
    return {
        "files": manifest["chunking"]["files"],
        "chunks": manifest["chunking"]["chunks"],
        "docs_count": state["docs_count"],
        "docs_deleted": state["docs_deleted"],
        **{name: state[name] for name in surveyed},
        "configured_embedding_model": manifest["identity"]["encoder"]["name"],
        "header": manifest["identity"]["header"],
    }


def markdown(document: Mapping[str, Any]) -> str:
    """metrics.md: one row a corpus and class, four decimals."""
    names = list(measures.NAMES)
    head = ["corpus", "tier", "class", "n", "unans.", "empty", *names]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * 3 + "--:|" * (len(head) - 3)]
    for row in document["rows"]:
        cells = [row["corpus"], row["tier"], row["query_class"], row["queries"], row["unanswered"], row["empty"]]
        cells += [f"{row['metrics'][name]:.4f}" for name in names]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"
