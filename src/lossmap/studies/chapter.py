"""Which studies each chapter writes, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lossmap import canon, transcript
from lossmap.errors import LossmapError
from lossmap.layout import Layout
from lossmap.studies import (
    agreement,
    ann,
    composition,
    corpora,
    membership,
    stability,
    stage,
    stage3,
    stage4,
    stage5,
    synthetic,
)
from lossmap.studies.replay import studies as replay


def _composition(at: Layout, _: str) -> Any:
    """The study of the scale's first corpus, or its card alone where it could not be had."""
    card = transcript.read_card(at.corpus(at.documents[0]))
    if card["obtained"]:
        return composition.study(at.corpus(at.documents[0]))
    return {name: card[name] for name in ("key", "tier", "judged_by", "obtained", "reason")}


def _membership(at: Layout, stage: str) -> Any:
    """The same arms over indexes that hold other meetings (config.yaml, chapters.composition)."""
    return membership.study(at, at.config["scales"][at.scale]["chapters"][stage]["indexes"])


CHAPTERS: dict[str, dict[str, Callable[[Layout, str], Any]]] = {
    "stage1": stage.STUDIES,
    "corpora": corpora.STUDIES,
    "synthetic": synthetic.STUDIES,
    "stability": stability.STUDIES,
    "stage3": stage3.STUDIES,
    "stage4": stage4.STUDIES,
    "stage5": stage5.STUDIES,
    "agreement": agreement.STUDIES,
    "replay": {name: lambda at, _, made=made: made(at) for name, made in replay.STUDIES.items()},
    "composition": {"composition": _composition, "hybrid": _membership},
}
TABLES = {"ann": (ann.PER_QUERY_HEADER, ann.per_query)}


def study(at: Layout, chapter: str, name: str) -> None:
    """The rule: one study, written beside the chapter's other parts."""
    known = {**CHAPTERS.get(chapter, {}), **TABLES}
    if name not in known:
        raise LossmapError(
            "no such study",
            observed=f"{name} of chapter {chapter}",
            expected={chapter: sorted(studies) for chapter, studies in CHAPTERS.items()},
            next_command="./run lossmap study NAME --chapter CHAPTER",
            exit_code=2,
        )
    if name in TABLES:
        header, rows = TABLES[name]
        canon.write_csv_gz(at.stage(chapter) / f"{name}.csv.gz", header, rows(at))
    else:
        canon.write_json(at.stage(chapter) / f"{name}.json", CHAPTERS[chapter][name](at, chapter))
