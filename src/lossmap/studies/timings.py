"""Do timings move the numbers? The same arms over an index with measured times and one with synthetic ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lossmap import canon
from lossmap.judge import qrels
from lossmap.layout import Layout
from lossmap.studies import compare, judging
from lossmap.studies.stage import classes

# Times cut turns, so chunks and judgements follow them: both hashes are the factor under test.
FACTOR = ("index", "qrels", "query_ids")


def study(synthetic: Layout, measured: Layout, arms: Sequence[str], folders: dict[str, Any]) -> dict[str, Any]:
    """Counts of both indexes, and paired deltas (measured minus synthetic); ``folders``: arm folder roots by index."""
    return {
        "indexes": [_counts(at) for at in (synthetic, measured)],
        "contrasts": [
            {
                "under_test": "timings",
                **compare.compare(
                    folders[measured.index] / arm, folders[synthetic.index] / arm, classes(synthetic), FACTOR
                ),
            }
            for arm in arms
        ],
    }


def _counts(at: Layout) -> dict[str, Any]:
    manifest = canon.read_json(at.index_folder / "manifest.json")
    (key,) = at.scored
    injection = canon.read_json(at.injection(key) / "manifest.json")
    corpus = judging.load(at, key)
    graded = qrels.grade(corpus.coverage)
    grades = [grade for docs in graded.qrels.values() for grade in docs.values()]
    return {
        "index": at.index,
        "tier": corpus.card["tier"],
        "timing_sources": injection["timing_sources"],
        "chunks": manifest["chunking"]["chunks"],
        "start_tie_groups": injection["counts"]["start_tie_groups"],
        "segments_in_start_ties": injection["counts"]["segments_in_start_ties"],
        "mean_judged_per_query": len(grades) / len(graded.qrels) if graded.qrels else None,
        "grade_1": sum(grade == 1 for grade in grades),
        "grade_2": sum(grade == 2 for grade in grades),
        "slivers": graded.slivers,
    }
