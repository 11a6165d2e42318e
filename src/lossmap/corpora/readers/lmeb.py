"""The LMEB folder layout (2026): corpus.jsonl, queries.jsonl, qrels.tsv, candidates.jsonl, for whoever holds the data.

A task's folder holds its queries and qrels; corpus and candidates lie there or in a folder above, shared by subtasks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from lossmap.corpora.readers import Reading, malformed
from lossmap.corpora.readers.collection import ALL, Collection, fields_of, load_jsonl
from lossmap.corpora.registry import Stanza

VERSION = "1"
FORM = "LMEB's fields"
# Whose candidates a query may retrieve: those listed under its own id, or under the first two parts of it.
SCENES = {"query": lambda query_id: query_id, "prefix": lambda query_id: "_".join(query_id.split("_")[:2])}


def read(stanza: Stanza, folder: Path, selection: Mapping[str, int] | None = None) -> Reading:
    """Documents with their scene as domain, queries with theirs, qrels above 0 as grades.

    Scenes with one and the same candidate list are one scene, named by the first. Lists that overlap otherwise are no
    domains: the documents stay in ``all`` and the report carries the lists. Queries without qrels are dropped.
    """
    task, collection = folder / stanza.options["task"], Collection(stanza.language)
    lists, scene_of = _scenes(folder, task)
    domains = _domains(lists)
    path = _above(folder, task, "corpus.jsonl")
    documents = load_jsonl(path)
    with fields_of(path, FORM):
        for row in documents:
            domain = domains.get(row["id"], ALL)
            collection.add(plain(row["id"]), row.get("title") or "", row.get("text") or "", domain)
    judged, skipped = _qrels(task / "qrels.tsv"), Counter()
    rule, queries = SCENES[stanza.options["scenes"]], load_jsonl(task / "queries.jsonl")
    with fields_of(task / "queries.jsonl", FORM):
        for position, row in enumerate(queries):
            gold = {plain(name): grade for name, grade in judged.pop(row["id"], {}).items() if grade > 0}
            scene = scene_of.get(rule(row["id"]), ALL)
            skipped["without_qrels"] += not gold
            if gold:
                name = plain(scene if scene != ALL else row["id"])
                collection.ask(f"{stanza.key}:{name}:{position:04d}", row["text"], gold, scene)
    skipped["qrels_of_no_query"] = len(judged)
    report = {"scenes": len(lists), "candidates": None if domains or not lists else lists}
    return collection.finish(selection, **report, skipped=dict(skipped))


def plain(name: str) -> str:
    """An id of ours: every other character as its number between underscores."""
    return re.sub(r"[^A-Za-z0-9._-]", lambda found: f"_{ord(found[0]):x}_", name)


def _above(folder: Path, task: Path, name: str) -> Path:
    """The file of that name in the task's folder or the nearest one above it, at most ``folder``."""
    for place in (task, *task.parents):
        if (place / name).is_file():
            return place / name
        if place == folder:
            break
    raise malformed(task / name, "no such file here or above", f"a {name}")


def _scenes(folder: Path, task: Path) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Distinct candidate lists by scene, and the scene of each scene id; nothing where the task has no candidates."""
    places = (place / "candidates.jsonl" for place in (task, *task.parents) if place.is_relative_to(folder))
    path = next((path for path in places if path.is_file()), None)
    lists: dict[str, list[str]] = {}
    names: dict[frozenset[str], str] = {}
    scene_of: dict[str, str] = {}
    for row in load_jsonl(path) if path else ():
        with fields_of(path, FORM):
            scene, candidates = str(row["scene_id"]), frozenset(row["candidate_doc_ids"])
            scene_of[scene] = names.setdefault(candidates, scene)
            lists[scene_of[scene]] = sorted(candidates)
    return lists, scene_of


def _domains(lists: Mapping[str, list[str]]) -> dict[str, str]:
    """The scene of each document; empty where one is a candidate in two scenes."""
    domains = {document: scene for scene, documents in lists.items() for document in documents}
    return domains if len(domains) == sum(map(len, lists.values())) else {}


def _qrels(path: Path) -> dict[str, dict[str, int]]:
    judged: dict[str, dict[str, int]] = {}
    with fields_of(path, "query, document and grade between tabs, no header"):
        for line in path.read_text(encoding="utf-8").splitlines():
            query, document, grade = line.split("\t")
            judged.setdefault(query, {})[document] = int(grade)
    return judged
