"""Whether the instrument holds still: the control of the chapter before, arms computed again, pairs scored again.

A difference between arms can be put down to the arms only where the same arm, asked twice, answers twice the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lossmap import layout
from lossmap.encode import pairs, rerankers
from lossmap.encode.cross import CrossEncoder, Pair
from lossmap.index import table, vectors
from lossmap.judge import runs
from lossmap.layout import Layout
from lossmap.search import legs, plan
from lossmap.studies import compare, measure, scores, stage4, unmoved
from lossmap.studies.stage import classes

CONTROL, BEFORE = "rrf-30-default", ("stage4", "rrf30-again")
"""The control of the fusions, and the arm that it must equal: its legs were frozen by themselves."""
AGAIN = (CONTROL, "rrf-60", "norm-min_max-arithmetic_mean")
BY, SAMPLE, TIMES = "cross", 256, 3


def study(at: Layout, chapter: str) -> dict[str, Any]:
    """reruns.json: ``control`` a row a corpus and class, ``arms`` a row an arm and bench, ``pairs`` a row a bench.

    Raises (exit 3) where the control is not that of the chapter before, in any measure of any query.
    """
    benches = [name for name in plan.benches(at, chapter, "fusion") if _asked(at, chapter, name)]
    return {
        "before": {"chapter": BEFORE[0], "arm": BEFORE[1]},
        "control": [
            row for name in stage4.benches(at, BEFORE[0]) if name in benches for row in _held(at, chapter, name)
        ],
        "arms": [
            _again(at, chapter, name, arm) for name in benches for arm in AGAIN if arm in plan.chosen(at, "fusion")
        ],
        "pairs": [_scored_again(at, name) for name in plan.benches(at, chapter, "pool") if name in benches],
    }


def _asked(at: Layout, chapter: str, bench: str) -> bool:
    """Whether a bench has scored queries: a corpus that could not be had has none, and no row."""
    return bool(compare.read_arm(scores.scored(at, bench, chapter) / CONTROL).query_ids)


def _held(at: Layout, chapter: str, bench: str) -> list[dict[str, Any]]:
    before = scores.scored(at, bench, BEFORE[0]) / BEFORE[1]
    here = scores.scored(at, bench, chapter) / CONTROL
    return [{"bench": bench, **row} for row in unmoved.rows(here, before, classes(layout.load(at.scale, bench)))]


def _again(at: Layout, chapter: str, bench: str, arm: str) -> dict[str, Any]:
    """One arm ranked again from its frozen legs, against the run that its rule wrote."""
    folder, here = scores.scored(at, bench, chapter) / arm, layout.load(at.scale, bench)
    written, found = runs.read_run(folder / "run.txt.gz"), measure.ranking(here, plan.stanzas(at)[arm])
    differ = [q for q, hits in written.items() if runs.normalise(found[q]) != runs.normalise(hits)]
    head = compare.read_arm(folder).document["rows"][-1]
    named = {name: head[name] for name in ("corpus", "tier", "judged_by")}
    return {"bench": bench, "arm": arm, **named, "queries": len(written), "queries_that_differ": len(differ)}


def _scored_again(at: Layout, bench: str) -> dict[str, Any]:
    """Pairs scored several times by fresh sessions, and against the scores that were kept."""
    here = layout.load(at.scale, bench)
    reranker = rerankers.get(at.config["scales"][at.scale]["rerankers"][BY])
    sample = list(_sample(here))
    times = [CrossEncoder(*reranker.files(), reranker.max_length).scores(sample) for _ in range(TIMES)]
    kept, _ = pairs.pair_scores(reranker, sample)
    between = max((float(np.abs(one - times[0]).max(initial=0.0)) for one in times[1:]), default=0.0)
    return {
        "bench": bench,
        "reranker": reranker.name,
        "pairs": len(sample),
        "times": TIMES,
        "largest_difference": between,
        "largest_difference_from_kept": float(np.abs(times[0] - kept).max(initial=0.0)),
    }


def _sample(at: Layout) -> Iterator[Pair]:
    """The first pairs of the frozen scores."""
    leg, rows, queries = legs.of_index(at, BY), table.load(at.index_folder), vectors.queries(at)
    found = ((i, row) for i, chosen in enumerate(leg.rows.tolist()) for row in chosen if row >= 0)
    for _, (i, row) in zip(range(SAMPLE), found):
        yield queries[i].text, rows[row].text
