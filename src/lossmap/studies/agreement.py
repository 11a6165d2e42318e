"""Do corpora rank the same changes the same way? On the seed's printed arms, on ours, over all corpora."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lossmap import transcript
from lossmap.judge import agreement, intervals, resampled
from lossmap.judge.agreement import Arm, Pair
from lossmap.layout import Layout
from lossmap.search import plan
from lossmap.studies import adoption, manifest, paired, printed
from lossmap.studies.stacks import Family, Stack

MEASURE = manifest.MEASURE
CLASSES = ("all", "lookup")
COLLAPSE = "combination"
"""The axis of the geometric and the harmonic mean: nil where one leg finds nothing, which every corpus notices."""
NOT_PRINTED = "the deltas of its arms are not printed"
NO_PAIR = "the first two corpora were not both obtained, or do not both ask this class: nothing to adjudicate"
PARTS = ("pairs", "arms", "sided", "further", "picks")
Sets = dict[str, list[Arm]]
Parts = dict[str, list[dict[str, Any]]]


def sets(arms: Sequence[Arm]) -> Sets:
    """The families, all of them pooled, and each again without the means that collapse and without inert arms.

    ``pooled-distinct`` counts an arm once that stands in two families under one control. A set that leaves nothing out
    is not repeated.
    """
    whole: Sets = {**agreement.families(arms), "pooled": list(arms)}
    out = dict(whole)
    for name, group in whole.items():
        for suffix, kept in (
            ("without-collapse", [arm for arm in group if arm.axis != COLLAPSE]),
            ("moved", [arm for arm in group if not agreement.inert(arm)]),
        ):
            if len(kept) < len(group):
                out[f"{name}-{suffix}"] = kept
    once = agreement.distinct(arms)
    return out if len(once) == len(arms) else {**out, "pooled-distinct": once}


def set_rows(groups: Mapping[str, Sequence[Arm]], query_class: str, pair: Pair) -> list[dict[str, Any]]:
    """One row a set of arms: its coefficients and its tally of verdicts."""
    return [
        {"set": name, "query_class": query_class, **agreement.ranks(group, pair), **agreement.signs(group, pair)}
        for name, group in groups.items()
    ]


def seed(at: Layout, chapter: str) -> dict[str, Any]:
    """seed.json: the coefficients of the printed arms beside the printed ones, and the gate's strict rule on them.

    Deltas are printed to four decimals and of lookup not for every family, so that a coefficient may differ from the
    printed one, or be None; ``difference`` is ours minus printed.
    """
    book = printed.of(at)
    arms = {query_class: printed.arms(book, query_class) for query_class in CLASSES}
    rows = [row for query_class in CLASSES for row in _seed_rows(book, query_class, arms[query_class])]
    return {
        "measure": MEASURE,
        "corpora": list(printed.PAIR),
        "rows": rows,
        "classes": {query_class: _class(arms[query_class], printed.PAIR) for query_class in CLASSES},
        "printed_signs": {query_class: printed.signs(book, query_class) for query_class in CLASSES},
        "gate": adoption.seed(at),
    }


def _seed_rows(book: Mapping[str, str], query_class: str, arms: Sequence[Arm]) -> list[dict[str, Any]]:
    groups = sets(arms)
    if query_class == "all":
        for family, names in printed.DUPLICATES.items():
            groups[f"pooled-without-{family}-duplicates"] = [arm for arm in arms if arm.name not in names]
    else:
        # Some families print no delta of this class: what is left is no pool of all arms.
        groups = {name: group for name, group in groups.items() if not name.startswith("pooled")}
        groups |= {name: [] for name in (*printed.CONTROLS, "pooled") if name not in groups}
    return [
        _beside(row, printed.coefficients(book, row["set"], query_class))
        for row in set_rows(groups, query_class, printed.PAIR)
    ]


def _beside(row: Mapping[str, Any], cited: Mapping[str, float]) -> dict[str, Any]:
    """``row`` beside what is printed of it; a set that is not printed arm by arm has nothing to compare."""
    known = row["n"] and row["note"] is None
    gaps = {name: row[name] - value if known else None for name, value in cited.items()}
    return {**row, "note": row["note"] if row["n"] else NOT_PRINTED, "printed": dict(cited), "difference": gaps}


def _class(arms: Sequence[Arm], pair: Pair) -> dict[str, Any]:
    return {"arms": agreement.arm_rows(arms, pair), **agreement.report(arms, pair)}


def ours(at: Layout, chapter: str) -> dict[str, Any]:
    """ours.json: the seed's families on our arms over their first two benches, by class.

    Without two obtained corpora there is no row; a class that one of them does not ask is left out.
    """
    asked, root = manifest.emitted(at), at.root
    cards = manifest.cards(asked, root / asked["runs_root"])
    head = {"measure": MEASURE, "corpora": [card["corpus"] for card in cards], "cards": cards, "manifest": asked}
    if len(cards) != 2:
        return {**head, "rows": [], "classes": {}, "note": "agreement is asked of two corpora; not both were obtained"}
    rows, classes = [], {}
    for query_class in manifest.classes(asked, root / asked["runs_root"], CLASSES):
        arms, pair = manifest.arms(asked, root / asked["runs_root"], query_class)
        rows += set_rows(sets(arms), query_class, pair)
        classes[query_class] = _class(arms, pair)
    return {**head, "rows": rows, "classes": classes}


def matrix(at: Layout, chapter: str) -> dict[str, Any]:
    """matrix.json: every pair of corpora with tau-b's interval, and what further corpora say, as flat lists of rows.

    Families and their benches stand in config.yaml under the chapter; every row names its family and class. Corpora are
    resampled apart, those that share meetings too. ``pairs``: one row a pair of corpora. ``arms``: one an arm and
    corpus. ``sided``: one an arm on which the first two corpora disagree and further corpus. ``further``: one a further
    corpus, with how many of these arms it sides over; where one of the first two is missing neither has a row, and the
    ``notes`` of the family say so. ``picks``: one a corpus, with the arm it would pick.
    """
    families = at.config["scales"][at.scale]["chapters"][chapter]["families"]
    found = [_matrix(at, name, plan.benches(at, chapter, name)) for name in families]
    return {
        "measure": MEASURE,
        "intervals": intervals.card(),
        "families": [head for head, _ in found],
        **{part: [row for _, groups in found for group in groups for row in group[part]] for part in PARTS},
    }


def _matrix(at: Layout, name: str, benches: Sequence[str]) -> tuple[dict[str, Any], list[Parts]]:
    """What a document says of a family, and the rows of each of its classes."""
    paired.require_unseen(at, name, benches)
    asked = paired.family(at, name, benches)
    corpora = paired.corpora(at, asked)
    head = {
        "family": name,
        "control": asked.control,
        "corpora": [_source(corpus) for corpus in corpora],
        "not_obtained": paired.not_obtained(at, asked),
    }
    two = paired.pair(corpora, benches)
    found = {query_class: _agreed(asked, corpora, query_class, two) for query_class in CLASSES}
    # Corpora that moved up into the place of a missing one are no pair that anybody declared.
    notes = {query_class: None if parts["between"] else NO_PAIR for query_class, parts in found.items()}
    return {**head, "notes": notes}, list(found.values())


def _source(corpus: Stack) -> dict[str, Any]:
    return {**paired.card(corpus), "queries": len(corpus.query_ids), "meetings": len(set(corpus.groups))}


def _agreed(asked: Family, corpora: Sequence[Stack], query_class: str, two: Sequence[str]) -> Parts:
    """The rows of one family and class, by the name of their list.

    ``two``: the declared pair, between whose corpora the others adjudicate; ``between`` is empty where they cannot.
    """
    cards = {card["corpus"]: card for card in map(paired.card, corpora)}
    found = zip(map(paired.card, corpora), (paired.drawn(corpus, query_class, [MEASURE]) for corpus in corpora))
    drawn = {card["corpus"]: deltas for card, deltas in found if deltas is not None}
    arms = [_arm(asked, arm, place, drawn) for place, arm in enumerate(asked.arms)]
    head = {"family": asked.name, "query_class": query_class}
    pairs = [
        {
            **head,
            **row,
            **_tiers(cards, row["corpora"]),
            **agreement.signs(arms, (row["corpora"][0], row["corpora"][1])),
        }
        for row in resampled.matrix(drawn, len(arms))
    ]
    between = list(two) if two and list(drawn)[:2] == list(two) else []
    sided = [row for split in (resampled.adjudicate(drawn, arms) if between else []) for row in _sided(split, cards)]
    return {
        "between": [{"corpus": key} for key in between],
        "pairs": pairs,
        "arms": [
            {**head, **_arm_row(arm, place, key, drawn[key]), **cards[key]}
            for place, arm in enumerate(arms)
            for key in drawn
        ],
        "sided": [{**head, **row} for row in sided],
        "further": [
            {**head, **_further(key, sided), **_tiers(cards, [*between, key])} for key in list(drawn)[2:] if between
        ],
        "picks": [{**head, **(agreement.winner(arms, key) or {}), **cards[key]} for key in drawn if arms],
    }


def _sided(split: Mapping[str, Any], cards: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row a further corpus, of an arm on which the first two disagree."""
    first, second = split["between"]
    head = {"arm": split["arm"], "axis": split["axis"], "between": [first, second]}
    ends = {"first": split["deltas"][first], "second": split["deltas"][second]}
    return [
        {**head, **ends, "corpus": key, **side, **_tiers(cards, [first, second, key])}
        for key, side in split["sides"].items()
    ]


def _further(corpus: str, sided: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Over how many arms a further corpus sides with the first two corpora, and over how many by a clear delta."""
    mine = [row for row in sided if row["corpus"] == corpus]
    count = {side: sum(row["side"] == side for row in mine) for side in resampled.SIDES}
    clear = {f"clear_{side}": sum(row["side"] == side and row["clear"] for row in mine) for side in resampled.SIDES[:2]}
    return {"corpus": corpus, "disputed": len(mine), **count, **clear}


def _arm(asked: Family, arm: str, place: int, drawn: Mapping[str, resampled.Deltas]) -> Arm:
    deltas = {key: float(found.mean[place]) for key, found in drawn.items()}
    return Arm(arm, asked.name, asked.control, asked.arms[arm], deltas)


def _arm_row(arm: Arm, place: int, corpus: str, found: resampled.Deltas) -> dict[str, Any]:
    return {"arm": arm.name, "axis": arm.axis, "delta": arm.deltas[corpus], "interval": found.interval(place)}


def _tiers(cards: Mapping[str, Mapping[str, Any]], keys: Sequence[str]) -> dict[str, Any]:
    """The worst tier of what a row rests on, and who judged each corpus."""
    judged = {key: cards[key]["judged_by"] for key in keys}
    return {"tier": transcript.worst(cards[key]["tier"] for key in keys), "judged_by": judged} if keys else {}


STUDIES: dict[str, Callable[[Layout, str], Any]] = {
    "seed": seed,
    "ours": ours,
    "matrix": matrix,
    "adoption": adoption.study,
}
