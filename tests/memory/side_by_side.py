"""A random small corpus, frozen and live side by side."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lossmap.index.vectors import Vectors
from lossmap.layout import Layout
from lossmap.memory import freeze, lexical
from lossmap.memory.frozen import Frozen
from lossmap.memory.groups import Group, Question
from lossmap.memory.recall import Recall
from lossmap.memory.store import Store
from lossmap.memory.tasks import Task

WORDS = [a + b for a in ("kel", "mor", "tan", "vis", "rud", "zor") for b in ("ka", "len", "pir", "sot", "und", "wex")]
DIMENSION, QUERIES = 16, 12


def random_task(seed: int, lines: int, keyed: str) -> tuple[Task, Vectors, np.ndarray]:
    """Lines of one to eight words, so that texts repeat; a text has one vector."""
    random = np.random.default_rng(seed)
    texts = [" ".join(random.choice(WORDS, random.integers(1, 8))) for _ in range(lines)]
    texts[1:4] = texts[:1] * 3
    asked = [" ".join(random.choice([*WORDS, "to", "mork"], random.integers(1, 5))) for _ in range(QUERIES)]
    group = Group("g", tuple(f"g/{i}" for i in range(lines)), tuple(texts))
    questions = tuple(
        Question(f"q{i:02}", text, "s", "g", frozenset({f"g/{i}"}), None, f"q{i:02}") for i, text in enumerate(asked)
    )
    number = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    inverse = np.array([number[text] for text in texts], np.int32)
    distinct = _unit(random, len(number))
    return (
        Task("t", "A", "constructed", keyed, (group,), questions, {}, True, None, {}),
        Vectors(distinct, inverse),
        _unit(random, QUERIES),
    )


def _unit(random: np.random.Generator, count: int) -> np.ndarray:
    rows = (random.normal(size=(count, DIMENSION)) + 0.5).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def both(place: Path, seed: int, lines: int, keyed: str, threshold: float) -> tuple[Frozen, Recall, Task, np.ndarray]:
    task, vectors, queries = random_task(seed, lines, keyed)
    at = Layout(place, "smoke", {"scales": {"smoke": {}}})
    lexical.freeze(task, at)
    lists = lexical.load(lexical.folder(at, task))
    found = freeze.freeze(task, lists, {"g": vectors}, {"g": threshold}, queries)
    store = Store()
    store.fill(task.groups[0].keys, task.groups[0].texts, vectors.distinct[vectors.inverse], keyed)
    return found, Recall(store, threshold), task, queries
