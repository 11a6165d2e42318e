"""Proced-mem-bench: household task trajectories, graded against goals by a language model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lossmap.corpora.readers import Reading, load_json
from lossmap.corpora.readers.collection import Collection, fields_of
from lossmap.corpora.registry import Stanza

VERSION = "1"
FORM = "proced-mem-bench's fields"


def read(stanza: Stanza, folder: Path, selection: Mapping[str, int] | None = None) -> Reading:
    """Trajectories as documents (the task as title, the steps as text), bank queries with graded documents.

    ``grades`` lists [score, grade] from the highest; a score below the last one is no judgement.
    """
    collection, tiers, scores = Collection(stanza.language), Counter(), Counter()
    path = folder / stanza.options["trajectories"]
    document = load_json(path)
    with fields_of(path, FORM):
        for row in document["trajectories"]:
            collection.add(row["task_instance_id"], row["task_description"], steps(row["state_action_pairs"]))
    bank = folder / stanza.options["queries"]
    document = load_json(bank)
    with fields_of(bank, FORM):
        for position, row in enumerate(document["queries"]):
            tiers[row["tier"]] += 1
            judged = {item["trajectory_id"]: item["relevance_score"] for item in row["relevant_trajectories"]}
            scores.update(str(score) for score in judged.values())
            graded = {name: grade(score, stanza.options["grades"]) for name, score in judged.items()}
            gold = {name: value for name, value in graded.items() if value}
            collection.ask(f"{stanza.key}:{position:04d}", row["query_text"], gold)
    return collection.finish(selection, tiers=dict(tiers), scores=dict(scores))


def steps(pairs: list[Mapping[str, Any]]) -> str:
    """A trajectory as text: what was seen, then what was done, one line each."""
    return "\n".join(f"{pair['state']}\n> {pair['action']}" for pair in pairs)


def grade(score: float, ladder: list[list[float]]) -> int:
    """The grade of the first rung that ``score`` reaches; 0 below all."""
    return next((int(value) for least, value in ladder if score >= least), 0)
