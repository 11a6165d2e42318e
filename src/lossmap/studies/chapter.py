"""Which studies each chapter writes, by name."""

from __future__ import annotations

from typing import Any

from lossmap import canon, transcript
from lossmap.layout import Layout
from lossmap.studies import ann, composition, corpora, stage


def _composition(at: Layout, _: str) -> Any:
    """The study of the scale's first corpus, or its card alone where it could not be had."""
    card = transcript.read_card(at.corpus(at.documents[0]))
    if card["obtained"]:
        return composition.study(at.corpus(at.documents[0]))
    return {name: card[name] for name in ("key", "tier", "judged_by", "obtained", "reason")}


CHAPTERS = {
    "stage1": stage.STUDIES,
    "corpora": corpora.STUDIES,
    "composition": {"composition": _composition},
}
TABLES = {"ann": (ann.PER_QUERY_HEADER, ann.per_query)}


def names() -> list[str]:
    return sorted({name for studies in CHAPTERS.values() for name in studies} | set(TABLES))


def study(at: Layout, chapter: str, name: str) -> None:
    """The rule: one study, written beside the chapter's other parts."""
    if name in TABLES:
        header, rows = TABLES[name]
        canon.write_csv_gz(at.stage(chapter) / f"{name}.csv.gz", header, rows(at))
    else:
        canon.write_json(at.stage(chapter) / f"{name}.json", CHAPTERS[chapter][name](at, chapter))
