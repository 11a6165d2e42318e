"""A filter on the speaker: its class, both sides of each arm, what the filtered legs hold, and what can be reached."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import planted
import pytest

from lossmap import canon, layout
from lossmap.errors import LossmapError
from lossmap.judge.measures import NAMES
from lossmap.judge.qrels import Coverage
from lossmap.layout import Layout
from lossmap.studies import corpora, judging, one_speaker, stage4

STAGE = "stage4"
QUERIES = {
    "real:m1:000": ("What did Ada say about prices?", "lookup"),
    "real:m1:001": ("What was said about prices?", "lookup"),
    "real:m2:000": ("Summarise what Ada and Bo said.", "summarize"),
    "real:m2:001": ("What did Cy say?", "lookup"),
}
CLASS = ("real:m1:000", "real:m2:000", "real:m2:001")
OFF = dict(zip(QUERIES, (0.5, 0.9, 0.25, 0.25)))
ON = dict(zip(QUERIES, (0.75, 0.1, 0.5, 0.0)))
LEGS = {"bm25": ["bm25"], "dense-exact": ["exact"], "rrf30-exact": ["bm25", "exact"]}
SPEAKERS = ("Ada", "Bo", "Ada", "Bo", "Cy", "Unknown")


class World:
    def __init__(self, patch: pytest.MonkeyPatch, root: Path) -> None:
        index = {"documents": ["real"], "scored": ["real", "made"]}
        spec = {"index": "v6", "corpora": ["real", "made"], "coverage": "made", "speaker": "mixed"}
        self.at = planted.scale(patch, root, {"mixed": index}, {STAGE: spec}, {})
        patch.setattr(one_speaker, "check", lambda at, rows: {"chunks": len(rows), "of_several_speakers": 0})
        self.bench = layout.load("tiny", "mixed/real")
        self.rows = planted.table(
            self.bench, [planted.chunk("real", "m1", i, name, f"text {i}") for i, name in enumerate(SPEAKERS)]
        )
        canon.write_json(self.bench.injection("real") / "manifest.json", {"corpus": {"tier": "A"}})
        planted.corpus(self.at, "real", [], QUERIES, {})
        planted.corpus(self.at, "made", [], {"made:m1:000": ("What did the team say?", "lookup")}, {})
        self.judge("real", dict(zip(QUERIES, ({0: 2, 1: 1}, {0: 1}, {0: 1, 3: 2, 4: 1, 5: 1}, {0: 1}))))
        self.judge("made", {"made:m1:000": {0: 1}})
        self.freeze({"real:m1:000": [0, 2], "real:m1:001": [1], "real:m2:000": [3, 0, 1], "real:m2:001": []})
        self.score(OFF, ON)

    def judge(self, key: str, grades: dict[str, dict[int, int]]) -> None:
        """Judgements of a corpus as the rule judge leaves them: grades of chunk rows by query."""
        counts = [len(docs) for docs in grades.values()]
        share = [0.25 if grade == 1 else 0.75 for docs in grades.values() for grade in docs.values()]
        cover = Coverage(
            tuple(grades), np.array([row.doc_id for row in self.rows], object), np.cumsum([0, *counts]),
            np.array([row for docs in grades.values() for row in docs]), np.array(share),
            np.zeros(len(share), np.int64), {}, 0,
        )  # fmt: skip
        judging._save(self.bench, key, cover)

    def freeze(self, hits: dict[str, list[int]]) -> None:
        for name in ("bm25-speaker", "exact-speaker"):
            planted.leg(self.bench, name, hits)
        planted.leg(layout.load("tiny", "mixed/made"), "bm25-speaker", {"made:m1:000": []})

    def score(self, off: dict[str, float], on: dict[str, float], **other: Any) -> None:
        folder = corpora.scored(self.at, "mixed/real", STAGE)
        for name, used in LEGS.items():
            filtered = {f"{leg}-speaker": canon.file_sha256(self.bench.leg(f"{leg}-speaker")) for leg in used}
            planted.arm(folder / name, name, off, legs_of=dict.fromkeys(used, "s"))
            planted.arm(folder / f"{name}-speaker", f"{name}-speaker", on, legs_of=filtered, **other)
        made = corpora.scored(self.at, "mixed/made", STAGE)
        planted.arm(made / "bm25", "bm25", {"made:m1:000": 0.5})

    def study(self) -> dict[str, Any]:
        return stage4.STUDIES["speaker"](self.at, STAGE)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    return World(monkeypatch, tmp_path)


def test_the_class_is_the_questions_that_name_a_speaker_of_the_index(world: World) -> None:
    real, made = world.study()["classes"]
    assert (real["scored"], real["queries"], real["naming_several"], real["named"]) == (4, 3, 1, 3)
    assert real["query_ids_sha256"] == canon.digest(list(CLASS))
    assert (made["scored"], made["queries"], made["named"]) == (1, 0, 0), "a corpus whose questions name nobody"


def test_both_sides_are_over_the_class_alone(world: World) -> None:
    document = world.study()
    assert [(row["arm"], row["filter"]) for row in document["rows"]] == [
        (f"{name}{suffix}", state) for name in LEGS for suffix, state in (("", "off"), ("-speaker", "on"))
    ]
    for row in document["rows"]:
        mine = ON if row["filter"] == "on" else OFF
        assert (row["queries"], row["meetings"], row["query_class"]) == (3, 2, "names-a-speaker")
        assert row["metrics"] == pytest.approx(dict.fromkeys(NAMES, sum(mine[q] for q in CLASS) / 3))
        assert (row["corpus"], row["tier"], row["judged_by"]) == ("real", "A", "human")
    for row in document["contrasts"]:
        assert row["arm"] == f"{row['control']}-speaker"
        assert row["deltas"]["nDCG@10"] == pytest.approx((0.25 + 0.25 - 0.25) / 3)
        low, high = row["intervals"]["nDCG@10"]["meetings"]
        assert low <= row["deltas"]["nDCG@10"] <= high
    assert canon.dumps(document) == canon.dumps(world.study())


def test_what_the_filter_can_reach_bounds_a_perfect_ranking(world: World) -> None:
    (found,) = world.study()["reach"]
    assert (found["judged_chunks"], found["by_the_named"]) == (7, 3), "1 of 2, 2 of 4 and 0 of 1"
    assert (found["queries_out_of_reach"], found["queries_wholly_in_reach"]) == (1, 0)
    assert found["share"] == pytest.approx((1 / 2 + 2 / 4 + 0) / 3)
    assert found["ceilings"]["unfiltered"] == pytest.approx(dict.fromkeys(NAMES, 1.0))
    assert found["ceilings"]["filtered"]["R@20"] == pytest.approx(found["share"])
    assert found["ceilings"]["filtered"]["RR"] == pytest.approx(2 / 3)
    assert found["ceilings"]["filtered"]["nDCG@10"] < 2 / 3


def test_each_filtered_leg_is_counted_once(world: World) -> None:
    assert [(row["leg"], row["queries"], row["hits"], row["queries_without_hits"]) for row in
            world.study()["filtered"]] == [("bm25-speaker", 3, 5, 1), ("exact-speaker", 3, 5, 1)]  # fmt: skip


def test_a_filtered_leg_that_holds_anothers_words_raises(world: World) -> None:
    world.freeze({"real:m1:000": [0, 1], "real:m1:001": [1], "real:m2:000": [3], "real:m2:001": []})
    world.score(OFF, ON)
    with pytest.raises(LossmapError, match="others' words for real:m1:000") as refusal:
        world.study()
    assert refusal.value.exit_code == 3 and "observed: Bo" in str(refusal.value)


def test_a_filtered_leg_without_a_query_of_the_class_raises(world: World) -> None:
    world.freeze({"real:m1:000": [0], "real:m1:001": [1], "real:m2:000": [3]})
    world.score(OFF, ON)
    with pytest.raises(LossmapError, match="lacks a query of the class"):
        world.study()


def test_a_leg_that_was_frozen_after_it_was_scored_raises(world: World) -> None:
    world.freeze({"real:m1:000": [0], "real:m1:001": [1], "real:m2:000": [3], "real:m2:001": [4]})
    with pytest.raises(LossmapError, match="not the one that was scored"):
        world.study()


def test_arms_over_other_judgements_are_no_pair(world: World) -> None:
    world.score(OFF, ON, hashes={**planted.HASHES, "qrels": "other"})
    with pytest.raises(LossmapError, match="differ in more than the filter") as refusal:
        world.study()
    assert "qrels" in str(refusal.value)


def test_the_whole_index_is_walked(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Layout, int]] = []
    monkeypatch.setattr(one_speaker, "check", lambda at, rows: seen.append((at, len(rows))) or {})
    world.study()
    assert [(at.index, count) for at, count in seen] == [("mixed", len(SPEAKERS))]
