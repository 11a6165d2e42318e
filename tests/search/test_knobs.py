"""Every knob of a hybrid request moves the live order, a written default does not, and a dead knob is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import crafted
import pytest
from opensearchpy import OpenSearch

from lossmap.errors import LossmapError
from lossmap.index.table import Row
from lossmap.index.vectors import Vectors
from lossmap.search import knobs, latency
from lossmap.search import legs as frozen_legs
from lossmap.search.legs import Live

STAGE = {
    "defaults": {"mode": "hybrid", "legs": ["bm25", "exact"], "size": 48},
    "families": {"fusion": {"control": "rrf-30-default", "arms": [{}, {"rank_constant": 60}, {"weights": [0.7, 0.3]}]}},
}


@pytest.fixture(scope="module")
def live(opensearch: OpenSearch) -> Iterator[tuple[Live, Vectors, list[Row]]]:
    with crafted.index(opensearch, "lossmap_test_knobs") as found:
        yield found


@pytest.fixture
def at(live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    for module in (knobs, latency):
        monkeypatch.setattr(module, "Bench", lambda at: crafted.bench(at, live[0], live[2]))
    return crafted.scale(monkeypatch, tmp_path, {"stage5": STAGE})


def test_every_knob_is_alive_and_every_written_default_is_inert(at) -> None:  # type: ignore[no-untyped-def]
    report = knobs.run(at)
    knobs.require(report)
    rows = report["rows"]
    assert [row["knob"] for row in rows] == [*knobs.ALIVE, *knobs.INERT]
    assert {row["queries"] for row in rows} == {24} and {row["bench"] for row in rows} == {"small/demo"}
    assert {row["knob"]: row["changed"] for row in rows if row["expected"] == "inert"} == dict.fromkeys(knobs.INERT, 0)
    assert all(0 < row["changed"] <= 24 for row in rows if row["expected"] == "alive")


class _Engine:
    """The real engine behind an altered search, as an older version answers."""

    def __init__(self, client: OpenSearch, **dead: Any) -> None:
        self._client, self._dead = client, dead

    def search(self, **call: Any) -> Any:
        processors = call["body"]["search_pipeline"]["phase_results_processors"]
        for combination in (part["combination"] for processor in processors for part in processor.values() if part):
            combination.update({key: value for key, value in self._dead.items() if key in combination})
        return self._client.search(**call)


def asking(live: Live):  # type: ignore[no-untyped-def]
    asked = crafted.queries()

    def ask(settings: dict[str, Any], i: int) -> dict[str, Any]:
        return knobs.request(settings, crafted.clauses(asked[i], settings.get("k", crafted.K)))

    return ask


@pytest.mark.parametrize(
    ("dead", "knob"),
    [({"rank_constant": 60}, "rank_constant"), ({"parameters": {}}, "weights of rrf")],
)
def test_a_knob_that_the_engine_ignores_is_refused(live, dead: dict[str, Any], knob: str) -> None:  # type: ignore[no-untyped-def]
    engine = frozen_legs.Live(_Engine(live[0].client, **dead), live[0].index, live[0].row_of)  # type: ignore[arg-type]
    rows = {(row["knob"], row["expected"]): row for row in knobs.check(engine, asking(live[0]), list(range(8)))}
    assert rows[knob, "alive"]["changed"] == 0 and not rows[knob, "alive"]["alive"]
    with pytest.raises(LossmapError, match="is dead") as refusal:
        knobs.require({"rows": list(rows.values())})
    assert refusal.value.exit_code == 2 and knob in str(refusal.value)


def test_a_default_that_is_another_value_is_refused() -> None:
    row = {"knob": "rank_constant", "values": [{}, {"rank_constant": 30}], "queries": 8}
    with pytest.raises(LossmapError, match="not inert"):
        knobs.require({"rows": [{**row, "expected": "inert", "changed": 3, "alive": True}]})


def test_a_longer_list_is_no_other_order() -> None:
    assert not knobs._differ([1, 2], [1, 2, 3]) and knobs._differ([1, 2], [2, 1, 3])


def test_percentiles_are_samples_by_nearest_rank_to_a_tenth_of_a_millisecond() -> None:
    found = latency.summary([float(value) for value in range(200, 0, -1)])
    assert found == {"samples": 200, "p50": 100.0, "p95": 190.0, "p99": 198.0, "max": 200.0, "mean": 100.5}
    assert latency.summary([1.26]) == {"samples": 1, **dict.fromkeys(("p50", "p95", "p99", "max", "mean"), 1.3)}
    assert latency.summary([]) == {"samples": 0}


def test_arms_are_interleaved_and_take_turns_to_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "CONCURRENCY", 1)
    sent: list[tuple[str, int]] = []
    rows = latency.measure(lambda name, i: sent.append((name, i)), ["control", "a", "b"], [5, 6], passes=2)
    first = [("control", 5), ("a", 5), ("b", 5), ("a", 6), ("b", 6), ("control", 6)]
    assert sent == first * 2
    assert [(row["arm"], row["pass"], row["samples"]) for row in rows] == [
        (name, turn, 2) for turn in (1, 2) for name in ("control", "a", "b")
    ]


def test_latency_of_the_live_engine_is_of_the_named_arms_and_their_control(at) -> None:  # type: ignore[no-untyped-def]
    report = latency.run(at, "stage5", names=["rrf-60"], every=8, passes=2)
    assert (report["control"], report["concurrency"], report["passes"]) == ("rrf-30-default", 2, 2)
    assert {row["arm"] for row in report["rows"]} == {"rrf-30-default", "rrf-60"} and len(report["rows"]) == 4
    assert all(row["samples"] == 3 and 0 < row["p50"] <= row["p95"] <= row["max"] for row in report["rows"])


def test_a_bench_without_queries_kills_no_knob(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knobs, "Bench", lambda at: SimpleNamespace(queries=[]))
    report = knobs.run(crafted.scale(monkeypatch, tmp_path, {"stage5": STAGE}))
    knobs.require(report)
    assert report == {"rows": []}
