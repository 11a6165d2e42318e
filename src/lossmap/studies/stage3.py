"""The chapter on index v6: a header before each chunk's vector, a plane of digests beside the chunks, and the encoder's
window, each against a control of the same day, the same chunks and the same judgements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lossmap import layout, transcript
from lossmap.errors import LossmapError
from lossmap.judge import intervals
from lossmap.layout import Layout
from lossmap.studies import bands, compare, gate, planes, scores, share
from lossmap.studies.stage import classes

GATE = "index-v6"
HEADER = "header"
"""The contrast of which the share of the graph is asked: does a header help, or does it make duplicates distinct?"""
REINDEXED = ("index",)


def arms_of(at: Layout, stage: str, index: str) -> list[str]:
    """The arms that an index can answer: those over the graph only where there is one."""
    graphed = list(scores.over_graph(at, stage)) if index in scores.chapter(at, stage)["graphs"] else []
    return [*scores.without_graph(at, stage), *graphed]


def scored_rows(at: Layout, stage: str) -> dict[str, Any]:
    """scores.json: every arm over every index and corpus."""
    corpora = scores.chapter(at, stage)["corpora"]
    pairs = [
        (f"{index}/{key}", arm)
        for index in planes.indexes(at, stage)
        for key in corpora
        for arm in arms_of(at, stage, index)
    ]
    return {"rows": scores.rows(at, stage, pairs)}


def contrasts(at: Layout, stage: str) -> dict[str, Any]:
    """contrasts.json: every contrast of the chapter beside its band, what of the header is the graph, and the gate."""
    measured = bands.band_of(at)
    drawn = [
        _contrast(at, stage, names, arm, measured)
        for names in scores.chapter(at, stage)["contrasts"]
        for arm in arms_of(at, stage, names[1])
        if arm in arms_of(at, stage, names[2])
    ]
    return {
        "contrasts": drawn,
        "ann_share": _header_share(at, stage),
        "gate": _gate(at, stage, drawn),
        "intervals": intervals.card(),
    }


def _contrast(at: Layout, stage: str, names: list[str], arm: str, measured: bands.Bands) -> dict[str, Any]:
    name, treatment, control = names
    rows = [
        {**row, **measured.of(arm, row["corpus"], row["query_class"])}
        for key in scores.chapter(at, stage)["corpora"]
        for row in _rows(_folders(at, stage, (treatment, control), key, arm), classes(_bench(at, control, key)))
    ]
    return {"name": name, "treatment": treatment, "control": control, "arm": arm, "rows": rows}


def _bench(at: Layout, index: str, key: str) -> Layout:
    return layout.load(at.scale, f"{index}/{key}")


def _folders(at: Layout, stage: str, pair: tuple[str, str], key: str, arm: str) -> tuple[Path, Path]:
    """The folders of one arm over a treatment and over its control."""
    treatment, control = (scores.scored(at, _bench(at, index, key).bench, stage) / arm for index in pair)
    return treatment, control


def _rows(folders: tuple[Path, Path], class_of: Mapping[str, str]) -> list[dict[str, Any]]:
    """Deltas of one corpus; ``identical`` says that no query of the row has another value, in any measure."""
    found = compare.compare(*folders, class_of, REINDEXED)["rows"]
    arm, control = map(compare.read_arm, folders)
    moved = {q for q, same in zip(arm.query_ids, _same(arm, control), strict=True) if not same}
    return [{**row, "identical": not any(row["query_class"] in ("all", class_of[q]) for q in moved)} for row in found]


def _same(arm: compare.Arm, control: compare.Arm) -> list[bool]:
    return [np.array_equal(mine, theirs) for mine, theirs in zip(arm.values, control.values, strict=True)]


def _header_share(at: Layout, stage: str) -> list[dict[str, Any]]:
    """The header's effect over the graph minus its effect over the exact leg, for each arm that has both."""
    spec, over_graph = scores.chapter(at, stage), scores.over_graph(at, stage)
    drawn = [names for names in spec["contrasts"] if names[0] == HEADER and {*names[1:]} <= {*spec["graphs"]}]
    return [
        {"name": name, "treatment": treatment, "control": control, "arm": arm, "exact_arm": exact, **row}
        for name, treatment, control in drawn
        for arm, exact in over_graph.items()
        for key in spec["corpora"]
        for row in share.rows(
            _folders(at, stage, (treatment, control), key, exact),
            _folders(at, stage, (treatment, control), key, arm),
            classes(_bench(at, control, key)),
            REINDEXED,
        )
    ]


def _gate(at: Layout, stage: str, drawn: list[dict[str, Any]]) -> dict[str, Any]:
    """The chapter's gate; a rewording of a corpus's own questions stands beside the verdict and not in it."""
    spec = layout.stanza(at, "gates.yaml", GATE)
    wanted = {name: spec[name] for name in ("treatment", "control", "arm")}
    found = [table for table in drawn if wanted.items() <= table.items()]
    if not found:
        raise LossmapError(
            "a gate asks for a contrast that the chapter does not draw",
            where=GATE,
            observed=wanted,
            expected=[[t["treatment"], t["control"], t["arm"]] for t in drawn],
            next_command="add it to the contrasts of the chapter in workflow/config/config.yaml",
            exit_code=2,
        )
    corpora = scores.chapter(at, stage)["corpora"]
    own = [key for key in corpora if transcript.owner(at.corpus(key)) == key]
    return gate.judge(GATE, spec, found[0]["rows"], own)


STUDIES: dict[str, Callable[[Layout, str], Any]] = {
    "scores": scored_rows,
    "contrasts": contrasts,
    "index": planes.card,
}
