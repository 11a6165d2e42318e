"""The tasks of the replay: what is stored as one corpus, what is asked of it, and which rows answer it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jsonschema
import yaml

from lossmap import layout, transcript
from lossmap.corpora import registry
from lossmap.corpora.readers.lmeb import plain
from lossmap.errors import LossmapError
from lossmap.layout import Layout
from lossmap.memory import groups, lmeb
from lossmap.memory.groups import Content, Group, Question

__all__ = ["Group", "Question", "Task", "capped", "keys", "load", "names", "stanza"]

FILE = "tasks.yaml"


@dataclass(frozen=True)
class Task:
    """``reason``: why it is not obtained, or what of it could not be made. ``keyed``: rows | content (the store)."""

    name: str
    tier: str
    judged_by: str
    keyed: str
    groups: tuple[Group, ...]
    questions: tuple[Question, ...]
    candidates: Mapping[str, frozenset[str]]
    obtained: bool
    reason: str | None
    stanza: Mapping[str, Any]


def names(at: Layout) -> list[str]:
    """The tasks that the scale replays, in the order of config.yaml; none where the chapter is not rendered."""
    scale = at.config["scales"].get(at.scale, {})
    return list(scale.get("chapters", {}).get("replay", {}).get("tasks", []))


def stanza(at: Layout, name: str) -> dict[str, Any]:
    """One stanza of tasks.yaml. Raises (exit 2) on an unknown name and on a field that breaks the schema."""
    found = layout.stanza(at, FILE, name)
    path = at.root / "workflow" / "schemas" / "tasks.schema.yaml"
    schema = yaml.safe_load(path.read_text(encoding="utf-8"))
    broken = list(jsonschema.Draft202012Validator(schema).iter_errors({name: found}))
    if broken:
        raise LossmapError(
            "the registry of tasks breaks its schema",
            where=f"{FILE}: {'/'.join(map(str, broken[0].path))}",
            observed=broken[0].message,
            next_command=f"mend the stanza; the fields stand in {path}",
            exit_code=2,
        )
    return found


def keys(given: Mapping[str, Any]) -> list[str]:
    """The corpora, by key, whose normalised folders a stanza reads; none for a data set in the LMEB layout."""
    documents = given["documents"]
    return [] if isinstance(documents, Mapping) else list(dict.fromkeys([*documents, *given["queries"]]))


def load(at: Layout, name: str, cap: int | None = None) -> Task:
    """A task of the scale, ``cap`` (the stanza's own for None) queries a subtask at most.

    Not obtained, with the reason: a corpus of tier B or C at a scale that is published, one that could not be had, or
    one of LMEB without its folder. Raises LossmapError on a corpus that was not normalised or that breaks its form.
    """
    given = stanza(at, name)
    documents, most = given["documents"], given.get("cap") if cap is None else cap
    of_lmeb = isinstance(documents, Mapping)
    sources = [documents["corpus"]] if of_lmeb else keys(given)
    tier, judged_by = _standing(sources, sources if of_lmeb else given["queries"])
    if tier != "A" and at.public:
        need = f", with {lmeb.VARIABLE} set" if of_lmeb else ""
        content = Content(reason=f"a corpus of tier {tier}: only at the scale internal{need}")
    elif of_lmeb:
        content = _of_lmeb(at, name, documents)
    else:
        reason = _missing(at, sources)
        content = Content(reason=reason) if reason else groups.of_corpora(at, given)
    asked = capped(content.questions, most)
    _check(name, content.groups, asked)
    place = (tuple(content.groups), asked, content.candidates)
    return Task(name, tier, judged_by, given["keyed"], *place, bool(content.groups), content.reason, given)


def capped(questions: Sequence[Question], cap: int | None) -> tuple[Question, ...]:
    """At most ``cap`` questions a subtask: of n the 0th, k-th, 2k-th, ... for k = ceil(n / cap) (spec/replay 5.1)."""
    if cap is not None and cap < 1:
        raise LossmapError("a cap of queries is unusable", observed=cap, expected="1 or more", exit_code=2)
    counts, seen = Counter(question.subtask for question in questions), Counter[str]()
    kept = []
    for question in questions:
        step = -(-counts[question.subtask] // cap) if cap else 1
        if seen[question.subtask] % step == 0:
            kept.append(question)
        seen[question.subtask] += 1
    return tuple(kept)


def _standing(sources: Iterable[str], queries: Iterable[str]) -> tuple[str, str]:
    """The worst tier of the corpora, and who judged the queries, as the registry of corpora states them."""
    tiers = [found.tier for found in registry.select(key.partition(".")[0] for key in sources)]
    judges = [found.judged_by for found in registry.select(key.partition(".")[0] for key in queries)]
    return transcript.worst(tiers), " and ".join(dict.fromkeys(judge for judge in judges if judge))


def _missing(at: Layout, sources: Iterable[str]) -> str | None:
    """Why one of the corpora could not be had; None where all were. Raises where the rule of one has not run."""
    for key in sources:
        folder = at.corpus(key)
        if not (folder / "corpus.json").is_file():
            raise LossmapError(
                "a corpus has not been normalised",
                where=folder,
                next_command=f"./run lossmap corpora normalise {key} --scale {at.scale}",
            )
        card = transcript.read_card(folder)
        if not card["obtained"]:
            return f"{key}: {card['reason']}"
    return None


def _of_lmeb(at: Layout, name: str, documents: Mapping[str, Any]) -> Content:
    """The groups and questions of a data set in the LMEB layout; a corpus that subtasks share is one group."""
    data, reason = lmeb.root(documents.get("folder"), at.root)
    folder = lmeb.dataset(data, documents["lmeb"]) if data else None
    if folder is None:
        return Content(reason=reason or f"no folder {documents['lmeb']} below {lmeb.VARIABLE}")
    content, rule = Content(), documents.get("scenes", "prefix")
    parts = lmeb.subtasks(folder)
    for corpus in dict.fromkeys(part.corpus for part in parts):
        rows = list(lmeb.documents(corpus))
        group = Group(lmeb.label(folder, corpus), tuple(key for key, _ in rows), tuple(text for _, text in rows))
        content.groups.append(group)
    scenes = {path: lmeb.scenes(path) for path in {part.candidates for part in parts if part.candidates}}
    for part in parts:
        known = scenes[part.candidates] if part.candidates else {}
        at_scene = f"{lmeb.label(folder, part.candidates.parent)}:" if part.candidates else ""
        content.candidates |= {at_scene + scene: some for scene, some in known.items()}
        for query_id, text in part.questions:
            scene = lmeb.scene(query_id, rule, known)
            ours, place = f"{name}:{plain(part.name)}:{plain(query_id)}", lmeb.label(folder, part.corpus)
            named = None if scene is None else at_scene + scene
            content.questions.append(Question(ours, text, part.name, place, part.gold[query_id], named, ours))
    return content


def _check(name: str, stored: Iterable[Group], questions: Sequence[Question]) -> None:
    """Raises LossmapError on a query id that stands twice and on gold that no line of its group has."""
    keys_of = {group.name: frozenset(group.keys) for group in stored}
    counts = Counter(question.query_id for question in questions)
    twice = sorted(query_id for query_id, count in counts.items() if count > 1)
    astray = [(q.query_id, sorted(q.gold - keys_of[q.group])) for q in questions if not q.gold <= keys_of[q.group]]
    if twice or astray:
        raise LossmapError(
            "a query stands twice in a task" if twice else "the gold of a query is in no line of its corpus",
            where=name,
            observed=twice[:3] if twice else astray[:3],
            expected="unique ids, and gold among the lines of the group",
        )
