"""Chunk boundaries and times (spec/harness 1.2-1.4), with the splitter that every process uses."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lossmap.index import split
from lossmap.index.chunk import Chunk, Segment, chunk_file, split_turn, turns, words


def by_period(text: str) -> list[str]:
    return [part.strip() + "." for part in text.split(".") if part.strip()]


def seg(start: float, end: float, text: str, speaker: str = "A") -> Segment:
    return Segment(start, end, text, speaker)


def sentence(n: int, word: str = "w") -> str:
    return " ".join([word] * n) + "."


def test_one_turn_is_one_chunk_and_its_end_is_that_of_the_last_segment() -> None:
    chunks = chunk_file([seg(0, 9, "hello there "), seg(1, 4, " again"), seg(5, 6, "yes", "B")], by_period)
    assert chunks == [Chunk("A", 0, 4, "hello there again"), Chunk("B", 5, 6, "yes")]


def test_a_blank_turn_between_two_short_ones_of_one_speaker_joins_them() -> None:
    chunks = chunk_file([seg(0, 1, "one"), seg(1, 2, "  ", "B"), seg(2, 3, "two")], by_period)
    assert chunks == [Chunk("A", 0, 3, "one two")]


def test_a_turn_of_exactly_the_target_is_not_split() -> None:
    assert len(chunk_file([seg(0, 10, sentence(200))], by_period)) == 1
    assert len(chunk_file([seg(0, 10, " ".join(["w"] * 201))], by_period)) == 2


def test_word_windows_where_there_is_no_second_sentence() -> None:
    text = " ".join(f"w{i}" for i in range(450))
    chunks = split_turn(Chunk("A", 0.0, 45.0, text), by_period)
    assert [(words(c.text)[0], len(words(c.text))) for c in chunks] == [("w0", 200), ("w160", 200), ("w320", 130)]
    assert [(c.start, c.end) for c in chunks] == [(0.0, 20.0), (16.0, 36.0), (32.0, 45.0)]


def test_sentences_are_grouped_and_carried_over_within_the_overlap() -> None:
    # Two sentences of 30 words: together beyond an overlap of 40, so one is carried.
    text = " ".join(sentence(30, f"s{i}") for i in range(8))
    chunks = split_turn(Chunk("A", 0.0, 24.0, text), by_period)
    assert [len(words(c.text)) for c in chunks] == [180, 90]
    assert words(chunks[1].text)[0] == "s5"
    assert chunks[1].start == 24.0 * 150 / 240


def test_one_long_last_sentence_is_carried_up_to_twice_the_overlap_and_no_further() -> None:
    eighty = " ".join([sentence(100, "a"), sentence(80, "b"), sentence(100, "c")])
    assert [len(words(c.text)) for c in split_turn(Chunk("A", 0, 1, eighty), by_period)] == [180, 180]
    more = " ".join([sentence(100, "a"), sentence(81, "b"), sentence(100, "c")])
    assert [len(words(c.text)) for c in split_turn(Chunk("A", 0, 1, more), by_period)] == [181, 100]


def test_a_sentence_beyond_the_target_is_one_oversize_chunk() -> None:
    text = " ".join([sentence(5, "a"), sentence(300, "b"), sentence(5, "c")])
    assert [len(words(c.text)) for c in split_turn(Chunk("A", 0, 1, text), by_period)] == [5, 305, 5]


@given(st.lists(st.integers(1, 90), min_size=2, max_size=40))
def test_every_word_of_a_split_turn_is_in_order_in_some_chunk(lengths: list[int]) -> None:
    text = " ".join(sentence(n, f"s{i}") for i, n in enumerate(lengths))
    chunks = split_turn(Chunk("A", 0.0, 100.0, text), by_period)
    kept = list(dict.fromkeys(w for c in chunks for w in dict.fromkeys(words(c.text))))
    assert kept == list(dict.fromkeys(words(text)))
    assert chunks[0].start == 0.0 and chunks[-1].end == 100.0
    assert all(a.start < b.start for a, b in zip(chunks, chunks[1:], strict=False))
    assert all(len(words(c.text)) <= 200 for c in chunks)


@given(st.lists(st.tuples(st.sampled_from("AB"), st.sampled_from(["", " ", "x", "y z"])), max_size=12))
def test_turns_keep_every_word_and_alternate_unless_a_blank_stood_between(rows: list[tuple[str, str]]) -> None:
    segments = [seg(i, i + 1, text, speaker) for i, (speaker, text) in enumerate(rows)]
    spoken = [w for turn in turns(segments) for w in words(turn.text)]
    assert spoken == [w for _, text in rows for w in words(text)]


def test_the_splitter_knows_abbreviations_and_names_its_model() -> None:
    assert split.sentences("Dr. Low asked. Who knows ? Nobody .") == ["Dr. Low asked.", "Who knows ?", "Nobody ."]
    assert len(split.provenance()["model_sha256"]) == 64


def test_a_language_is_cut_by_its_own_model_or_by_the_marks_it_closes_sentences_with() -> None:
    assert split.sentences("Er kam z.B. gestern. Dann ging er.", "de") == ["Er kam z.B. gestern.", "Dann ging er."]
    assert split.sentences("\u4f60\u597d\u3002\u518d\u89c1\uff01", "zh") == ["\u4f60\u597d\u3002", "\u518d\u89c1\uff01"]
    assert split.sentences("\u0928\u092e\u0938\u094d\u0924\u0947\u0964 \u0939\u093e\u0901\u0964", "hi") == [
        "\u0928\u092e\u0938\u094d\u0924\u0947\u0964",
        "\u0939\u093e\u0901\u0964",
    ]
    assert split.sentences("Xin ch\u00e0o. Hai.", "vi") == ["Xin ch\u00e0o.", "Hai."]
    assert split.provenance(["de", "zh"])["model"] == "english german" and split.provenance([])["model"] == "english"
