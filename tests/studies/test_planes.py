"""One chunk plane under every index, what digests do to the text leg, what a window cuts, and that nobody wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rebuilt
from opensearchpy import OpenSearch

from lossmap import canon, layout
from lossmap.engine import marker
from lossmap.errors import LossmapError
from lossmap.index import build, settle, vectors
from lossmap.index.table import Row
from lossmap.layout import Layout
from lossmap.search import legs
from lossmap.search.legs import Leg
from lossmap.studies import planes

CHAPTER = {
    "corpora": ["real"],
    "graphs": ["mixed"],
    "contrasts": [["header", "headed", "mixed"], ["digests", "v6", "headed"], ["v6", "v6", "mixed"]],
}
HEADED = "title-date-people"
IDENTITIES: dict[str, dict[str, Any]] = {
    "mixed": {"header": "none"},
    "headed": {"header": HEADED},
    "v6": {"header": HEADED, "digests": {"header": HEADED}},
}
CLASSES = {"real:m1:000": "lookup", "real:m2:000": "lookup"}


def chunk(text: str, index: int) -> Row:
    return Row("f", index, "real", "m1", "d", "en", "Title", None, "A", ("A", "B"), float(index), index + 1.0, text)


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    indexes = {name: {"documents": ["real"], "scored": ["real"]} for name in IDENTITIES}
    made = rebuilt.root(tmp_path, monkeypatch, indexes, "stage3", CHAPTER)
    rebuilt.corpus(made, "real", CLASSES)
    for index, identity in IDENTITIES.items():
        whole = {**identity, "chunks_sha256": "c", "graph": index == "mixed", "encoder": {"name": "m", "window": 256}}
        rebuilt.manifest(made, index, {"f": ["a", "b"]}, **whole)
        document = canon.read_json(layout.load(made.scale, index).index_folder / "manifest.json")
        document["index_sha256"] = index
        if index == "v6":
            document["state"] |= {"planes": {"chunk": 2, "digest": 1}, "docs_count": 3}
        canon.write_json(layout.load(made.scale, index).index_folder / "manifest.json", document)
    ann = {"depth": 48, "recall_mean": 0.25}
    rebuilt.arm(made.stage("stage3") / "scored/mixed/real/dense-hnsw", dict.fromkeys(CLASSES, 0.1), CLASSES, ann=ann)
    return made


def leg(*lists: tuple[list[int], list[float]]) -> Leg:
    rows, scores = legs.pad(lists, 50)
    return Leg([f"q{i}" for i in range(len(lists))], rows, scores, {"leg": "bm25"})


def test_a_moved_text_leg_is_counted_by_order_by_rows_and_by_score() -> None:
    control = leg(([1, 2, 3], [4.0, 2.0, 1.0]), ([5, 6], [2.0, 1.0]), ([7, 8], [2.0, 1.0]))
    treatment = leg(([1, 2, 3], [4.4, 2.2, 0.9]), ([6, 5], [2.0, 1.0]), ([7, 9], [2.0, 1.0]))
    found = planes.moved(treatment, control)
    assert found["queries"] == 3
    for depth in found["depths"]:
        assert (depth["queries_differ"], depth["queries_with_other_rows"]) == (2, 1)
        assert depth["share_kept"] == pytest.approx((1 + 1 + 0.5) / 3)
    # Row 6 had 1.0 and has 2.0, row 5 the reverse.
    assert (found["ratio_lowest"], found["ratio_highest"]) == (0.5, 2.0)
    assert (found["ratio_largest_change"], found["rows_compared"]) == (1.0, 6)


def test_a_difference_below_the_tenth_row_is_one_of_the_deeper_list_alone() -> None:
    scores = list(np.arange(12, 0, -1.0))
    control, treatment = leg((list(range(12)), scores)), leg(([*range(11), 99], scores))
    first, deep = planes.moved(treatment, control)["depths"]
    assert (first["depth"], first["queries_differ"], deep["depth"], deep["queries_differ"]) == (10, 0, 48, 1)


def test_legs_of_other_queries_are_refused() -> None:
    with pytest.raises(LossmapError, match="same queries") as refused:
        planes.moved(leg(([1], [1.0])), leg(([1], [1.0]), ([2], [1.0])))
    assert refused.value.exit_code == 3


def test_no_rows_are_no_ratio() -> None:
    found = planes.moved(leg(([], [])), leg(([], [])))
    assert found["ratio_largest_change"] is None and found["depths"][0]["share_kept"] == 1.0


def test_indexes_say_what_they_hold_and_cross_talk_is_of_those_apart_by_digests(
    at: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planes, "windows", lambda *_: [])
    monkeypatch.setattr(planes, "unwritten", lambda *_: [])
    for index in ("v6", "headed"):
        legs.save(layout.load(at.scale, f"{index}/real").leg("bm25"), leg(([1], [1.0]), ([2], [1.0])))
    found = planes.card(at, "stage3")
    rows = {row["index"]: row for row in found["indexes"]}
    assert list(rows) == ["mixed", "headed", "v6"] and found["chunk_planes"] == 1
    assert [(rows[i]["header"], rows[i]["digests"], rows[i]["digest_documents"]) for i in rows] == [
        ("none", None, 0), (HEADED, None, 0), (HEADED, HEADED, 1),
    ]  # fmt: skip
    assert rows["mixed"]["ann"][0] | {"recall_mean": 0.25, "corpus": "real"} == rows["mixed"]["ann"][0]
    assert rows["v6"]["ann"] == [] and rows["v6"]["window"] == 256
    talk = [(t["treatment"], t["control"], t["corpus"], t["planes"]["digest"]) for t in found["cross_talk"]]
    assert talk == [("v6", "headed", "real", 1)]


def test_a_chunk_plane_that_moved_shows(at: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("windows", "unwritten", "_pairs_apart_by_digests"):
        monkeypatch.setattr(planes, name, lambda *_: [])
    with open(layout.load(at.scale, "v6").index_folder / "chunks.jsonl", "a") as handle:
        handle.write('{"file_uuid": "f", "text": "c"}\n')
    found = planes.card(at, "stage3")
    assert found["chunk_planes"] == 2


def test_windows_are_held_against_every_header_and_plane(at: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[list[str], list[int]]] = []

    def cut_by(_: str, texts: list[str], sizes: list[int]) -> dict[str, Any]:
        asked.append((texts, sizes))
        return {"texts": len(texts), "pieces": 0, "windows": []}

    monkeypatch.setattr(vectors, "cut_by", cut_by)
    monkeypatch.setattr(planes.table, "load", lambda _: [chunk("a", 0), chunk("b", 1)])
    monkeypatch.setattr(planes.plane, "load", lambda _: [chunk("d", 0)])
    found = planes.windows(at, "stage3")
    assert [(r["plane"], r["index"], r["corpus"], r["header"], r["texts"]) for r in found] == [
        ("chunk", "mixed", "real", "none", 2), ("chunk", "mixed", "real", HEADED, 2),
        ("digest", "v6", "real", "none", 1), ("digest", "v6", "real", HEADED, 1),
    ]  # fmt: skip
    assert asked[0] == (["a", "b"], [256]) and asked[1][0][0] == "Title | participants: A, B\n\na"


@pytest.fixture
def live(at: Layout, opensearch: OpenSearch, unique_name: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Every index of the chapter, as the real engine builds it, under names of this test."""
    names = {index: unique_name(index) for index in IDENTITIES}
    monkeypatch.setattr(Layout, "index_name", property(lambda self: names[self.index]))
    values = vectors.Vectors(np.eye(2, 8, dtype=np.float32), np.arange(2, dtype=np.int32))
    rows = [chunk("a", 0), chunk("b", 1)]
    for index in IDENTITIES:
        key = {"encoder": {"name": "m", "dimension": 8, "window": 256}, "chunks_sha256": "c", "graph": True}
        key["header"] = IDENTITIES[index]["header"]
        report = build.build(opensearch, names[index], rows, values, key, timing=(20, 0.05))
        engine = {"name": "opensearch"}
        build.manifest(layout.load(at.scale, index).index_folder / "manifest.json", key, {}, report, engine)
    yield opensearch, names
    for name in names.values():
        marker.delete_index(opensearch, name)


def test_nobody_wrote_between_control_and_treatment(at: Layout, live: Any) -> None:
    found = planes.unwritten(at, "stage3")
    assert [(r["index"], r["indexing_total_at_settle"], r["indexing_total_now"], r["counter"]) for r in found] == [
        (index, 2, 2, "kept") for index in ("mixed", "headed", "v6")
    ]  # fmt: skip


def test_one_document_written_over_another_is_found(at: Layout, live: Any) -> None:
    client, names = live
    hit = client.search(index=names["v6"], body={"size": 1})["hits"]["hits"][0]
    client.index(index=names["v6"], id=hit["_id"], body=hit["_source"], refresh=True)
    with pytest.raises(LossmapError, match="written to after it settled") as refused:
        planes.unwritten(at, "stage3")
    assert refused.value.exit_code == 3 and names["v6"] in str(refused.value)


def test_a_count_that_starts_again_is_said_and_what_is_written_then_is_found(at: Layout, live: Any) -> None:
    """A closed and opened index counts from zero, as every index does after a restart of the engine."""
    client, names = live
    client.indices.close(index=names["headed"])
    client.indices.open(index=names["headed"])
    client.cluster.health(index=names["headed"], wait_for_status="yellow", request_timeout=60)
    assert settle.state(client, names["headed"])["indexing_total"] == 0
    assert [r["counter"] for r in planes.unwritten(at, "stage3")] == ["kept", "restarted", "kept"]
    hit = client.search(index=names["headed"], body={"size": 1})["hits"]["hits"][0]
    client.index(index=names["headed"], id=hit["_id"], body=hit["_source"], refresh=True)
    with pytest.raises(LossmapError, match="written to after it settled"):
        planes.unwritten(at, "stage3")
