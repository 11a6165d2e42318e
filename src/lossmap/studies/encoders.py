"""Does fusion change sign with the encoder? The same queries and judgements, one index an encoder.

The question is of an interaction: not whether fusion helps one model and not another, each against zero, but whether
its effects differ between two models, query by query.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lossmap import transcript
from lossmap.errors import LossmapError
from lossmap.judge import intervals, multiplicity, permutation
from lossmap.judge.intervals import Estimate
from lossmap.judge.measures import NAMES
from lossmap.judge.permutation import PValues
from lossmap.layout import Layout
from lossmap.studies import compare, stacks
from lossmap.studies.compare import Arm
from lossmap.studies.stacks import HEADLINE, Family, Floats, Stack

COLUMN = NAMES.index(HEADLINE)
Row = dict[str, Any]


@dataclass(frozen=True)
class Model:
    """The arms of one encoder over one corpus: either leg alone, their fusion, and fusions by weights."""

    bench: str
    encoder: str
    lexical: Arm
    dense: Arm
    fused: Arm
    weighted: Mapping[str, Arm]

    def __getitem__(self, role: str) -> Floats:
        """Values (Q,) of one role."""
        return getattr(self, role).values[:, COLUMN]  # type: ignore[no-any-return]

    @property
    def effect(self) -> Floats:
        """What fusion adds to the dense leg, query by query."""
        return self["fused"] - self["dense"]


def study(at: Layout, family: Family) -> dict[str, Any]:
    """The document, of nDCG@10, per corpus and class: ``effects`` (a row an encoder), ``interactions`` (a row a pair of
    encoders: the fusion effect of the first minus that of the second) and ``signs`` (all encoders side by side).

    Every difference has ``delta``, ``intervals`` and ``p_values``; ``holm`` pays for the encoders, or pairs, of a
    corpus and class. ``best_leg`` and ``best_weight`` are chosen on the queries that score them. Raises where two
    encoders differ in more than the factor that the family names.
    """
    found: dict[str, list[Row]] = {"effects": [], "interactions": [], "signs": []}
    for models in _corpora(at, family):
        _same(models, family.factor)
        first = models[0].dense
        frame = Stack(first.query_ids, stacks.asked(at, models[0].bench, first), _meetings(first))
        for name, keep in frame.parts():
            for kind, rows in _part(models, frame, name, keep).items():
                found[kind] += rows
    cards = {"intervals": intervals.card(), "permutation": permutation.card(), "multiplicity": multiplicity.card()}
    return {**cards, "measure": HEADLINE, "family": family.card(), **found}


def _meetings(arm: Arm) -> tuple[str, ...]:
    return tuple(map(compare.meeting_of, arm.query_ids))


def _corpora(at: Layout, family: Family) -> list[list[Model]]:
    """The models of each corpus, in the order of the benches."""
    found: defaultdict[str, list[Model]] = defaultdict(list)
    for bench in family.benches:
        control = stacks.read(at, family, bench, family.control)
        arms = [stacks.read(at, family, bench, name) for name in family.arms]
        for arm in arms:
            compare.require_alike(arm, control)
        for fused, *others in zip(*map(stacks.by_corpus, (control, *arms))):
            found[fused.document["rows"][0]["corpus"]].append(_model(bench, fused, others))
    return list(found.values())


def _model(bench: str, fused: Arm, arms: Sequence[Arm]) -> Model:
    by_mode = {mode: [a for a in arms if a.document["arm"].get("mode") == mode] for mode in ("keyword", "semantic")}
    for mode, some in by_mode.items():
        if len(some) != 1:
            raise LossmapError(
                "a family of encoders needs each leg alone, once",
                where=bench,
                observed=f"{len(some)} arms of mode {mode}",
                next_command="give the family one keyword and one semantic arm in workflow/config/arms.yaml",
                exit_code=2,
            )
    weighted = {arm.name: arm for arm in arms if "weights" in arm.document["arm"]}
    encoder = fused.document["index"]["configured_embedding_model"]
    return Model(bench, encoder, by_mode["keyword"][0], by_mode["semantic"][0], fused, weighted)


def _same(models: Sequence[Model], factor: Sequence[str]) -> None:
    """Nothing but the family's ``factor`` differs between the encoders of a corpus, and no encoder stands there twice.

    The factor is the index, whose vectors they are: queries, judgements and engine are the same.
    """
    for model in models[1:]:
        compare.require_alike(model.fused, models[0].fused, factor)
    names = [model.encoder for model in models]
    if len(set(names)) < len(names):
        raise LossmapError(
            "two benches of one corpus have the same encoder",
            where=", ".join(model.bench for model in models),
            observed=names,
            next_command="name one bench an encoder in workflow/config/config.yaml",
            exit_code=2,
        )


@dataclass
class Columns:
    """Differences (Q,) that are resampled together; an index stands for each until they are."""

    groups: Sequence[str]
    columns: list[Floats]

    def add(self, values: Floats) -> int:
        self.columns.append(values)
        return len(self.columns) - 1

    def solve(self) -> tuple[Estimate, PValues]:
        table = np.column_stack(self.columns)
        tested = permutation.p_values(table, self.groups)[permutation.ALL]
        return intervals.means_with_intervals(table, self.groups), tested


def _part(models: Sequence[Model], frame: Stack, name: str, keep: NDArray[np.bool_]) -> dict[str, list[Row]]:
    """All rows of one corpus and class."""
    columns = Columns(frame.members(keep), [])
    chosen = [_chosen(model, keep) for model in models]
    of_model = [_differences(model, keep, best, columns) for model, best in zip(models, chosen)]
    pairs = list(combinations(range(len(models)), 2))
    of_pair = [columns.add((models[a].effect - models[b].effect)[keep]) for a, b in pairs]
    estimate, tested = columns.solve()
    head = {**_head(models), "query_class": name}
    head |= {"queries": estimate.query_count, "meetings": estimate.meeting_count}
    said = [{key: _said(estimate, tested, i) for key, i in some.items()} for some in of_model]
    _adjust([row["over_dense"] for row in said])
    effects = [_effect(head, m, keep, best, row) for m, best, row in zip(models, chosen, said)]
    between = [
        {**head, "a": models[a].encoder, "b": models[b].encoder, **_said(estimate, tested, i)}
        for (a, b), i in zip(pairs, of_pair)
    ]
    _adjust(between)
    return {"effects": effects, "interactions": between, "signs": [_signs(head, effects, between)]}


def _chosen(model: Model, keep: NDArray[np.bool_]) -> tuple[str, str | None]:
    """The better leg by mean (dense among equals) and the best weights (the first by name among equals)."""
    leg = max(("dense", "lexical"), key=lambda role: float(model[role][keep].mean()))
    means = {name: float(arm.values[keep, COLUMN].mean()) for name, arm in sorted(model.weighted.items())}
    return leg, max(means, key=means.__getitem__, default=None)


def _differences(
    model: Model, keep: NDArray[np.bool_], best: tuple[str, str | None], columns: Columns
) -> dict[str, int]:
    """What is asked of one encoder; the oracle takes the better leg of each query."""
    leg, weight = best
    oracle = np.maximum(model["lexical"], model["dense"])
    wanted = {
        "over_dense": model.effect,
        "over_best_leg": model["fused"] - model[leg],
        "oracle_over_best_leg": oracle - model[leg],
        "oracle_over_fused": oracle - model["fused"],
    }
    if weight:
        wanted["best_weight_over_fused"] = model.weighted[weight].values[:, COLUMN] - model["fused"]
        wanted["best_weight_over_dense"] = model.weighted[weight].values[:, COLUMN] - model["dense"]
    return {name: columns.add(values[keep]) for name, values in wanted.items()}


def _head(models: Sequence[Model]) -> Row:
    """What the rows inherit, with the worst tier of all the arms."""
    heads = [stacks.head(model.fused, models[0].fused) for model in models]
    return {**heads[0], "tier": transcript.worst([head["tier"] for head in heads])}


def _said(estimate: Estimate, tested: PValues, column: int) -> Row:
    delta = {"delta": float(estimate.mean[column]), "intervals": estimate.interval(column)}
    return {**delta, "p_values": tested.of(column)}


def _adjust(rows: Sequence[Row]) -> None:
    """Holm over ``rows``, written into each."""
    if rows:
        units = ("meetings", "queries")
        adjusted = multiplicity.holm(np.array([[row["p_values"][unit] for unit in units] for row in rows]))
        for row, values in zip(rows, adjusted.tolist()):
            row["holm"] = dict(zip(units, values))


def _effect(head: Row, model: Model, keep: NDArray[np.bool_], best: tuple[str, str | None], said: Row) -> Row:
    leg, weight = best
    means = {role: float(model[role][keep].mean()) for role in ("lexical", "dense", "fused")}
    means["oracle"] = float(np.maximum(model["lexical"], model["dense"])[keep].mean())
    grid = {
        name: {
            "weights": arm.document["arm"]["weights"],
            "mean": float(arm.values[keep, COLUMN].mean()),
            "over_dense": float((arm.values[:, COLUMN] - model["dense"])[keep].mean()),
        }
        for name, arm in sorted(model.weighted.items())
    }
    names = {"bench": model.bench, "encoder": model.encoder, "best_leg": leg, "best_weight": weight}
    return {**head, **names, "means": means, "weights": grid, **said}


def _signs(head: Row, effects: Sequence[Row], between: Sequence[Row]) -> Row:
    """Encoders by dense retrieval alone, best first, each with the sign of what fusion adds to it.

    ``clear``: the interval by meeting leaves zero out. ``turns``: signs differ; ``turns_clearly``: among clear ones.
    ``differ``: some pair of effects differs, its interval leaving zero out.
    """
    order = sorted(effects, key=lambda row: (-row["means"]["dense"], row["encoder"]))
    signs = [
        {
            "encoder": row["encoder"],
            "dense": row["means"]["dense"],
            "fused": row["means"]["fused"],
            "sign": int(np.sign(row["over_dense"]["delta"])),
            "clear": _clear(row["over_dense"]),
            "best_weight": row["best_weight"],
        }
        for row in order
    ]
    turns = {-1, 1} <= {sign["sign"] for sign in signs}
    clearly = {-1, 1} <= {sign["sign"] for sign in signs if sign["clear"]}
    differ = any(_clear(row) for row in between)
    return {**head, "encoders": signs, "turns": turns, "turns_clearly": clearly, "differ": differ}


def _clear(said: Row) -> bool:
    low, high = said["intervals"]["meetings"]
    return bool(low > 0 or high < 0)
