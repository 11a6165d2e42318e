"""What transcripts are like: overlap against counts by hand and by brute force; no seconds that nobody measured."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.judge.qrels import TurnRow
from lossmap.layout import Layout
from lossmap.studies import ingest

SPANS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 5)), min_size=1, max_size=8)


@given(SPANS)
def test_overlap_is_a_count_of_whole_seconds(drawn: list[tuple[int, int]]) -> None:
    spans = [(start, start + length) for start, length in drawn]
    speaking = [sum(start <= second < end for start, end in spans) for second in range(20)]
    touched = sum(
        any(min(end, other[1]) > max(start, other[0]) for j, other in enumerate(spans) if j != i)
        for i, (start, end) in enumerate(spans)
    )
    expected = (sum(n > 0 for n in speaking), sum(n > 1 for n in speaking), touched)
    assert ingest.overlap(np.array(spans, float)) == expected


def test_overlap_of_a_case_with_known_seconds() -> None:
    # 0--4, 3--5 and 4.5--6 overlap in turn; 10--11 stands alone and 11--12 only touches it.
    spans = np.array([(0, 4), (10, 11), (3, 5), (4.5, 6), (11, 12)], float)
    assert ingest.overlap(spans) == (8.0, 1.5, 3)


def turns(file: str, *rows: tuple[str, float, float, int]) -> list[dict]:
    return [
        {"file_uuid": file, "turn_index": i, "speaker": who, "start": start, "end": end, "word_count": words}
        for i, (who, start, end, words) in enumerate(rows)
    ]


@pytest.fixture
def at(rooted: Callable[..., Layout]) -> Layout:
    """Two files: one with measured times and 1.5 of 8 seconds shared, one synthetic."""
    made = rooted({"main": {"documents": ["demo"], "scored": []}})
    folder = made.injection("demo")
    canon.write_json(folder / "manifest.json", {"corpus": {"key": "demo", "tier": "B", "judged_by": "human"}})
    files = [("f1", "real", 2), ("f2", "synthetic", 1)]
    canon.write_jsonl(
        folder / "files.jsonl",
        [{"file_uuid": f, "meeting_id": f, "timing_source": s, "speaker_count": n} for f, s, n in files],
    )
    measured = turns("f1", ("A", 0, 4, 25), ("B", 3, 5, 3), ("A", 4.5, 6, 8), ("B", 10, 11, 1), ("A", 11, 12, 1))
    canon.write_jsonl(folder / "turns.jsonl", measured + turns("f2", ("C", 0, 9, 40), ("C", 0, 1, 2)))
    return made


def test_rows_stand_apart_by_source_of_times_and_carry_the_tier_of_the_injection(at: Layout) -> None:
    real, synthetic = ingest.study(at, ["main/demo"])["rows"]
    assert (real["timing_source"], real["files"], real["turns"], real["words"]) == ("real", 1, 5, 38)
    assert real["overlap"] == 1.5 / 8 and real["overlapped_turns"] == 3 / 5
    assert (real["words_per_turn_mean"], real["words_per_turn_median"], real["short_turns"]) == (38 / 5, 3.0, 4 / 5)
    assert (synthetic["tie_groups"], synthetic["turns_in_ties"], synthetic["speakers_per_file"]) == (1, 2, 1.0)
    assert synthetic["overlap"] is None and synthetic["overlapped_turns"] is None
    assert {row["tier"] for row in (real, synthetic)} == {"B"}


def test_no_seconds_are_read_off_a_file_that_nobody_measured(at: Layout) -> None:
    files = list(canon.read_jsonl(at.injection("demo") / "files.jsonl"))
    with pytest.raises(LossmapError, match="not measurements") as refused:
        ingest._seconds("real", files, {"f1": [TurnRow("f1", 0, "A", 0, 1, 1)]})
    assert refused.value.exit_code == 2
