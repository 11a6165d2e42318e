"""The header of an embedded text: its parts, their order, and what is left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.index import build, mapping
from lossmap.index.header import HEADERS, embedding_text, header
from lossmap.index.plane import DigestRow
from lossmap.index.table import Row
from lossmap.index.vectors import Vectors

ROW = Row(
    "f", 0, "demo", "m", "Demo", "en", "Weekly sync #3", "2025-03-04T10:15:00", "Ada", ("Ada", "Bo"), 0.0, 1.0, "Body."
)  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("none", "Body."),
        ("title-date-people", "Weekly sync #3 | 2025-03-04 | participants: Ada, Bo\n\nBody."),
        ("title-people", "Weekly sync #3 | participants: Ada, Bo\n\nBody."),
    ],
)
def test_each_policy_to_the_letter(policy: str, expected: str) -> None:
    assert embedding_text(policy, ROW) == expected


def test_six_names_are_spelt_out_and_the_rest_counted() -> None:
    names = ("A", "B", "C", "D", "E", "F", "G", "H")
    assert header("title-people", replace(ROW, speakers=names[:6])) == "Weekly sync #3 | participants: A, B, C, D, E, F"
    assert header("title-people", replace(ROW, speakers=names)).endswith("participants: A, B, C, D, E, F, +2 more")


def test_absent_parts_are_left_out_and_without_any_there_is_no_header() -> None:
    undated = replace(ROW, recorded_date=None)
    assert header("title-date-people", undated) == "Weekly sync #3 | participants: Ada, Bo"
    assert header("title-date-people", replace(undated, speakers=())) == "Weekly sync #3"
    assert header("title-date-people", replace(ROW, title="", speakers=())) == "2025-03-04"
    assert embedding_text("title-date-people", replace(undated, title="", speakers=())) == "Body."


def test_a_digest_names_everybody_in_the_file_and_not_the_speakers_of_its_section() -> None:
    digest = DigestRow("f", 0, "demo", "m", "Demo", "en", "T", None, ("Bo",), ("Ada", "Bo"), 0.0, 1.0, "Body.", ())
    assert embedding_text("title-date-people", digest) == "T | participants: Ada, Bo\n\nBody."


def test_a_date_of_injection_cannot_enter() -> None:
    """The header depends on nothing but the row's own fields: no policy reads a clock."""
    assert {part.__name__ for parts in HEADERS.values() for part in parts} == {"_title", "_date", "_people"}
    assert "recorded_date" in Row.__dataclass_fields__ and "upload_time" not in Row.__dataclass_fields__


def test_an_unknown_policy_names_the_known_ones() -> None:
    with pytest.raises(LossmapError, match="title-date-people") as refusal:
        header("title-upload", ROW)
    assert refusal.value.exit_code == 2


VECTORS = Vectors(np.arange(8, dtype=np.float32).reshape(2, 4), np.array([0, 1, 1], np.int32))
CHUNKING = {"chunks_sha256": "c" * 64, "splitter": {"name": "s"}, "rule": {"target_words": 200}}


@pytest.mark.parametrize(
    ("graph", "identity", "mapped"),
    [
        (
            True,
            "46c4d5611c4cfa0aa850d4ef9e4a6033a90083e00184a1b1862e147ed4a6dc77",
            "c8b9ca23ed84a2dbc9007fabceb0dfd83bdf7af71d332aee8931b6ba7e7ab5ff",
        ),
        (
            False,
            "e444ff9d6a7e034dd7a107ffab9e13b7e4856711e5f06cd24f67aad5992e5e30",
            "2fb225a3fa8d4ea39640307f45e2f3baa64284534ea6429111b1d0d38034ee8c",
        ),
    ],
)
def test_an_index_without_header_digests_or_other_window_keeps_its_identity(
    graph: bool, identity: str, mapped: str
) -> None:
    """Literals of the code before there were headers: results over such an index stay comparable."""
    for window in (None, 256):
        key = build.identity(CHUNKING, "all-MiniLM-L6-v2", "none", VECTORS, graph, window)
        assert canon.digest(key) == identity
    assert mapping.sha256(384, graph=graph) == mapped


def test_header_window_and_digest_plane_each_make_another_index() -> None:
    plain = build.identity(CHUNKING, "all-MiniLM-L6-v2", "none", VECTORS)
    headed = build.identity(CHUNKING, "all-MiniLM-L6-v2", "title-people", VECTORS)
    narrow = build.identity(CHUNKING, "all-MiniLM-L6-v2", "none", VECTORS, window=128)
    digesting = {"digests_sha256": "d" * 64, "rule": {}, "terms": {}}
    beside = build.with_digests(plain, digesting, "none", VECTORS)
    titled = build.with_digests(plain, digesting, "title-people", VECTORS)
    assert len({canon.digest(key) for key in (plain, headed, narrow, beside, titled)}) == 5
    assert narrow["encoder"]["window"] == 128
    # What the chunk plane is made of stands unchanged in the identity of the index with both planes.
    assert all(beside[name] == plain[name] for name in plain if name != "mapping_sha256")
