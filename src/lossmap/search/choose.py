"""Which arm a call of `lossmap measure` means: a stanza of arms.yaml, with single knobs moved on the command line."""

from __future__ import annotations

import argparse
from typing import Any

from lossmap import layout
from lossmap.errors import LossmapError
from lossmap.layout import Layout

MODES = {"keyword": ("text",), "semantic": ("dense",), "hybrid": ("text", "dense")}
KNOBS = ("size", "leg_depth", "rank_constant")
FUSION_KNOBS = ("leg_depth", "rank_constant")
DESCRIBED = ("search_mode", "scope", "dense", "filter")


def add_options(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--arm", help="a stanza of workflow/config/arms.yaml; the other options move its knobs")
    verb.add_argument("--chapter", default="stage1", help="the chapter whose stanzas --arm names (default stage1)")
    verb.add_argument("--stage", choices=["retrieve"], default="retrieve", help="retrieve: the candidate pool")
    verb.add_argument("--search-mode", choices=sorted(MODES))
    verb.add_argument("--scope", choices=["corpus", "gold-files"])
    verb.add_argument("--dense", choices=["exact", "hnsw"])
    verb.add_argument("--filter", choices=["inside", "beside"], help="where the file filter stands in an hnsw leg")
    verb.add_argument("--size", type=int, help="rows of the ranking (default 48)")
    verb.add_argument("--leg-depth", type=int, help="rows of each leg that enter the fusion (default: --size)")
    verb.add_argument("--rank-constant", type=int, help="K of reciprocal rank fusion (default 30)")


def arm(at: Layout, options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """(id, stanza) of the arm that ``options`` describe; an unpublished combination gets an id from its parameters."""
    _refuse_unknown(at, options)
    base = layout.arm(at, options.chapter, options.arm) if options.arm else _described(at, options)
    moved = {knob: value for knob in KNOBS if (value := getattr(options, knob)) is not None}
    _refuse_unused(base, moved, options)
    stanza = {**base, **moved}
    if base["mode"] == "hybrid" and options.leg_depth is None and options.size is not None:
        stanza["leg_depth"] = options.size
    name = options.arm or "-".join([base["mode"], *base["legs"]])
    return "-".join([name, *(f"{knob}{value}" for knob, value in moved.items())]), stanza


def _refuse_unknown(at: Layout, options: argparse.Namespace) -> None:
    """A chapter without arms, or a knob below one, which would give an empty ranking."""
    chapters = sorted(layout.arms(at)["stages"])
    wrong = {
        f"--{knob.replace('_', '-')}": value
        for knob in KNOBS
        if (value := getattr(options, knob)) is not None and value < 1
    }
    if options.chapter not in chapters or wrong:
        raise LossmapError(
            "an arm that cannot be ranked",
            observed=wrong or f"--chapter {options.chapter}",
            expected="knobs of at least 1" if wrong else f"a chapter with arms: {', '.join(chapters)}",
            next_command="./run lossmap measure --help",
            exit_code=2,
        )


def _refuse_unused(base: dict[str, Any], moved: dict[str, Any], options: argparse.Namespace) -> None:
    """An option that would be ignored is an error: the ranking would not be the one that was asked for."""
    ignored = [name for name in DESCRIBED if options.arm and getattr(options, name) is not None]
    ignored += [knob for knob in FUSION_KNOBS if knob in moved and base["mode"] != "hybrid"]
    if ignored:
        raise LossmapError(
            "options that this arm cannot take",
            where=options.arm or base["mode"],
            observed=", ".join("--" + name.replace("_", "-") for name in ignored),
            expected="--arm with the knobs of its mode, or --search-mode, --scope, --dense, --filter without --arm",
            next_command="./run lossmap measure --help",
            exit_code=2,
        )


def _described(at: Layout, options: argparse.Namespace) -> dict[str, Any]:
    mode = options.search_mode or "hybrid"
    kinds = {"text": "text", "dense": options.dense or "exact"}
    legs = [_leg(at, kinds[part], options) for part in MODES[mode]]
    stanza: dict[str, Any] = {"mode": mode, "legs": legs, "size": 48}
    return {**stanza, "leg_depth": 48, "rank_constant": 30} if mode == "hybrid" else stanza


def _leg(at: Layout, kind: str, options: argparse.Namespace) -> str:
    scope = options.scope or "corpus"
    wanted = {"kind": kind, "scope": scope}
    if kind == "hnsw" and scope == "gold-files":
        wanted["filter"] = options.filter or "inside"
    for name, spec in layout.arms(at)["legs"].items():
        if all(spec.get(field) == value for field, value in wanted.items()):
            return name
    raise LossmapError(
        "no leg of this kind is registered",
        observed=wanted,
        exit_code=2,
        next_command="add a stanza under legs: in workflow/config/arms.yaml, then freeze it",
    )
