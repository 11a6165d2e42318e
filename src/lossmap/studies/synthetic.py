"""The chapter on the synthetic tier: scores in a shared index, and what its presence does to the real corpus."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lossmap import layout, transcript
from lossmap.judge import intervals
from lossmap.layout import Layout
from lossmap.search import route
from lossmap.studies import answering, compare, corpora, realism, routing
from lossmap.studies.stage import classes
from lossmap.synthetic import validate

OWN = "-own"
"""Suffix of the arms that see their own corpus alone, with the document frequencies of the shared index."""


def shift(at: Layout, stage: str) -> dict[str, Any]:
    """shift.json: the real corpus's queries in its own index and in the shared one, paired.

    ``presence`` = shared minus alone. Filtering the other corpus out of the shared ranking leaves its document
    frequencies: ``frequencies`` = filtered minus alone, ``crowding`` = shared minus filtered.
    """
    spec = corpora.chapter(at, stage)
    shared = layout.load(at.scale, f"{spec['index']}/{spec['beside']}")
    alone, mixed = corpora.scored(at, layout.MAIN, corpora.STAGE), corpora.scored(at, shared.bench, stage)
    rows = []
    for arm in layout.arms(at)["stages"][corpora.STAGE]["arms"]:
        pairs = {
            "presence": (mixed / arm, alone / arm),
            "frequencies": (mixed / f"{arm}{OWN}", alone / arm),
            "crowding": (mixed / arm, mixed / f"{arm}{OWN}"),
        }
        for effect, (one, other) in pairs.items():
            found = compare.compare(one, other, classes(shared), ["index"])
            rows += [{"effect": effect, "arm": arm, **row} for row in found["rows"]]
    return {"rows": rows, "intervals": intervals.card()}


def closure(at: Layout, stage: str) -> dict[str, Any]:
    """closure.json: which meetings were chosen, and which questions stay whole with them."""
    card = transcript.read_card(at.corpus(corpora.chapter(at, stage)["corpus"]))
    fields = ("key", "tier", "judged_by", "licence", "counts", "generator", "closure", "skipped")
    return {name: card[name] for name in fields}


def real(at: Layout, stage: str) -> dict[str, Any]:
    """realism.json: BM25 over whole generated meetings, beside the real corpus's domains where that is there."""
    beside = at.corpus(corpora.chapter(at, stage)["beside"])
    return realism.study(at.generated, beside if transcript.read_card(beside)["obtained"] else None)


def answers(at: Layout, stage: str) -> dict[str, Any]:
    """answers.json: questions whose answer is no ranking, asked of the live engines."""
    spec = corpora.chapter(at, stage)
    shared = layout.load(at.scale, spec["index"])
    return answering.study(
        shared, spec["corpus"], at.generated, routed=lambda text: "aggregate" in route.route(text).tiers
    )


def router(at: Layout, stage: str) -> dict[str, Any]:
    """router.json: the router as a classifier over both corpora, every wording, and the held-out questions."""
    return routing.study(at.corpus(corpora.chapter(at, stage)["beside"]), at.generated)


def validation(at: Layout, stage: str) -> dict[str, Any]:
    """validation.json: what each check of the generator claims, and how often it ran; one that fails raises."""
    runs = validate.validate(at.generated)
    says = {name: (check.__doc__ or "").partition("\n")[0] for name, check in validate.CHECKS.items()}
    return {"checks": [{"check": name, "says": says[name], "runs": count} for name, count in runs.items()]}


STUDIES: dict[str, Callable[[Layout, str], Any]] = {
    "scores": corpora.scores,
    "shift": shift,
    "closure": closure,
    "realism": real,
    "answers": answers,
    "router": router,
    "validation": validation,
}
