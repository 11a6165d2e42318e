"""The chapter on corpora: scores over every scored corpus, timings, agreement of golds, counts, licences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lossmap import canon, layout
from lossmap.corpora import licence, stats, timings
from lossmap.layout import Layout
from lossmap.studies import adjudicate, ingest, languages
from lossmap.studies import timings as timing_study
from lossmap.studies.scores import chapter, rows, scored

STAGE = "corpora"


def scores(at: Layout, stage: str) -> dict[str, Any]:
    """scores.json: every arm of the chapter over every bench of it."""
    arms = layout.arms(at)["stages"][stage]["arms"]
    return {"rows": rows(at, stage, [(bench, arm) for bench in chapter(at, stage)["benches"] for arm in arms])}


def agreement(at: Layout, _: str) -> dict[str, Any]:
    """agreement.json: the two golds over the same questions; empty where this scale has none, or could not have it."""
    pair = chapter(at, STAGE).get("agreement")
    if not pair:
        return {"pairs": []}
    arm = layout.arms(at)["stages"][STAGE]["control"]
    first, second = ({"key": key, "folder": scored(at, bench, STAGE) / arm} for key, bench in pair.items())
    found = adjudicate.study(at, first["key"], second["key"], {k["key"]: k["folder"] for k in (first, second)})
    return {"pairs": [{"arm": arm, **found}] if found else []}


def timed(at: Layout, _: str) -> dict[str, Any]:
    """timings.json: how far word timings align, and the same arms over measured and synthetic times."""
    spec = chapter(at, STAGE).get("timings")
    if not spec:
        return {"rules": [], "indexes": [], "contrasts": []}
    measured = layout.load(at.scale, spec["index"])
    folders = {name: scored(at, name, STAGE) for name in (layout.MAIN, spec["index"])}
    found = timing_study.study(at, measured, list(layout.arms(at)["stages"][STAGE]["arms"]), folders)
    rules = [canon.read_json(timings.folder(at) / f"{rule}.json") for rule in spec["rules"]]
    return {"rules": rules, **found}


def read(at: Layout) -> set[str]:
    """Keys of the corpora that this scale's indexes hold or ask; a folder that a hand left beside them is none."""
    benches = [layout.load(at.scale, name) for name in chapter(at, STAGE)["benches"]]
    ingested = (place.partition("/")[2] for place in chapter(at, STAGE)["ingest"])
    return {*ingested, *(key for bench in benches for key in (*bench.documents, *bench.scored))}


def counts(at: Layout, _: str) -> dict[str, Any]:
    """stats.json: counts of every corpus of this scale."""
    keys = read(at)
    return {"rows": [row for row in stats.stats(at.build / "corpora") if row["key"] in keys]}


def licences(_at: Layout, _: str) -> dict[str, Any]:
    """licences.json: claims about terms. The tier here is what a row says, not what the row is made of."""
    return {
        "claims": [{**{k: v for k, v in row.items() if k != "tier"}, "licence_tier": row["tier"]}
                   for row in licence.licence_rows()]
    }  # fmt: skip


def spoken(at: Layout, _: str) -> dict[str, Any]:
    """ingest.json: what the injected transcripts are like."""
    return ingest.study(at, chapter(at, STAGE)["ingest"])


def tongues(at: Layout, stage: str) -> dict[str, Any]:
    """languages.json: which languages are scored on what, and why others are not."""
    return languages.study(scores(at, stage)["rows"])


STUDIES: dict[str, Callable[[Layout, str], Any]] = {
    "scores": scores,
    "agreement": agreement,
    "timings": timed,
    "ingest": spoken,
    "languages": tongues,
    "stats": counts,
    "licences": licences,
}
