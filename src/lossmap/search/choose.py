"""Which arm a call of `lossmap measure` means: a stanza of arms.yaml, with single knobs moved on the command line."""

from __future__ import annotations

import argparse
from typing import Any

from lossmap import layout
from lossmap.errors import LossmapError
from lossmap.layout import Layout
from lossmap.search import arms, pin

KNOBS = ("size", "leg_depth", "rank_constant")
FUSION_OPTIONS = {
    "rank_constant": "rank_constant",
    "normalization_technique": "normalization",
    "combination_technique": "combination",
    "combination_weights": "weights",
}
"""Option to the key of a stanza."""
FUSIONS: dict[str, dict[str, Any]] = {
    "rrf": {"rank_constant": pin.RANK_CONSTANT},
    "normalization": {"normalization": "min_max", "combination": "arithmetic_mean"},
}
"""What a call of each strategy means that says no more."""
HYBRID_ONLY = ("leg_depth", "fusion", *FUSION_OPTIONS)
DESCRIBED = ("search_mode", "scope", "dense", "filter")


def add_options(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--arm", help="a stanza of workflow/config/arms.yaml; the other options move its knobs")
    verb.add_argument("--chapter", default="stage1", help="the chapter whose stanzas --arm names (default stage1)")
    verb.add_argument("--stage", choices=["retrieve"], default="retrieve", help="retrieve: the candidate pool")
    verb.add_argument("--search-mode", choices=sorted(arms.MODES))
    verb.add_argument("--scope", choices=["corpus", "gold-files"])
    verb.add_argument("--dense", choices=["exact", "hnsw"])
    verb.add_argument("--filter", choices=["inside", "beside"], help="where the file filter stands in an hnsw leg")
    verb.add_argument("--size", type=int, help="rows of the ranking (default 48)")
    verb.add_argument("--leg-depth", type=int, help="rows of each leg that enter the fusion (default: --size)")
    verb.add_argument("--fusion", choices=sorted(FUSIONS), help="how the legs of a hybrid arm are fused (default rrf)")
    verb.add_argument("--rank-constant", type=int, help="K of reciprocal rank fusion (default 30)")
    verb.add_argument("--normalization-technique", choices=sorted(pin.NORMALIZATIONS), help="(default min_max)")
    verb.add_argument("--combination-technique", choices=sorted(pin.COMBINATIONS), help="(default arithmetic_mean)")
    verb.add_argument(
        "--combination-weights", type=_weights, metavar="TEXT,DENSE", help="whole percents that sum to 1, as 0.7,0.3"
    )


def _weights(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def arm(at: Layout, options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """(id, stanza) of the arm that ``options`` describe; an unpublished combination gets an id from its parameters."""
    _refuse_unknown(at, options)
    base = layout.pick(arms.of(at, options.chapter), options.arm, "arm") if options.arm else _described(at, options)
    moved = {knob: value for knob in KNOBS if (value := getattr(options, knob)) is not None}
    _refuse_unused(base, options)
    stanza = _fused({**base, **moved}, base, options)
    if base["mode"] == "hybrid" and options.leg_depth is None and options.size is not None:
        stanza["leg_depth"] = options.size
    return _id(at, stanza, moved, options), stanza


def _id(at: Layout, stanza: dict[str, Any], moved: dict[str, Any], options: argparse.Namespace) -> str:
    """In a stage of families every id comes from the parameters; elsewhere the name says what was moved."""
    if options.arm and "families" in layout.arms(at)["stages"][options.chapter]:
        return arms.derived(stanza)
    name = options.arm or "-".join([stanza["mode"], *stanza["legs"]])
    moves_fusion = any(
        getattr(options, option) is not None for option in ("fusion", *FUSION_OPTIONS) if option not in KNOBS
    )
    parts = [f"{knob}{value}" for knob, value in moved.items() if not (moves_fusion and knob == "rank_constant")]
    return "-".join([name, *parts, *([pin.fusion_id(stanza)] if moves_fusion else [])])


def _fused(stanza: dict[str, Any], base: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """``stanza`` under the fusion that the options ask for: what they leave out is the arm's own, where it has it."""
    given = {key: value for option, key in FUSION_OPTIONS.items() if (value := getattr(options, option)) is not None}
    if not given and options.fusion is None:
        return stanza
    own = "normalization" if "normalization" in base else "rrf"
    strategy = options.fusion or own
    _refuse_other_fusion(strategy, given, options)
    inherited = {key: base[key] for key in arms.FUSION if key in base} if strategy == own else {}
    rest = {key: value for key, value in stanza.items() if key not in arms.FUSION}
    found = {**rest, **FUSIONS[strategy], **inherited, **given}
    arms.check_fusion(found, "the options of --fusion")
    return found


def _refuse_other_fusion(strategy: str, given: dict[str, Any], options: argparse.Namespace) -> None:
    """An option of the other strategy would be ignored."""
    foreign = [key for key in given if key not in (*FUSIONS[strategy], "weights")]
    if foreign:
        names = [option for option, key in FUSION_OPTIONS.items() if key in foreign]
        raise LossmapError(
            "unusable --fusion configuration",
            where=f"--fusion {strategy}" if options.fusion else f"an arm that is fused by {strategy}",
            observed=", ".join("--" + name.replace("_", "-") for name in names),
            expected="--rank-constant with rrf; --normalization-technique, --combination-technique with normalization",
            next_command="./run lossmap measure --help",
            exit_code=2,
        )


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


def _refuse_unused(base: dict[str, Any], options: argparse.Namespace) -> None:
    """An option that would be ignored is an error: the ranking would not be the one that was asked for."""
    ignored = [name for name in DESCRIBED if options.arm and getattr(options, name) is not None]
    if base["mode"] != "hybrid":
        ignored += [option for option in HYBRID_ONLY if getattr(options, option) is not None]
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
    legs = [_leg(at, kinds[part], options) for part in arms.MODES[mode]]
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
