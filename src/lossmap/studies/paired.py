"""A family over its benches, corpus by corpus, for studies that hold corpora against each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lossmap import layout, transcript
from lossmap.errors import LossmapError
from lossmap.judge import resampled
from lossmap.judge.measures import NAMES
from lossmap.layout import Layout
from lossmap.search import plan
from lossmap.studies import stacks
from lossmap.studies.stacks import Family, Stack

CROSS = "cross"


def family(at: Layout, name: str, benches: Sequence[str]) -> Family:
    """A family of Stage 5 at this scale, asked over ``benches``."""
    return stacks.of(name, plan.family(at, name), benches)


def corpora(at: Layout, asked: Family) -> list[Stack]:
    """A stack for each bench and corpus, in the order of the benches; a corpus that was not obtained has none.

    Raises as :func:`stacks.stacks`.
    """
    # Bench by bench: corpora of equal queries over two indexes are two.
    return [stack for bench in asked.benches for stack in stacks.stacks(at, [replace(asked, benches=(bench,))])]


def card(corpus: Stack) -> dict[str, Any]:
    """bench, corpus, judged_by and tier, the worst of the arms."""
    first, tiers = corpus.contrasts[0], (contrast.head["tier"] for contrast in corpus.contrasts)
    return {"bench": first.bench, **first.head, "tier": transcript.worst(tiers)}


def pair(corpora: Sequence[Stack], benches: Sequence[str]) -> list[str]:
    """The corpora of the first two of ``benches``; none where either could not be had: one corpus is no pair."""
    found = [card(corpus) for corpus in corpora]
    two = [each for each in found if each["bench"] in benches[:2]]
    return [each["corpus"] for each in two] if len({each["bench"] for each in two}) == 2 else []


def drawn(corpus: Stack, query_class: str, measures: Sequence[str]) -> resampled.Deltas | None:
    """Deltas of the queries of a class, arm by arm, and of each arm its ``measures``; None without a query."""
    keep = dict(corpus.parts()).get(query_class)
    if keep is None:
        return None
    values = corpus.deltas()[keep][:, :, [NAMES.index(name) for name in measures]]
    return resampled.resample(values.reshape(len(values), -1), corpus.members(keep))


def require_unseen(at: Layout, name: str, benches: Sequence[str]) -> None:
    """Raise (exit 2) where a family that re-ranks is asked over the corpus that its re-ranker learned from.

    The re-ranker's stanza names that corpus (data: corpus); one set of a corpus stands for all of it. A fixture is
    asked about what made it: its rows show that the stage runs, nothing else.
    """
    learned = _learned(at) if _reranks(at, name) else None
    for bench in benches:
        seen = [key for key in layout.load(at.scale, bench).scored if learned and _root(key) == _root(learned)]
        if seen:
            raise LossmapError(
                "a re-ranker would be judged on the corpus that it learned from",
                where=f"family {name}, bench {bench}",
                observed=f"{', '.join(seen)}; trained on {learned}",
                expected="a corpus that the re-ranker has not seen",
                next_command="take the bench out of the family's benches in workflow/config/config.yaml",
                exit_code=2,
            )


def _root(key: str) -> str:
    return key.split(".", 1)[0]


def _reranks(at: Layout, name: str) -> bool:
    return any(stanza.get("rerank", {}).get("by") == CROSS for stanza in plan.chosen(at, name).values())


def _learned(at: Layout) -> str | None:
    """The corpus that this scale's cross-encoder was trained on; None for one that this project did not train."""
    known = at.root / "workflow" / "config" / "rerankers.yaml"
    name = at.config["scales"].get(at.scale, {}).get("rerankers", {}).get(CROSS)
    return layout.stanza(at, known.name, name).get("data", {}).get("corpus") if name and known.exists() else None


def not_obtained(at: Layout, asked: Family) -> list[str]:
    """The benches whose corpus could not be had: their control has no row."""
    return [b for b in asked.benches if not stacks.read(at, asked, b, asked.control).document["rows"]]
