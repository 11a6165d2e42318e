"""The folders of LMEB (2026) as tasks: which subtasks a data set has, and whose corpus and candidates they share.

A subtask is any folder that holds queries.jsonl and qrels.tsv; its corpus and its candidates are the nearest above it
(spec/replay 5.1 and 7.1). The data lie on a hub; whoever holds them names their folder in LOSSMAP_LMEB.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lossmap.corpora.readers.collection import fields_of, load_jsonl
from lossmap.corpora.readers.lmeb import SCENES
from lossmap.errors import LossmapError

VARIABLE = "LOSSMAP_LMEB"
DATA = "eval_data"
WHOLE = "all"
"""The name of a subtask or a corpus that lies in the data set's own folder."""


@dataclass(frozen=True)
class Subtask:
    """``corpus`` the folder of its corpus.jsonl; ``questions`` (id, text) with gold, in file order; ``gold`` query to
    the documents of a grade above 0; ``candidates`` the file of its scenes, None where the whole corpus is asked."""

    name: str
    corpus: Path
    questions: tuple[tuple[str, str], ...]
    gold: Mapping[str, frozenset[str]]
    candidates: Path | None


def root(named: str | None, top: Path) -> tuple[Path | None, str | None]:
    """The folder of the data, and the reason where there is none. ``named``: one of this repository, below ``top``.

    Raises (exit 2) where the variable names no such folder: a setting that is ignored would pass for an absent one.
    """
    given = str(top / named) if named else os.environ.get(VARIABLE)
    if not given:
        return None, f"its data lie on a hub; {VARIABLE} names no folder that holds them"
    if not (Path(given) / DATA).is_dir():
        raise LossmapError(
            "the folder of LMEB is unusable",
            where=named if named else VARIABLE,
            observed=given,
            expected=f"a folder that holds {DATA}/<Type>/<Dataset>/",
            next_command=f"correct or unset {VARIABLE}",
            exit_code=2,
        )
    return Path(given) / DATA, None


def dataset(data: Path, name: str) -> Path | None:
    """The folder ``<Type>/<name>``; case and punctuation of its name do not matter (ESG-Reports, ESGReports)."""
    found = [path for path in sorted(data.glob("*/*")) if path.is_dir() and _bare(path.name) == _bare(name)]
    return found[0] if found else None


def _bare(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def subtasks(folder: Path) -> list[Subtask]:
    """All subtasks of a data set, by path. Raises LossmapError where one has no corpus or a file is malformed."""
    places = sorted(path.parent for path in folder.rglob("queries.jsonl") if (path.parent / "qrels.tsv").is_file())
    return [_subtask(folder, place) for place in places]


def _subtask(folder: Path, place: Path) -> Subtask:
    corpus = _above(folder, place, "corpus.jsonl")
    if corpus is None:
        raise LossmapError("a subtask of LMEB has no corpus", where=place, expected="corpus.jsonl here or above")
    gold = _gold(place / "qrels.tsv")
    asked = [(str(row["id"]), str(row["text"])) for row in _rows(place / "queries.jsonl", "id", "text")]
    questions = tuple((query_id, text) for query_id, text in asked if gold.get(query_id))
    return Subtask(label(folder, place), corpus.parent, questions, gold, _above(folder, place, "candidates.jsonl"))


def label(folder: Path, place: Path) -> str:
    """The path of ``place`` in the data set's ``folder``; WHOLE for the folder itself."""
    return WHOLE if place == folder else place.relative_to(folder).as_posix()


def documents(corpus: Path) -> Iterator[tuple[str, str]]:
    """(id, text) of each line. An id may repeat (QASPER: 20,508 ids on 65,300 lines): the store keeps the first."""
    for row in _rows(corpus / "corpus.jsonl", "id"):
        yield str(row["id"]), f"{row.get('title') or ''} {row.get('text') or ''}".strip()


def scenes(path: Path) -> dict[str, frozenset[str]]:
    """Scene to its candidate documents; equal lists are one object, since MLDR repeats its corpus for every query."""
    shared: dict[frozenset[str], frozenset[str]] = {}
    found = {}
    for row in _rows(path, "scene_id", "candidate_doc_ids"):
        candidates = frozenset(map(str, row["candidate_doc_ids"]))
        found[str(row["scene_id"])] = shared.setdefault(candidates, candidates)
    return found


def scene(query_id: str, rule: str, known: Mapping[str, frozenset[str]]) -> str | None:
    """The scene of a query by the task's rule; None where it has no candidates, so that the whole corpus is asked.

    Raises LossmapError where the whole id and its first two parts are scenes with different candidates: the two rules
    of the field (the benchmark's by query, the pipeline's by prefix) would then rank different rows.
    """
    names = {way: of(query_id) for way, of in SCENES.items()}
    lists = {known[name] for name in names.values() if name in known}
    if len(lists) > 1:
        raise LossmapError(
            "the candidates of a query are not decided",
            where=query_id,
            observed=f"scenes {sorted(set(names.values()))} with different candidates",
            expected="one of them, or equal ones",
        )
    return names[rule] if names[rule] in known else None


def _above(folder: Path, place: Path, name: str) -> Path | None:
    """The file of that name in ``place`` or the nearest folder above it, at most ``folder``."""
    return next(
        (up / name for up in (place, *place.parents) if up.is_relative_to(folder) and (up / name).is_file()), None
    )


def _rows(path: Path, *needed: str) -> list[dict[str, Any]]:
    rows = load_jsonl(path)
    with fields_of(path, "LMEB's fields"):
        for row in rows:
            for name in needed:
                row[name]
    return rows


def _gold(path: Path) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    with fields_of(path, "query, document and grade between tabs, no header"):
        for line in path.read_text(encoding="utf-8").splitlines():
            query_id, document, grade = line.split("\t")
            if int(grade) > 0:
                found.setdefault(query_id, set()).add(document)
    return {query_id: frozenset(documents) for query_id, documents in found.items()}
