"""Turn to chunk, coverage, grades: the hand cases, the bisect against a linear scan, the TREC file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lossmap.errors import LossmapError
from lossmap.judge import qrels
from lossmap.judge.qrels import ChunkDoc, Coverage, RelevancePolicy, TurnRow
from lossmap.transcript import GoldSpan

TURNS = [
    TurnRow("f", 0, "A", 0, 10, 10),
    TurnRow("f", 1, "B", 10, 20, 10),
    TurnRow("f", 2, "A", 20, 30, 10),
    TurnRow("f", 3, "A", 30, 40, 30),
]
CHUNKS = [ChunkDoc("f", 0, "A", 0, 10), ChunkDoc("f", 1, "B", 10, 20), ChunkDoc("f", 2, "A", 20, 40)]


def cover(*spans: tuple[int, int], turns: list[TurnRow] = TURNS, chunks: list[ChunkDoc] = CHUNKS) -> Coverage:
    gold = [GoldSpan("q", "m", first, last) for first, last in spans]
    return qrels.coverage(qrels.overlaps(turns, chunks), ["q"], gold, {"m": "f"})


def shares(found: Coverage) -> dict[str, float]:
    return dict(zip(found.doc_ids[found.chunk].tolist(), found.share.tolist()))


def weights(turns: list[TurnRow], chunks: list[ChunkDoc]) -> dict[tuple[int, str], float]:
    pairs = qrels.overlaps(turns, chunks)
    rows = np.repeat(np.arange(len(pairs.turns)), np.diff(pairs.start))
    return {
        (pairs.turns[row].turn_index, pairs.doc_ids[chunk]): weight
        for row, chunk, weight in zip(rows, pairs.chunk, pairs.weight.tolist())
    }


def test_weights_of_the_hand_case() -> None:
    assert weights(TURNS, [CHUNKS[2]]) == {(2, "f_2"): 10.0, (3, "f_2"): 30.0}


@pytest.mark.parametrize(("span", "share", "grade"), [((2, 2), 0.25, 1), ((3, 3), 0.75, 2), ((2, 3), 1.0, 2)])
def test_coverage_and_grade_of_the_hand_case(span: tuple[int, int], share: float, grade: int) -> None:
    found = cover(span)
    assert shares(found) == {"f_2": share}
    assert qrels.grade(found).qrels == {"q": {"f_2": grade}}


def test_a_monologue_in_two_chunks_counts_its_overlap_twice() -> None:
    turns = [TurnRow("f", 0, "A", 0, 40, 400)]
    chunks = [ChunkDoc("f", 0, "A", 0, 22), ChunkDoc("f", 1, "A", 18, 40)]
    assert weights(turns, chunks) == pytest.approx({(0, "f_0"): 220.0, (0, "f_1"): 220.0})


def test_another_speaker_in_the_same_window_is_not_matched() -> None:
    turns = [TurnRow("f", 0, "A", 0, 10, 10), TurnRow("f", 1, "B", 2, 8, 99)]
    assert weights(turns, [ChunkDoc("f", 0, "A", 0, 10)]) == {(0, "f_0"): 10.0}


@pytest.mark.parametrize("turn", [TurnRow("f", 0, "A", 5, 5, 10), TurnRow("f", 0, "A", 9, 3, 10)])
def test_a_turn_without_duration_or_reversed_contributes_nothing(turn: TurnRow) -> None:
    assert weights([turn], [ChunkDoc("f", 0, "A", 0, 10)]) == {}


def test_touching_ends_do_not_overlap() -> None:
    assert weights([TurnRow("f", 0, "A", 0, 10, 10)], [ChunkDoc("f", 0, "A", 10, 20)]) == {}


def test_spans_are_united_before_grading() -> None:
    turns = [TurnRow("f", place, "A", place, place + 1, 1) for place in range(10)]
    chunks = [ChunkDoc("f", 0, "A", 0, 10)]
    assert qrels.grade(cover((0, 2), turns=turns, chunks=chunks)).qrels["q"]["f_0"] == 1
    assert qrels.grade(cover((0, 2), (2, 4), turns=turns, chunks=chunks)).qrels["q"]["f_0"] == 2


def test_a_chunk_that_is_all_gold_has_coverage_one_exactly() -> None:
    turns = [TurnRow("f", place, "A", place * 0.1, place * 0.1 + 0.37, 7) for place in range(50)]
    assert shares(cover((0, 49), turns=turns, chunks=[ChunkDoc("f", 0, "A", 0.05, 4.91)])) == {"f_0": 1.0}


@pytest.mark.parametrize(
    ("policy", "grade"),
    [
        (RelevancePolicy(), 1),
        (RelevancePolicy(high=0.25), 2),
        (RelevancePolicy(high=0.25, binary=True), 1),
        (RelevancePolicy(low=0.25), None),
    ],
)
def test_thresholds_are_inclusive_above_and_exclusive_below(policy: RelevancePolicy, grade: int | None) -> None:
    graded = qrels.grade(cover((2, 2)), policy)
    assert graded.qrels.get("q", {}).get("f_2") == grade
    assert graded.dropped == ({} if grade else {"q": qrels.TOO_LOW})


@pytest.mark.parametrize("low, high", [(0.5, 0.5), (-0.1, 0.5), (0.0, 1.1)])
def test_a_policy_that_is_no_ladder_is_refused(low: float, high: float) -> None:
    with pytest.raises(LossmapError, match="ladder"):
        RelevancePolicy(high, low)


def test_dropped_queries_carry_their_reason() -> None:
    gold = [GoldSpan("far", "elsewhere", 0, 0), GoldSpan("back", "m", 3, 2), GoldSpan("ok", "m", 0, 0)]
    pairs = qrels.overlaps(TURNS, CHUNKS)
    graded = qrels.grade(qrels.coverage(pairs, ["ok", "far", "back", "none"], gold, {"m": "f"}))
    assert graded.dropped == {"far": qrels.NOT_INJECTED, "back": qrels.NO_CHUNK, "none": qrels.NO_SPAN}
    assert list(graded.qrels) == ["ok"]
    summary = graded.summary()
    assert (summary["queries"], summary["judged_documents"], summary["queries_dropped_unjudgeable"]) == (1, 1, 3)


def test_slivers_of_rounded_chunk_times_are_counted() -> None:
    turns = [TurnRow("f", 0, "A", 0, 10.004, 100), TurnRow("f", 1, "A", 10.004, 20, 100)]
    chunks = [ChunkDoc("f", 0, "A", 0, 10.01), ChunkDoc("f", 1, "A", 10.01, 20)]
    graded = qrels.grade(cover((1, 1), turns=turns, chunks=chunks))
    assert graded.qrels["q"] == {"f_0": 1, "f_1": 2}
    assert graded.slivers == 1


def test_a_file_position_that_occurs_twice_is_refused() -> None:
    with pytest.raises(LossmapError, match="a turn occurs twice"):
        qrels.overlaps([*TURNS, TURNS[0]], CHUNKS)
    with pytest.raises(LossmapError, match="a chunk occurs twice"):
        qrels.overlaps(TURNS, [*CHUNKS, CHUNKS[0]])


TIMES = st.floats(0, 60, allow_nan=False, width=32)
SPEAKERS = st.sampled_from(["A", "B"])
FILES = st.sampled_from(["f", "g"])
ROWS = st.lists(st.tuples(FILES, SPEAKERS, TIMES, TIMES, st.integers(0, 9)), max_size=25)


def linear(turns: list[TurnRow], chunks: list[ChunkDoc]) -> dict[tuple[str, int, str], float]:
    found = {}
    for turn in turns:
        for chunk in chunks:
            inside = min(turn.end, chunk.end) - max(turn.start, chunk.start)
            if turn[0] == chunk[0] and turn.speaker == chunk.speaker and inside > 0 and turn.word_count:
                share = min(1.0, inside / (turn.end - turn.start))
                found[turn.file_uuid, turn.turn_index, chunk.doc_id] = turn.word_count * share
    return found


@settings(deadline=None, max_examples=150)
@given(ROWS, ROWS, st.randoms())
def test_the_bisect_equals_a_linear_scan_in_any_input_order(turn_rows, chunk_rows, random) -> None:
    turns = [TurnRow(f, n, s, *map(float, (a, b)), w) for n, (f, s, a, b, w) in enumerate(turn_rows)]
    chunks = [ChunkDoc(f, n, s, float(a), float(b)) for n, (f, s, a, b, _) in enumerate(chunk_rows)]
    expected = linear(turns, chunks)
    random.shuffle(turns)
    random.shuffle(chunks)
    pairs = qrels.overlaps(turns, chunks)
    rows = np.repeat(np.arange(len(pairs.turns)), np.diff(pairs.start))
    assert len(rows) == len(pairs.chunk) == len(expected)
    for row, chunk, weight in zip(rows, pairs.chunk, pairs.weight.tolist()):
        assert expected[(*pairs.turns[row][:2], pairs.doc_ids[chunk])] == weight


def test_the_trec_file_is_sorted_and_comes_back(tmp_path: Path) -> None:
    judged = {"q2": {"f_1": 2, "f_0": 1}, "q1": {"g_0": 1}}
    qrels.write_qrels(tmp_path / "a.gz", judged)
    qrels.write_qrels(tmp_path / "b.gz", dict(reversed(judged.items())))
    assert qrels.read_qrels(tmp_path / "a.gz") == judged
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_rows_are_read_from_the_contract_files(tmp_path: Path) -> None:
    turn = '{"file_uuid":"f","turn_index":0,"segment_position":3,"segment_uuid":"s","speaker":"A",'
    (tmp_path / "t.jsonl").write_text(turn + '"start":0.0,"end":1.5,"word_count":4}\n')
    chunk = '{"file_uuid":"f","chunk_index":0,"meeting_id":"m","speaker":"A","start":0.0,"end":1.5,"text":"x"}\n'
    (tmp_path / "c.jsonl").write_text(chunk)
    assert qrels.read_turns(tmp_path / "t.jsonl") == [TurnRow("f", 0, "A", 0.0, 1.5, 4)]
    assert qrels.read_chunks(tmp_path / "c.jsonl") == [ChunkDoc("f", 0, "A", 0.0, 1.5)]


def test_a_corpus_with_grades_of_its_own_keeps_the_highest_and_binary_flattens_it() -> None:
    turns = [TurnRow("f", i, "A", 10.0 * i, 10.0 * i + 10, 10) for i in range(4)]
    chunks = [ChunkDoc("f", 0, "A", 0.0, 20.0), ChunkDoc("f", 1, "A", 20.0, 40.0)]
    gold = [GoldSpan("q", "m", 0, 0, 1), GoldSpan("q", "m", 1, 1, 2), GoldSpan("q", "m", 3, 3, 1)]
    cover = qrels.coverage(qrels.overlaps(turns, chunks), ["q"], gold, {"m": "f"})
    assert qrels.grade(cover).qrels == {"q": {"f_0": 2, "f_1": 1}}
    # Neither threshold touches a grade that the corpus gave.
    assert qrels.grade(cover, RelevancePolicy(high=0.9, low=0.8)).qrels == {"q": {"f_0": 2, "f_1": 1}}
    assert qrels.grade(cover, RelevancePolicy(binary=True)).qrels == {"q": {"f_0": 1, "f_1": 1}}
