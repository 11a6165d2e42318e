"""The lexical lists of a task: what the store said, read back from memory maps."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.layout import Layout
from lossmap.memory import lexical
from lossmap.memory.groups import Group, Question
from lossmap.memory.store import Store
from lossmap.memory.tasks import Task

ONE = ("the red kettle boils", "a red door", "green kettle, red lid", "nothing to see", "a red door")
TWO = ("kettle", "pumps and valves", "pumps")


def question(query_id: str, text: str, group: str) -> Question:
    return Question(query_id, text, "s", group, frozenset(), None, query_id)


TASK = Task(
    name="crafted",
    tier="A",
    judged_by="constructed",
    keyed="content",
    groups=(
        Group("one", tuple(f"one/{i}" for i in range(5)), ONE),
        Group("two", tuple(f"two/{i}" for i in range(3)), TWO),
    ),
    questions=(
        question("q1", "pumps kettle", "two"),
        question("q2", "red kettle", "one"),
        question("q3", "red kettle", "one"),
        question("q4", "to", "one"),
        question("q5", "absent", "two"),
    ),
    candidates={},
    obtained=True,
    reason=None,
    stanza={},
)


@pytest.fixture
def at(tmp_path: Path) -> Layout:
    return Layout(tmp_path, "smoke", {"scales": {"smoke": {}}})


def test_the_lists_are_those_of_the_store(at: Layout) -> None:
    lexical.freeze(TASK, at)
    found = lexical.load(lexical.folder(at, TASK))
    found.require(TASK)
    for group in TASK.groups:
        store = Store()
        population = store.fill(group.keys, group.texts, None, "content")
        assert found.kept[group.name].tolist() == population.kept.tolist()
        for asked in (some for some in TASK.questions if some.group == group.name):
            said = store.keyword(asked.text, population.lines)
            rows, bm25, fallback = found.of(asked.query_id)
            assert [group.keys[population.kept[row]] for row in rows] == [hit[1] for hit in said.hits]
            assert np.array_equal(bm25, np.array([hit[2] for hit in said.hits], np.float64), equal_nan=True)
            assert fallback == said.fallback
    assert found.counts == {
        "one": {"lines": 5, "stored": 4, "collapsed": 1},
        "two": {"lines": 3, "stored": 3, "collapsed": 0},
    }


def test_a_list_of_like_is_flagged_and_an_empty_one_is_not(at: Layout) -> None:
    lexical.freeze(TASK, at)
    found = lexical.load(lexical.folder(at, TASK))
    rows, bm25, fallback = found.of("q4")
    assert rows.tolist() == [3] and np.isnan(bm25).all() and fallback
    assert [len(part) for part in found.of("q5")[:2]] == [0, 0] and not found.of("q5")[2]
    assert found.rows.dtype == np.int32 and found.bm25.dtype == np.float64


def test_a_text_that_is_asked_twice_in_a_row_is_searched_once(at: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    plain = Store.keyword

    def keyword(self: Store, text: str, limit: int, strip_punct: bool = False) -> object:
        asked.append(text)
        return plain(self, text, limit, strip_punct)

    monkeypatch.setattr(Store, "keyword", keyword)
    lexical.freeze(TASK, at)
    assert asked == ["red kettle", "to", "pumps kettle", "absent"]


def test_a_task_reads_the_lists_that_its_stanza_names(at: Layout) -> None:
    lexical.freeze(TASK, at)
    other = dataclasses.replace(TASK, name="other", stanza={"lexical": "crafted"})
    assert lexical.folder(at, other) == lexical.folder(at, TASK)


def test_freezing_again_replaces_and_leaves_nothing_behind(at: Layout) -> None:
    lexical.freeze(TASK, at)
    first = canon.sums(lexical.folder(at, TASK))
    lexical.freeze(TASK, at)
    assert canon.sums(lexical.folder(at, TASK)) == first
    assert [path.name for path in lexical.folder(at, TASK).parent.iterdir()] == ["crafted"]


def test_an_interrupted_freeze_leaves_what_was_there(at: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    lexical.freeze(TASK, at)
    first = canon.sums(lexical.folder(at, TASK))

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(lexical.Store, "keyword", stop)
    with pytest.raises(KeyboardInterrupt):
        lexical.freeze(TASK, at)
    assert canon.sums(lexical.folder(at, TASK)) == first
    assert [path.name for path in lexical.folder(at, TASK).parent.iterdir()] == ["crafted"]


def test_lists_of_other_texts_and_lists_cut_short_are_refused(at: Layout) -> None:
    lexical.freeze(TASK, at)
    place = lexical.folder(at, TASK)
    found = lexical.load(place)
    changed = dataclasses.replace(TASK.questions[0], text="other words")
    with pytest.raises(LossmapError, match="other questions"):
        found.require(dataclasses.replace(TASK, questions=(changed, *TASK.questions[1:])))
    with pytest.raises(LossmapError, match="no lexical list"):
        found.of("q9")
    (place / "rows.i32").write_bytes(b"")
    with pytest.raises(LossmapError, match="cut short"):
        lexical.load(place)
    with pytest.raises(LossmapError, match="not there"):
        lexical.load(place.parent / "nothing")


def test_a_task_without_any_hit_is_loaded(at: Layout) -> None:
    task = dataclasses.replace(TASK, questions=(question("q", "absent", "two"),))
    lexical.freeze(task, at)
    assert lexical.load(lexical.folder(at, task)).of("q")[0].tolist() == []
