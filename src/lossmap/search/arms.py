"""The arms of a stage: stanzas of arms.yaml checked, and their ids derived from their parameters.

A stage writes its arms either as a mapping of names (the earlier chapters), or as families, each a list of stanzas over
the stage's defaults. A stanza is flat: mode, legs, size, leg_depth; the fusion (rank_constant with weights, or
normalization, combination, weights); and what follows the fusion: pool, rerank, per_file, final. ``axis`` says what a
stanza moves; it is neither part of the arm nor of its id. A key set to null takes a default away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from lossmap import layout
from lossmap.errors import LossmapError
from lossmap.layout import Layout
from lossmap.search import legs as frozen
from lossmap.search import pin

Stanza = dict[str, Any]
MODES = {"keyword": ["text"], "semantic": ["dense"], "hybrid": ["text", "dense"]}
FUSION = ("rank_constant", "normalization", "combination", "weights")
COUNTS = ("size", "leg_depth", "rank_constant", "pool", "per_file", "final")
KEYS = ("mode", "legs", *COUNTS, *FUSION, "rerank", "pin")
FAMILY = ("control", "arms", "defaults", "factor")
RERANKERS = frozen.RESCORED
PAIRS = 50
SIZE = 48
RANK_CONSTANTS = (1, 10_000)
"""What the engine takes."""
HASHES = ("query_ids", "qrels", "index", "engine")
"""What must be equal of two arms that are compared, but for what a family names as its factor under test."""
WHOLE = 1e-9
"""How far a hundred times a weight may lie from a whole number: two arms must never share an id."""


def families(at: Layout, stage: str) -> dict[str, dict[str, Any]]:
    """Family to {control, arms: id to stanza, axes: id to axis, factor: the HASHES that are under test}.

    A stage of named arms is one family of its name.
    """
    found = _stage(at, stage)
    if "families" in found:
        return expand(found, layout.arms(at)["legs"])
    return {stage: {"control": found.get("control"), "arms": found["arms"], "axes": {}, "factor": []}}


def of(at: Layout, stage: str) -> dict[str, Stanza]:
    """Every arm of a stage by id; an arm that stands in two families is one arm."""
    found: dict[str, Stanza] = {}
    for family in families(at, stage).values():
        for arm_id, stanza in family["arms"].items():
            if found.setdefault(arm_id, stanza) != stanza:
                _refuse("two arms of one id", arm_id, [found[arm_id], stanza], "ids that tell arms apart")
    return found


def _stage(at: Layout, stage: str) -> dict[str, Any]:
    stages = layout.arms(at)["stages"]
    if stage not in stages:
        _refuse("unknown stage", stage, stage, sorted(stages))
    return stages[stage]


def expand(stage: Mapping[str, Any], legs: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """As ``families``, of one stage and the registered ``legs``."""
    return {name: _family(name, stage.get("defaults", {}), found, legs) for name, found in stage["families"].items()}


def _family(
    name: str, defaults: Mapping[str, Any], family: Mapping[str, Any], legs: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    if unknown := sorted(set(family) - set(FAMILY)):
        _refuse("unknown keys of a family", name, unknown, FAMILY)
    factor = family.get("factor", [])
    if not isinstance(factor, list) or any(hashed not in HASHES for hashed in factor):
        _refuse("a factor under test that is no list of hashes", name, factor, HASHES)
    base = {**defaults, **family.get("defaults", {})}
    found = [({**base, **stanza}, stanza.get("axis")) for stanza in family["arms"]]
    stanzas = [resolved(stanza, legs, name) for stanza, _ in found]
    ids = [derived(stanza) for stanza in stanzas]
    if twice := sorted(arm_id for arm_id, count in Counter(ids).items() if count > 1):
        _refuse("one arm stands twice in a family", name, twice, "stanzas that differ")
    if family["control"] not in ids:
        _refuse("the control is no arm of its family", name, family["control"], ids)
    axes = {arm_id: axis for arm_id, (_, axis) in zip(ids, found, strict=True)}
    return {"control": family["control"], "arms": dict(zip(ids, stanzas, strict=True)), "axes": axes, "factor": factor}


def resolved(stanza: Mapping[str, Any], legs: Mapping[str, Mapping[str, Any]], where: str) -> Stanza:
    """The stanza without its axis and nulls, its leg depth said, every key checked (exit 2)."""
    arm = {key: value for key, value in stanza.items() if key != "axis" and value is not None}
    arm.setdefault("size", SIZE)
    check(arm, legs, where)
    if arm["mode"] == "hybrid":
        arm.setdefault("leg_depth", arm["size"])
    if "rerank" in arm:
        arm["rerank"] = {"pairs": PAIRS, **arm["rerank"]}
    return arm


def check(arm: Mapping[str, Any], legs: Mapping[str, Mapping[str, Any]], where: str) -> None:
    """Refuse what cannot be ranked, or would be ranked as something else than it says (exit 2)."""
    if unknown := sorted(set(arm) - set(KEYS)):
        _refuse("unknown keys of an arm", where, unknown, sorted(KEYS))
    for key in COUNTS:
        if key in arm and not _count(arm[key]):
            _refuse(f"{key} is no count", where, arm[key], "a whole number of at least 1")
    _check_cuts(arm, where)
    _check_legs(arm, legs, where)
    check_fusion(arm, where)
    if "rerank" in arm:
        _check_rerank(arm["rerank"], where)


def _check_cuts(arm: Mapping[str, Any], where: str) -> None:
    """A cut that asks for more rows than it is given would cut nothing, under an id that says it did."""
    given = "size"
    for cut in ("pool", "final"):
        if cut in arm:
            if arm[cut] > arm[given]:
                _refuse(f"{cut} exceeds {given}", where, arm[cut], f"at most {arm[given]}")
            given = cut


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _check_legs(arm: Mapping[str, Any], legs: Mapping[str, Mapping[str, Any]], where: str) -> None:
    if arm.get("mode") not in MODES:
        _refuse("unknown mode of an arm", where, arm.get("mode"), sorted(MODES))
    if unknown := sorted(set(arm.get("legs", [])) - set(legs)):
        _refuse("unknown legs", where, unknown, sorted(legs))
    kinds = ["text" if legs[leg]["kind"] == "text" else "dense" for leg in arm.get("legs", [])]
    if kinds != MODES[arm["mode"]]:
        _refuse("legs that do not fit their mode", where, f"{arm['mode']}: {kinds}", MODES[arm["mode"]])
    depth = arm.get("leg_depth", arm["size"])
    if shallow := [leg for leg in arm["legs"] if legs[leg]["depth"] < depth]:
        frozen = {leg: legs[leg]["depth"] for leg in shallow}
        _refuse("a leg is asked deeper than it is frozen", where, depth, f"at most {frozen}")


def check_fusion(arm: Mapping[str, Any], where: str) -> None:
    """A fusion of a hybrid arm that the engine takes as it is written (exit 2)."""
    given = [key for key in (*FUSION, "leg_depth") if key in arm]
    if arm["mode"] != "hybrid" and given:
        _refuse("a fusion without two legs", where, f"{arm['mode']} with {', '.join(given)}", "mode: hybrid")
    if "normalization" not in arm and "combination" not in arm:
        low, high = RANK_CONSTANTS
        if not low <= arm.get("rank_constant", low) <= high:
            _refuse("a rank constant that the engine refuses", where, arm["rank_constant"], f"{low} to {high}")
    else:
        _check_normalization(arm, where)
    if "weights" in arm:
        _check_weights(arm["weights"], len(arm["legs"]), where)


def _check_normalization(arm: Mapping[str, Any], where: str) -> None:
    chosen, mean = arm.get("normalization"), arm.get("combination")
    if "rank_constant" in arm:
        _refuse("two fusions in one arm", where, "rank_constant and normalization", "one of them")
    if chosen not in pin.NORMALIZATIONS or mean not in pin.COMBINATIONS:
        known = f"{', '.join(pin.NORMALIZATIONS)} with {', '.join(pin.COMBINATIONS)}"
        _refuse("unknown normalization or combination", where, f"{chosen} with {mean}", known)
    if chosen == "z_score" and mean != "arithmetic_mean":
        # The engine answers HTTP 400: below the mean a z-score is negative.
        _refuse("z_score has no such mean", where, f"z_score with {mean}", "z_score with arithmetic_mean")


def _check_weights(weights: Any, legs: int, where: str) -> None:
    if not isinstance(weights, Sequence) or not all(type(weight) in (int, float) for weight in weights):
        _refuse("weights that are no numbers", where, weights, "a list of numbers")
    if len(weights) != legs:
        _refuse("a weight for each leg", where, weights, f"{legs} weights, the text leg's first")
    percents = [100 * weight for weight in weights]
    if any(percent <= 0 or abs(percent - round(percent)) > WHOLE for percent in percents):
        _refuse("weights that are no whole percents", where, weights, "each above 0 and a multiple of 0.01")
    if sum(map(round, percents)) != 100:
        _refuse("weights that do not sum to 1", where, weights, "a sum of 1")


def _check_rerank(rerank: Any, where: str) -> None:
    keys = set(rerank) if isinstance(rerank, Mapping) else set()
    if not {"by"} <= keys <= {"by", "pairs"} or rerank["by"] not in RERANKERS:
        _refuse("unknown re-ranker", where, rerank, f"by: {' or '.join(RERANKERS)}, and pairs")
    if not _count(rerank.get("pairs", PAIRS)):
        _refuse("pairs is no count", where, rerank["pairs"], "a whole number of at least 1")


def _refuse(what: str, where: str, observed: object, expected: object) -> NoReturn:
    next_command = "mend the stanza in workflow/config/arms.yaml, or the options of the call"
    raise LossmapError(what, where=where, observed=observed, expected=expected, next_command=next_command, exit_code=2)


def derived(arm: Mapping[str, Any]) -> str:
    """The id of a ``resolved`` arm: its fusion, what it moves of legs, depth and size, then the stages that follow."""
    return _retrieval(arm) + "".join(f".{part(arm[key])}" for key, part in STAGES.items() if key in arm)


def _retrieval(arm: Mapping[str, Any]) -> str:
    size = [f"size{arm['size']}"] if arm["size"] != SIZE else []
    if arm["mode"] != "hybrid":
        return "-".join([*arm["legs"], *size])
    text, dense = arm["legs"]
    default = not any(key in arm for key in FUSION)
    parts = [pin.fusion_id(arm), *(["default"] if default else [])]
    parts += [leg for leg, usual in ((text, "bm25"), (dense, "exact")) if leg != usual]
    parts += [f"depth{arm['leg_depth']}"] if arm["leg_depth"] != arm["size"] else []
    return "-".join([*parts, *size])


STAGES: dict[str, Callable[[Any], str]] = {
    "pool": lambda rows: f"pool{rows}",
    "rerank": lambda rerank: f"{rerank['by']}{rerank['pairs']}",
    "per_file": lambda files: f"files{files}",
    "final": lambda rows: f"final{rows}",
}
