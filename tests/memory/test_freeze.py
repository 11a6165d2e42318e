"""Freezing a task: scores of whole pools, keys to rows, subsets, labels, and the sample of the dump."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from lossmap.errors import LossmapError
from lossmap.index.vectors import Vectors
from lossmap.memory import cut, freeze
from lossmap.memory import frozen as frozen_
from lossmap.memory.groups import Group, Question
from lossmap.memory.lexical import Lexical, sha256
from lossmap.memory.tasks import Task

LINES, DIMENSION = 400, 8


def unit(random: np.random.Generator, count: int) -> np.ndarray:
    rows = random.normal(size=(count, DIMENSION)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def task_of(questions: list[Question], candidates: dict[str, frozenset[str]]) -> Task:
    names = ("one", "two")
    groups = [
        Group(n, tuple(f"{n}/{i}" for i in range(LINES)), tuple(f"{n} line {i}" for i in range(LINES))) for n in names
    ]
    return Task("t", "A", "human", "rows", tuple(groups), tuple(questions), candidates, True, None, {})


QUESTIONS = [
    Question("z", "last by id, first in the task", "s", "one", frozenset({"one/3", "one/399"}), None, "z"),
    Question("a", "of a scene", "s", "two", frozenset({"two/5", "two/6", "two/7"}), "scene", "m"),
    Question("b", "without a list", "s2", "one", frozenset({"one/100"}), None, "b"),
]
SCENES = {"scene": frozenset({"two/5", "two/7", "two/20", "two/21", "two/395"})}


def lexical_of(task: Task, dropped: dict[str, set[int]]) -> Lexical:
    """Lists of crafted rows: every second row falling, from LIKE for the second question, none for the third."""
    stored = {g.name: np.array([i for i in range(LINES) if i not in dropped.get(g.name, set())]) for g in task.groups}
    lists = [np.arange(380, 0, -2, np.int32), np.arange(40), np.empty(0, np.int32)]
    bm25 = [-np.arange(len(lists[0]), dtype=np.float64), np.full(40, np.nan), np.empty(0)]
    texts = {f"group {g.name}": sha256(g.texts) for g in task.groups}
    return Lexical(
        place=Path("lists"),
        keyed="rows",
        strip_punct=False,
        at={question.query_id: i for i, question in enumerate(task.questions)},
        texts=texts | {f"query {q.query_id}": sha256([q.text]) for q in task.questions},
        counts={},
        kept=stored,
        offsets=np.cumsum([0, *map(len, lists)]),
        rows=np.concatenate(lists).astype(np.int32),
        bm25=np.concatenate(bm25),
        fallback=np.array([False, True, False]),
    )


@pytest.fixture
def given() -> tuple[Task, Lexical, dict[str, Vectors], dict[str, float], np.ndarray]:
    random = np.random.default_rng(3)
    task = task_of(QUESTIONS, SCENES)
    distinct = unit(random, 150)
    inverse = {g.name: random.integers(0, 150, LINES).astype(np.int32) for g in task.groups}
    vectors = {name: Vectors(distinct, some) for name, some in inverse.items()}
    return task, lexical_of(task, {"two": {6, 20}}), vectors, {"one": 0.4, "two": 0.2}, unit(random, 3)


def test_numbers_and_rows_are_those_of_plain_code(given) -> None:  # type: ignore[no-untyped-def]
    task, lexical, vectors, thresholds, queries = given
    found = freeze.freeze(task, lexical, vectors, thresholds, queries)
    assert (
        found.query_ids == ("a", "b", "z") and found.subtasks == ("s", "s2", "s") and found.clusters == ("m", "b", "z")
    )
    for i, query_id in enumerate(found.query_ids):
        number = [q.query_id for q in task.questions].index(query_id)
        question = task.questions[number]
        kept = lexical.kept[question.group]
        table = vectors[question.group]
        rows = table.distinct[table.inverse[kept]]
        cosine = (rows.astype(np.float64) @ queries[number].astype(np.float64)).astype(np.float32)
        dense = sorted(range(len(kept)), key=lambda row: (-cosine[row], row))
        keys = [task.groups[question.group == "two"].keys[line] for line in kept]
        inside = [row for row in dense if question.scene is None or keys[row] in SCENES["scene"]]
        lex = lexical.of(query_id)[0].tolist()
        floor = np.float32(thresholds[question.group] * 0.5)
        numbers = (len(kept), len(inside), int((cosine >= floor).sum()), sum(cosine[r] >= floor for r in inside))
        got = (found.size[i], found.eligible[i], found.admitted[i], found.admitted_eligible[i])
        assert got == numbers
        assert (found.lexical[i], found.lexical_eligible[i]) == (len(lex), len(set(lex) & set(inside)))
        assert (found.relevant[i], found.missing[i]) == (len(question.gold), len(question.gold - set(keys)))
        assert found.gate[i] == cut.pool_gate(len(kept)) and found.floor[i] == floor
        assert found.best[i] == cosine.max() and found.best_eligible[i] == cosine[inside].max()
        part = slice(found.offsets[i], found.offsets[i + 1])
        mine = found.row[part].tolist()
        assert mine == sorted(set(mine))
        assert found.dense[part].tolist() == [dense.index(row) for row in mine]
        assert found.dense_eligible[part].tolist() == [inside.index(r) if r in inside else -1 for r in mine]
        assert found.lex[part].tolist() == [lex.index(row) if row in lex else -1 for row in mine]
        assert found.cosine[part].tolist() == cosine[mine].tolist()
        gold = {row for row, key in enumerate(keys) if key in question.gold}
        assert {row for row, label in zip(mine, found.label[part]) if label} == gold
        working = {row for row, used in zip(mine, found.working[part]) if used}
        assert working == set(inside) if question.scene else set(dense[:260]) | set(lex[:260]) <= working
    assert found.fallback.tolist() == [True, False, False] and found.subset.tolist() == [True, False, False]
    judged = found.qrels()
    assert judged["a"] == {5: 1, 6: 1, -1: 1}  # two/6 was dropped, two/7 is row 6


def test_the_orders_do_not_depend_on_the_batch(given, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    task, *rest = given
    whole = freeze.freeze(task, *rest)
    monkeypatch.setattr(freeze, "BATCH", 1)
    again = freeze.freeze(task, *rest)
    for field in dataclasses.fields(whole):
        assert np.array_equal(getattr(whole, field.name), getattr(again, field.name), equal_nan=field.name == "bm25")


def test_equal_texts_stand_by_row() -> None:
    cosine = np.array([0.5, -0.0, 0.5, 0.0, -1, 1, -0.25, 0.5], np.float32)
    assert cut.falling(cosine).tolist() == [5, 0, 2, 7, 1, 3, 6, 4]
    random = np.random.default_rng(0).normal(size=5000).astype(np.float32).round(2)
    assert np.array_equal(cut.falling(random), np.argsort(-random, kind="stable"))


def asked(size: int, gold: list[int], name: str = "s|q") -> cut.Asked:
    cosine = np.linspace(1, -1, size, dtype=np.float32)  # row = dense rank
    none = np.empty(0, np.int32)
    return cut.Asked(cosine, none, np.empty(0), False, None, np.array(gold, np.int64), len(gold), name)


def test_the_sample_of_the_dump() -> None:
    part = cut.scores(asked(3000, [2, 50, 2500]), np.float32(0), 0.2)
    chance = dict(zip(part["row"].tolist(), part["chance"].tolist()))
    assert part["bins"].tolist() == [1, 1, 7, 20, 69, 200, 700, 1999]
    assert all(chance[row] == 1.0 for row in [*range(30), 50, 2500])
    for first, end, population in ((30, 100, 69), (100, 300, 200), (300, 1000, 700), (1000, 3000, 1999)):
        drawn = {row: p for row, p in chance.items() if first <= row < end and p > 0 and row not in (50, 2500)}
        assert len(drawn) == 20 and set(drawn.values()) == {20 / population}
    again = cut.scores(asked(3000, [2, 50, 2500]), np.float32(0), 0.2)
    other = cut.scores(asked(3000, [2, 50, 2500], "s|r"), np.float32(0), 0.2)
    assert again["chance"].tolist() == part["chance"].tolist()
    assert other["row"].tolist() != part["row"].tolist()


def test_a_bin_of_no_more_than_twenty_is_taken_whole() -> None:
    part = cut.scores(asked(45, []), np.float32(0), 0.2)
    assert part["chance"].tolist() == [1.0] * 45


def test_gold_outside_the_subset_is_kept_but_never_listed() -> None:
    query = dataclasses.replace(asked(100, [40]), eligible=np.array([10, 20, 30]))
    part = cut.scores(query, np.float32(0), 0.2)
    assert part["row"].tolist() == [10, 20, 30, 40]
    assert part["working"].tolist() == [True, True, True, False]
    assert part["chance"].tolist() == [1.0, 1.0, 1.0, 0.0] and part["dense_eligible"].tolist() == [0, 1, 2, -1]


def test_texts_of_another_task_are_refused(given) -> None:  # type: ignore[no-untyped-def]
    task, lexical, *rest = given
    other = dataclasses.replace(task, questions=(dataclasses.replace(QUESTIONS[0], text="changed"), *QUESTIONS[1:]))
    with pytest.raises(LossmapError, match="other questions"):
        freeze.freeze(other, lexical, *rest)
    with pytest.raises(LossmapError, match="keyed or asked otherwise"):
        freeze.freeze(dataclasses.replace(task, keyed="content"), lexical, *rest)
    group = dataclasses.replace(task.groups[0], texts=tuple(reversed(task.groups[0].texts)))
    with pytest.raises(LossmapError, match="other documents"):
        freeze.freeze(dataclasses.replace(task, groups=(group, task.groups[1])), lexical, *rest)


def test_a_list_that_is_upside_down_is_refused(given) -> None:  # type: ignore[no-untyped-def]
    task, lexical, *rest = given
    with pytest.raises(LossmapError, match="not best first"):
        freeze.freeze(task, dataclasses.replace(lexical, bm25=-lexical.bm25), *rest)


def test_vectors_of_other_documents_are_refused(given) -> None:  # type: ignore[no-untyped-def]
    task, lexical, vectors, *rest = given
    short = {name: Vectors(some.distinct, some.inverse[:-1]) for name, some in vectors.items()}
    with pytest.raises(LossmapError, match="other documents than the group"):
        freeze.freeze(task, lexical, short, *rest)


def test_what_is_frozen_is_ranked(given) -> None:  # type: ignore[no-untyped-def]
    found = freeze.freeze(*given)
    assert set(frozen_.ranking(found, frozen_.order(found, "s3r"))) == {"a", "b", "z"}
    assert frozen_.extent(found, "s3r").tolist()[0] == 4  # four of the five of the scene are stored
