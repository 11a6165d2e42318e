"""A list ordered by place, sorted by score: what an instrument reads that does so ("a fourth way", seed 000).

After a re-ranker and a diversity sample, scores say nothing of the order: the head carries the re-ranker's, the tail
its fused ones, and the sample interleaves files on purpose. Sorting by them ranks a list that nobody is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise, zip_longest
from typing import Any

import numpy as np

from lossmap.judge import decompose, intervals, runs
from lossmap.layout import Layout
from lossmap.search import legs, pipeline, rerank, staged
from lossmap.search.diversity import diversity_sample
from lossmap.search.legs import Leg
from lossmap.studies import stages
from lossmap.studies.stages import Bench, Lists

FINALS = (8, 12, 20)
TOP = 5
WIDE = 96
TIMES = 3
RESORTED, KEPT = "resorted", "kept"
Rows = dict[str, list[int]]
Scores = dict[str, dict[int, float]]


def study(at: Layout, chapter: str) -> dict[str, Any]:
    """resort.json: ``rows`` a corpus and arm (the shipped one, and one whose pool exceeds its pairs), ``scores`` at
    each final length with the deltas, ``repeat`` of the ranking from fresh loads."""
    rows, scores, repeats = [], [], []
    for bench in stages.benches(at, chapter):
        for one in (bench, *_wide(at, chapter, bench)):
            examined = _examine(one)
            rows.append(examined[0])
            scores += examined[1]
        repeats.append({**bench.head, **repeat(bench)})
    return {"rows": rows, "scores": scores, "repeat": repeats, "intervals": intervals.card()}


def _wide(at: Layout, chapter: str, bench: Bench) -> Iterator[Bench]:
    """The bench with its wide arm, which must be as it was scored; none where this scale does not ask for that arm:
    small ones ask fewer (config.yaml)."""
    stanza = wide(bench.arm)
    arm_id = wide_id(bench.arm_id)
    asked = at.config["scales"][at.scale]["chapters"][chapter]["families"].get(stages.SHIPPED, {}).get("arms")
    if asked is None or arm_id in asked:
        one = replace(bench, arm_id=arm_id, arm=stanza)
        stages.require_run(at, stages.scored(bench.at, chapter, arm_id), one.stages(stanza)[-1][1])
        yield one


def wide_id(arm_id: str) -> str:
    """The id of the arm over a request of WIDE, as search/arms derives it."""
    head, _, stages_of = arm_id.partition(".")
    return f"{head}-size{WIDE}.{stages_of}"


def wide(arm: Mapping[str, Any]) -> dict[str, Any]:
    """The arm over a request of 96: more candidates than its re-ranker reads."""
    pool = {"pool": WIDE} if "pool" in arm else {}
    return {**arm, **pool, "size": WIDE, "leg_depth": max(WIDE, stages.leg_depth(arm))}


def _examine(bench: Bench) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    arm = bench.arm
    ranked, scores, tails = prompts(bench, arm)
    sampled = {q: diversity_sample(rows, bench.files.__getitem__, arm["per_file"]) for q, rows in ranked.items()}
    paths = {final: read(bench, sampled, scores, final) for final in FINALS}
    head = {
        **bench.head, "query_class": "all", "arm": bench.arm_id, "size": arm["size"], "pairs": arm["rerank"]["pairs"]
    }  # fmt: skip
    row = {
        **head,
        "queries": len(sampled),
        "finals": list(FINALS),
        **{path: _changes(bench, sampled, {f: each[path] for f, each in paths.items()}) for path in (RESORTED, KEPT)},
        "prefix": prefixes(bench, ranked, arm["per_file"]),
        "tail": _tail(bench, tails, paths[arm["final"]] if arm["final"] in paths else paths[FINALS[0]]),
        "scale": _scale(scores, tails),
    }
    return row, _scores(bench, head, paths)


def prompts(bench: Bench, arm: Mapping[str, Any]) -> tuple[Rows, Scores, dict[str, set[int]]]:
    """Per judged query: rows as the re-ranker leaves them, the score that each carries then, and the rows of the tail.

    The re-ranker writes its score over the fused one of the rows that it read; the tail keeps what it had.
    """
    fused = pipeline.rank(arm, bench.legs)
    until = {key: value for key, value in arm.items() if key not in ("per_file", "final")}
    reranker = bench.legs[arm["rerank"]["by"]]
    lists = staged.rank(until, bench.legs, reranker, bench.files.__getitem__)
    own, pool, ranked = dict(staged.scored(reranker)), lists[-2][1], lists[-1][1]
    scores: Scores = {}
    tails: dict[str, set[int]] = {}
    for query_id in bench.judged:
        read_rows, tail = (pool[query_id][part] for part in _head_and_tail(arm["rerank"]["pairs"]))
        scores[query_id] = {**dict(fused[query_id]), **{row: own[query_id][row] for row in read_rows}}
        tails[query_id] = set(tail)
    return {query_id: ranked[query_id] for query_id in bench.judged}, scores, tails


def _head_and_tail(pairs: int) -> tuple[slice, slice]:
    return slice(pairs), slice(pairs, None)


def read(bench: Bench, sampled: Rows, scores: Scores, final: int) -> dict[str, Lists]:
    """What the instrument scores of each prompt, by path: sorted by score, or by place."""
    out: dict[str, Lists] = {RESORTED: {}, KEPT: {}}
    for query_id, rows in sampled.items():
        prompt = rows[:final]
        carried = [(bench.doc_ids[row], scores[query_id][row]) for row in prompt]
        placed = [(bench.doc_ids[row], score) for row, score in rerank.positional(prompt)]
        out[RESORTED][query_id] = [doc for doc, _ in runs.normalise(carried)]
        out[KEPT][query_id] = [doc for doc, _ in runs.normalise(placed, preserve_order=True)]
    return out


def _changes(bench: Bench, sampled: Rows, by_final: Mapping[int, Lists]) -> dict[str, Any]:
    """How many prompts the instrument reads in another order than they have, and how many first fives depend on the
    length of the prompt, by their documents and by their nDCG@5; a sample's beginning is the same at every length."""
    prompt = bench.named(sampled)
    changed = {f: sum(docs != prompt[q][:f] for q, docs in lists.items()) for f, lists in by_final.items()}
    firsts = [{tuple(lists[q][:TOP]) for lists in by_final.values()} for q in prompt]
    values = np.column_stack([decompose.ndcg(bench.judged, lists, TOP) for lists in by_final.values()])
    return {
        "orders_changed": {str(final): count for final, count in changed.items()},
        "top_fives_that_depend": sum(len(each) > 1 for each in firsts),
        "ndcg5_that_depend": int((np.ptp(values, axis=1) > decompose.BAND).sum()),
    }


def prefixes(bench: Bench, ranked: Rows, per_file: int) -> dict[str, int]:
    """Whether a sample of fewer rows is the beginning of one of more, list by list."""
    checked = broken = 0
    for rows in ranked.values():
        samples = [diversity_sample(rows, bench.files.__getitem__, per_file, cap) for cap in FINALS]
        for shorter, longer in pairwise(samples):
            checked += 1
            broken += longer[: len(shorter)] != shorter
    return {"checked": checked, "broken": broken}


def _tail(bench: Bench, tails: Mapping[str, set[int]], paths: Mapping[str, Lists]) -> dict[str, Any]:
    """Rows that no re-ranker read, in the prompts and in their first fives; ``floated``: prompts in which one of them
    stands above a row that was read."""
    named = {query_id: {bench.doc_ids[row] for row in rows} for query_id, rows in tails.items()}
    out: dict[str, Any] = {"lists_with_a_tail": sum(bool(rows) for rows in tails.values())}
    for path, lists in paths.items():
        flags = [[doc in named[query_id] for doc in docs] for query_id, docs in sorted(lists.items())]
        out[path] = {
            "rows": sum(map(sum, flags)),
            "prompts": sum(map(any, flags)),
            "first_five": sum(sum(each[:TOP]) for each in flags),
            "first": sum(any(each[:1]) for each in flags),
            "floated": sum(any(before and not after for before, after in pairwise(each)) for each in flags),
            "all_on_top": sum(any(each) and each == sorted(each, reverse=True) for each in flags),
        }
    return out


def _scale(scores: Scores, tails: Mapping[str, set[int]]) -> dict[str, float | None]:
    """The two scales that one sort compares: the re-ranker's, and the fused scores of the tail."""
    read_rows = [score for q, each in scores.items() for row, score in each.items() if row not in tails[q]]
    fused = [scores[q][row] for q, tail in tails.items() for row in tail]
    return {
        "reranker_least": min(read_rows, default=None),
        "reranker_greatest": max(read_rows, default=None),
        "reranker_negative_share": decompose.share(sum(score < 0 for score in read_rows), len(read_rows)),
        "tail_least": min(fused, default=None),
        "tail_greatest": max(fused, default=None),
    }


def _scores(bench: Bench, head: Mapping[str, Any], paths: Mapping[int, Mapping[str, Lists]]) -> list[dict[str, Any]]:
    """nDCG at 5 and 10 as either path reads it, and the difference that the defect made."""
    places = [(final, cut) for final in paths for cut in (TOP, decompose.CUT)]
    tables = []
    for final, cut in places:
        resorted, kept = (decompose.ndcg(bench.judged, paths[final][path], cut) for path in (RESORTED, KEPT))
        tables.append(np.column_stack([resorted, kept, resorted - kept]))
    measured = stages.means(bench, np.ones(len(bench.judged), bool), tables, (RESORTED, KEPT, "delta"))
    return [
        {**head, "final": final, "measure": f"nDCG@{cut}", **row}
        for (final, cut), row in zip(places, measured, strict=True)
    ]


def repeat(bench: Bench) -> dict[str, int]:
    """The ranking computed again and again, every time from files: rows that differ from the first time."""
    index = next(iter(bench.legs.values())).meta["index_sha256"]
    lists = []
    for _ in range(TIMES):
        loaded = {name: legs.of_index(bench.at, name, index) for name in bench.legs}
        lists.append(_ranked(bench, loaded))
    differing = sum(
        left != right
        for again in lists[1:]
        for first, other in zip(lists[0], again, strict=True)
        for left, right in zip_longest(first, other)
    )
    return {"times": TIMES, "lists": len(lists[0]), "rows": sum(map(len, lists[0])), "rows_that_differ": differing}


def _ranked(bench: Bench, loaded: Mapping[str, Leg]) -> list[list[int]]:
    """Every stage's list of every query, one after another."""
    found = staged.rank(bench.arm, loaded, loaded[bench.arm["rerank"]["by"]], bench.files.__getitem__)
    return [rows for _, lists in found for _, rows in sorted(lists.items())]
