"""Digests by TextRank: values worked out by hand, the partition, the order, and what a term is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import lossmap
from lossmap.index import chunk, digest
from lossmap.index.chunk import Segment
from lossmap.index.digest import Sentence
from lossmap.index.terms import terms


def seg(start: float, end: float, text: str, speaker: str = "A") -> Segment:
    return Segment(start, end, text, speaker)


def of_lengths(lengths: Sequence[int]) -> list[Sentence]:
    return [Sentence(i, " ".join(["w"] * n), "A", (i,), i, i + 1.0) for i, n in enumerate(lengths)]


def by_mark(text: str) -> list[str]:
    """Sentences that end with a full stop, or with the text."""
    return [part for part in (p.strip() for p in text.replace(".", ".\n").split("\n")) if part]


# Three sentences {x, y}, {x}, {z}: idf(x) = ln(4/3) + 1 = 1.287682, idf(y) = idf(z) = ln(4/2) + 1 = 1.693147, the first
# row's length is sqrt(1.287682^2 + 1.693147^2) = 2.127175.
def test_tfidf_by_hand() -> None:
    found = digest.tfidf([["x", "y"], ["x"], ["z"]]).toarray()
    np.testing.assert_allclose(found, [[0.605349, 0.795961, 0], [1, 0, 0], [0, 0, 1]], atol=1e-6)


def test_a_term_said_twice_weighs_double_and_a_sentence_without_terms_is_zero() -> None:
    found = digest.tfidf([["x", "x", "y"], [], ["y", "x"]]).toarray()
    np.testing.assert_allclose(found[0], [2 / 5**0.5, 1 / 5**0.5], atol=1e-12)
    assert found[1].tolist() == [0, 0]


# The first two vote for each other, the third for all: c = .05 + .85 c / 3, so c = .0697674 and a = b = (1 - c) / 2.
def test_textrank_with_a_dangling_sentence_by_hand() -> None:
    found = digest.textrank([["x", "y"], ["x"], ["z"]])
    np.testing.assert_allclose(found, [0.4651163, 0.4651163, 0.0697674], atol=1e-7)


# The middle one holds x twice and y once: it gives two thirds of its vote to {x}. b = .05 + .85 (1 - b).
def test_textrank_follows_the_weights_of_the_links_by_hand() -> None:
    found = digest.textrank([["x"], ["x", "x", "y"], ["y"]])
    np.testing.assert_allclose(found, [0.3256757, 0.4864865, 0.1878378], atol=1e-7)


def test_one_sentence_and_sentences_without_any_term_rank_alike() -> None:
    assert digest.textrank([["x"]]).tolist() == [1.0]
    np.testing.assert_allclose(digest.textrank([[], [], []]), [1 / 3] * 3)
    np.testing.assert_allclose(digest.pagerank(sparse.csr_array((2, 2))), [0.5, 0.5])


@pytest.mark.parametrize(
    ("lengths", "ranks", "chosen"),
    [
        ([30, 20, 10], [0.2, 0.5, 0.3], [0, 1, 2]),  # 20, 10, then 30: 60 words
        ([30, 20, 40], [0.2, 0.5, 0.3], [1, 2]),  # 20 + 40 = 60 reaches the target
        ([30, 45, 30], [0.2, 0.5, 0.3], [1]),  # 45 + 30 passes 70, twice
        ([20, 45, 30], [0.2, 0.5, 0.3], [0, 1]),  # the second best is skipped and the third fits
        ([5, 90, 5], [0.2, 0.5, 0.3], [1]),  # the best one is taken whatever its length
        ([20, 50, 5], [0.2, 0.5, 0.3], [1, 2]),  # 55 words are enough
        ([30, 30, 30], [1 / 3] * 3, [0, 1]),  # equal scores: spoken order
    ],
)
def test_selection(lengths: list[int], ranks: list[float], chosen: list[int]) -> None:
    assert digest.select(lengths, np.array(ranks)) == chosen


def test_the_last_bits_of_a_score_do_not_order_equal_sentences() -> None:
    assert digest.select([60, 60], np.array([0.5, np.nextafter(0.5, 1)])) == [0]


@pytest.mark.parametrize(
    ("lengths", "sizes"),
    [
        ([100] * 15, [15]),  # 1,500 words: one section
        ([100] * 15 + [5], [8, 8]),  # 1,505 words: a share is 752.5
        ([100] * 200, [25] * 8),  # never more than eight
        ([3_000, 5, 5], [1, 2]),  # the first fills its share and the next one's; no empty section
        ([5, 3_000], [2]),
    ],
)
def test_sections_by_hand(lengths: list[int], sizes: list[int]) -> None:
    assert [len(section) for section in digest.sections(of_lengths(lengths))] == sizes


@given(st.lists(st.integers(5, 400), max_size=120))
def test_sections_are_a_contiguous_partition_of_full_shares(lengths: list[int]) -> None:
    sentences = of_lengths(lengths)
    found = digest.sections(sentences)
    total = sum(lengths)
    parts = min(max(-(-total // 1_500), 1), 8)
    assert [s for section in found for s in section] == sentences
    assert all(found) and len(found) <= parts
    for section in found[:-1]:
        size = sum(s.words for s in section)
        assert size >= total / parts > size - section[-1].words


SEGMENTS = st.lists(
    st.builds(seg, st.integers(0, 9), st.integers(9, 20), st.sampled_from(
        ["one two three four five.", "  ", "a b. c d e f g. ", "tail of it", "x", "six seven eight nine ten ten. no."]
    ), st.sampled_from("AB")),
    max_size=12,
)  # fmt: skip


@given(SEGMENTS)
def test_candidates_come_from_the_turns_of_the_chunks(segments: list[Segment]) -> None:
    found = digest.candidates(segments, by_mark)
    wanted = [
        (turn.speaker, sentence)
        for turn in chunk.turns(segments)
        for sentence in by_mark(turn.text)
        if len(sentence.split()) >= 5
    ]
    assert [(s.speaker, s.text) for s in found] == wanted
    assert [s.order for s in found] == list(range(len(found)))
    for s in found:
        spoken = " ".join(segments[i].text.strip() for i in s.segments)
        assert s.text in spoken and {segments[i].speaker for i in s.segments} == {s.speaker}
        assert (s.start, s.end) == (segments[s.segments[0]].start, segments[s.segments[-1]].end)


def test_a_candidate_knows_the_segments_that_it_lies_in() -> None:
    segments = [
        seg(0, 1, "We open the"),
        seg(1, 2, " "),
        seg(2, 3, "meeting now. The budget is"),
        seg(3, 5, "too small"),
    ]
    (first, second) = digest.candidates(segments, by_mark)
    assert (first.text, first.segments, first.start, first.end) == ("We open the meeting now.", (0, 2), 0, 3)
    assert (second.text, second.segments, second.start, second.end) == ("The budget is too small", (2, 3), 2, 5)


def test_a_sentence_of_four_words_is_no_candidate_and_a_file_without_any_has_no_digest() -> None:
    assert digest.digests([seg(0, 1, "Four words and end."), seg(1, 2, "Yes.", "B")]) == []
    assert digest.digests([]) == []


# The hand example as a file: the budget pair rank .4651163 each and the third .0697674; all three fit.
def test_a_whole_file_to_the_letter() -> None:
    segments = [
        seg(0.123, 2.0, "Um so the budget of the remote. ", "Bo"),
        seg(2.0, 3.5, "Uh it is the budget.", "Bo"),
        seg(3.5, 9.876, "And then, {vocalsound} the meetings.", "Unknown"),
    ]
    (found,) = digest.digests(segments)
    assert found.text == "Um so the budget of the remote. Uh it is the budget. And then, {vocalsound} the meetings."
    assert (found.section, found.speakers, found.start, found.end) == (0, ("Bo",), 0.12, 9.88)
    np.testing.assert_allclose(found.ranks, [0.4651163, 0.4651163, 0.0697674], atol=1e-7)
    assert [s.segments for s in found.sentences] == [(0,), (1,), (2,)]
    assert all(rank == round(rank, 8) for rank in found.ranks)


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("The meetings, they're budgeting 25 remotes", "en", ["meet", "they'r", "budget", "25", "remot"]),
        ("Okay , {disfmarker} um you know\u2019s it's don't", "en", ["know"]),
        ("a b 7 ok", "en", []),
        ("Die Sitzungen der Kommission", "de", ["sitzung", "kommission"]),
        ("snake_case words", "xx", ["snake", "case", "words"]),
    ],
)
def test_terms(text: str, language: str, expected: list[str]) -> None:
    assert terms(text, language) == expected


def talk() -> list[Segment]:
    nouns = ["budget", "remote", "battery", "screen", "design", "market", "price", "button", "speech", "colour", "case"]
    said = "So the {} needs a {} for the {} in {}."
    texts = [said.format(nouns[i % 11], nouns[i * 7 % 10], nouns[i * 5 % 7], i % 13) for i in range(400)]
    return [seg(i, i + 1.0, text, "AB"[i % 2]) for i, text in enumerate(texts)]


def test_digests_are_the_same_under_another_hash_seed_and_thread_count() -> None:
    program = (
        "import hashlib, sys; sys.path.insert(0, sys.argv[1]); from test_digest import talk;"
        "from lossmap.index import digest; print(hashlib.sha256(repr(digest.digests(talk())).encode()).hexdigest())"
    )
    here = {**os.environ, "PYTHONPATH": str(Path(lossmap.__file__).parents[1])}
    seen = {
        subprocess.run(
            [sys.executable, "-c", program, os.path.dirname(__file__)],
            env={**here, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": seed, "OPENBLAS_NUM_THREADS": seed},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(seen) == 1


def test_a_digest_is_made_of_sentences_that_were_said_and_is_bounded() -> None:
    segments = talk()
    found = digest.digests(segments)
    assert [d.section for d in found] == [0, 1, 2]  # 400 sentences of 11 words
    for d in found:
        assert 55 <= sum(s.words for s in d.sentences) <= 70
        assert all(s.text == segments[s.segments[0]].text for s in d.sentences)
        assert [s.order for s in d.sentences] == sorted({s.order for s in d.sentences})
