"""What the store keeps of a corpus, what a query becomes, and which rows a keyword search finds in which order."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lossmap.errors import LossmapError
from lossmap.memory import store
from lossmap.memory.store import Population, Store, query_expression, terms

WORDS = st.text(st.sampled_from("abcdeABC é?-'\"%_\\\t語カ"), max_size=30)
MEALS = ["we ate salmon on Monday", "the salmon? too salty", "another café near the river", "any OTHER business"]


@pytest.fixture
def held() -> Iterator[Store]:
    found = Store()
    yield found
    found.close()


def fill(held: Store, *texts: str, keyed: str = "content") -> Population:
    return held.fill([f"m/{n}" for n in range(len(texts))], texts, None, keyed)


def rows(held: Store, text: str, limit: int = 100, strip_punct: bool = False) -> list[int]:
    """Row numbers of a keyword search: the place in storing order, from 0."""
    return [rowid - 1 for rowid, _, _ in held.keyword(text, limit, strip_punct).hits]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("who ate the salmon?", ["who", "ate", "the", "salmon?"]),
        ("CVE-2024-17 is it (really) so", ["CVE-2024-17", "(really)"]),
        ("The the THE the", ["The", "the", "THE"]),
        ("a an \t of\n\u3000so", []),
        ("", []),
        ("会議の日程", ["会議の", "議の日", "の日程"]),
        ("日程", []),
        ("MTG会議室Bで", ["MTG", "会議室"]),
        ("x東京都庁y", ["東京都", "京都庁"]),
        ("ｶﾀｶﾅ ガガガ", ["ｶﾀｶ", "ﾀｶﾅ", "ガガガ"]),
        ("한국어 말", ["한국어"]),
        ("東京都 東京都", ["東京都"]),
    ],
)
def test_terms_of_a_query(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_a_run_of_cjk_ends_where_its_ranges_end() -> None:
    for first, last in ((0x3040, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xFF66, 0xFF9F)):
        assert terms(chr(first) + chr(last) * 3) == [chr(first) + chr(last) * 2, chr(last) * 3]
        assert terms(chr(last + 1) * 4) in ([chr(last + 1) * 4], [chr(last + 1) * 3])
    assert terms("\u303f" * 4) == ["\u303f" * 4]


def test_terms_are_quoted_phrases_of_which_any_may_match() -> None:
    assert query_expression('he said "stop" twice') == '"said" OR """stop""" OR "twice"'
    assert query_expression("a of") == ""


def test_punctuation_stays_unless_the_ablation_takes_it_off() -> None:
    assert query_expression("was it CVE-2024-17, or salmon?") == '"was" OR "CVE-2024-17," OR "salmon?"'
    stripped = query_expression("was it CVE-2024-17, or salmon?", strip_punct=True)
    assert stripped == '"was" OR "CVE" OR "2024" OR "salmon"'


@settings(max_examples=300, deadline=None)
@given(WORDS)
def test_terms_are_unique_substrings_of_three_characters_or_more(text: str) -> None:
    found = terms(text)
    assert len(set(found)) == len(found) and all(term in text and len(term) >= 3 for term in found)


def test_a_term_matches_inside_words_in_any_case_with_its_diacritics(held: Store) -> None:
    fill(held, *MEALS)
    assert sorted(rows(held, "the")) == [1, 2, 3]
    assert rows(held, "CAFÉ") == [2] and rows(held, "cafe") == []
    assert rows(held, "salmon?") == [1]
    assert sorted(rows(held, "salmon?", strip_punct=True)) == [0, 1]


def test_the_better_bm25_is_first_and_positive(held: Store) -> None:
    fill(held, "budget for next year and a lot of other things", "budget", "nothing of it", "budget budget")
    found = held.keyword("budget", 10)
    assert [rowid for rowid, _, _ in found.hits] == [4, 2, 1] and not found.fallback
    values = [score or 0.0 for _, _, score in found.hits]
    assert values == sorted(values, reverse=True) and min(values) > 0
    assert [key for _, key, _ in found.hits] == ["m/3", "m/1", "m/0"]


def test_equal_bm25_is_in_storing_order_and_the_limit_cuts_it(held: Store) -> None:
    fill(held, *(f"turn {n:04d} says agenda" for n in range(700)))
    assert rows(held, "agenda", 1000) == list(range(700))
    assert rows(held, "agenda", 3) == [0, 1, 2] and rows(held, "agenda", 0) == rows(held, "agenda", -4) == []


def test_the_order_is_stated_in_the_statement(held: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(held, *(f"turn {n} says agenda" for n in range(9)))
    monkeypatch.setattr(store, "BEST", "score ASC, m.id DESC")
    assert rows(held, "agenda") == list(range(8, -1, -1))


def test_no_usable_term_falls_back_to_like(held: Store) -> None:
    fill(held, "go on", "no go", "stop", "GO")
    found = held.keyword("go", 10)
    assert found.fallback and found.hits == [(1, "m/0", None), (2, "m/1", None), (4, "m/3", None)]


def test_no_hit_falls_back_to_like_of_the_whole_query(held: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second condition is asked, and finds nothing: a row that holds the whole query holds each of its terms.

    Only an index that lags behind its rows can make it find one, so an empty answer of the index stands for that.
    """
    fill(held, "what we said", "something")
    searched: list[str] = []
    held._db.set_trace_callback(searched.append)
    assert held.keyword("unheard words", 5) == store.Keyword([], fallback=False)
    assert sum("LIKE" in statement for statement in searched) == 1
    monkeypatch.setattr(store.Store, "_matches", lambda *_: [])
    assert held.keyword("we said", 5) == store.Keyword([(1, "m/0", None)], fallback=True)


def test_like_reads_signs_of_its_own_as_text(held: Store) -> None:
    fill(held, "a%", "ab", "a_", "a\\", "aXb")
    assert [rows(held, text) for text in ("a%", "a_", "a\\", "%")] == [[0], [2], [3], [0]]
    assert store.like_pattern(r"1% of a_b\c") == r"%1\% of a\_b\\c%"


@settings(max_examples=150, deadline=None)
@given(st.lists(st.text(st.sampled_from("ab%_\\"), max_size=4), max_size=8, unique=True), st.text("ab%_\\", max_size=2))
def test_like_finds_the_literal_text(texts: list[str], asked: str) -> None:
    held = Store()
    fill(held, *texts)
    assert rows(held, asked) == [n for n, text in enumerate(texts) if asked in text]
    held.close()


def test_like_scans_five_times_the_limit_and_fifty_at_least() -> None:
    assert [store.scan_limit(n) for n in (0, 1, 10, 11, 60_000, 60_001)] == [50, 50, 50, 55, 300_000, 300_000]


def test_like_is_cut_to_the_limit(held: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(held, *(f"go {n}" for n in range(120)))
    assert rows(held, "go", 2) == [0, 1] and rows(held, "go", 500) == list(range(120))
    monkeypatch.setattr(store, "SCAN_WINDOW", 7)
    assert rows(held, "go", 500) == list(range(7))


def test_a_blank_query_gives_the_newest_rows_and_is_no_fallback(held: Store) -> None:
    fill(held, "one", "two", "three")
    found = held.keyword(" \n", 2)
    assert found == store.Keyword([(1, "m/0", None), (2, "m/1", None)], fallback=False)


def test_a_query_with_a_nul_is_refused(held: Store) -> None:
    with pytest.raises(LossmapError, match="NUL"):
        held.keyword("what\0ever", 5)


@settings(max_examples=150, deadline=None)
@given(st.lists(WORDS, max_size=12), WORDS)
def test_any_query_is_answered_with_the_rows_that_hold_one_of_its_terms(texts: list[str], asked: str) -> None:
    held = Store()
    population = fill(held, *texts)
    stored = [texts[line] for line in population.kept]
    found = held.keyword(asked, 100)
    holds = [n for n, text in enumerate(stored) if any(term.lower() in text.lower() for term in terms(asked))]
    if holds:
        assert sorted(rowid - 1 for rowid, _, _ in found.hits) == holds and not found.fallback
        assert [(score, -rowid) for rowid, _, score in found.hits] == sorted(
            ((score, -rowid) for rowid, _, score in found.hits), reverse=True
        )
    else:
        assert found.fallback == bool(found.hits and asked.strip())
        assert not (found.hits and terms(asked))
        assert all(score is None for _, _, score in found.hits)
    held.close()


def test_a_query_of_thousands_of_terms_is_one_expression(held: Store) -> None:
    fill(held, "w00017x is here", "w02999x too")
    assert sorted(rows(held, " ".join(f"w{n:05d}x" for n in range(3000)))) == [0, 1]


def test_the_first_line_of_a_text_is_kept(held: Store) -> None:
    found = held.fill(["a", "b", "c", "d"], ["same", "other", "same", "Same"], None, "content")
    assert (found.lines, found.stored, found.collapsed, found.kept.tolist()) == (4, 3, 1, [0, 1, 3])
    assert found.kept.dtype == np.int64
    assert [(rowid, key) for rowid, key, _ in held.scan()] == [(1, "a"), (2, "b"), (3, "d")]


def test_rows_keyed_apart_keep_equal_texts(held: Store) -> None:
    found = held.fill(["a", "b"], ["same", "same"], None, "rows")
    assert found.kept.tolist() == [0, 1] and held.size() == 2


def test_the_first_line_of_a_key_is_kept_and_an_ignored_key_is_free(held: Store) -> None:
    found = held.fill(["a", "b", "b", "a"], ["same", "same", "new", "newer"], None, "content")
    assert found.kept.tolist() == [0, 2]
    assert held.fill(["a", "a"], ["x", "y"], None, "rows").kept.tolist() == [0]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["x", "y", "z", ""])), max_size=14))
def test_dedup_is_a_walk_that_keeps_what_breaks_neither_index(lines: list[tuple[str, str]]) -> None:
    held = Store()
    kept: list[int] = []
    for n, (key, text) in enumerate(lines):
        if all(key != lines[one][0] and text != lines[one][1] for one in kept):
            kept.append(n)
    found = held.fill([key for key, _ in lines], [text for _, text in lines], None, "content")
    assert found.kept.tolist() == kept and found.stored == held.size() and found.stored + found.collapsed == len(lines)
    assert [(rowid, key) for rowid, key, _ in held.scan()] == [(n + 1, lines[line][0]) for n, line in enumerate(kept)]
    held.close()


def test_rowids_count_stored_rows_over_several_batches(held: Store) -> None:
    texts = [f"line {n // 2}" for n in range(3 * store.BATCH)]
    found = fill(held, *texts)
    assert store.BATCH == 256 and found.kept.tolist() == list(range(0, 768, 2))
    assert [rowid for rowid, _, _ in held.scan()] == list(range(1, 385))


def test_each_batch_is_one_commit(held: Store) -> None:
    done: list[str] = []
    held._db.set_trace_callback(done.append)
    fill(held, *(f"line {n}" for n in range(600)))
    assert done.count("COMMIT") == 1 + 3  # the wipe, and 256 + 256 + 88 lines


def test_times_are_constant_and_vectors_come_back_as_little_endian_floats(held: Store) -> None:
    vectors = np.array([[0.5, -1.25], [3.0, 1e-7]], np.float32)
    held.fill(["a", "b"], ["one", "two"], vectors, "content")
    assert [np.frombuffer(blob or b"", "<f4").tolist() for _, _, blob in held.scan()] == vectors.tolist()
    (times,) = held._db.execute("SELECT DISTINCT timestamp, created_at, source, metadata, channel FROM memories")
    assert times == ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "{}", "{}", "")


def test_a_scan_is_newest_first_then_by_rowid(held: Store) -> None:
    fill(held, "one", "two", "three")
    held._db.execute("UPDATE memories SET created_at = '2026-02-01T00:00:00Z' WHERE id = 3")
    assert [rowid for rowid, _, _ in held.scan()] == [3, 1, 2]


def test_a_refilled_store_is_a_new_one(held: Store) -> None:
    fill(held, *(f"old words {n} about budgets" for n in range(40)))
    fill(held, *MEALS)
    fresh = Store()
    fill(fresh, *MEALS)
    for asked in ("salmon on the river", "old words", "budgets", "o"):
        assert held.keyword(asked, 50) == fresh.keyword(asked, 50)
    assert held.size() == 4 and [rowid for rowid, _, _ in held.scan()] == [1, 2, 3, 4]
    held.wipe()
    assert held.size() == 0 and rows(held, "salmon") == []
    fresh.close()


def test_rows_of_another_agent_are_not_found(held: Store) -> None:
    fill(held, "mine says agenda")
    held._db.execute(store.ADD, ("somebody", "k", "theirs says agenda", store.MOMENT, None, "", store.MOMENT))
    assert (rows(held, "agenda"), rows(held, "ge"), held.size(), len(list(held.scan()))) == ([0], [0], 1, 1)


def test_a_file_outlives_its_connection(tmp_path: Path) -> None:
    first = Store(tmp_path / "memories.db")
    fill(first, *MEALS)
    first.close()
    again = Store(tmp_path / "memories.db")
    assert again.size() == 4 and rows(again, "salmon?") == [1]
    again.close()


def test_a_database_of_somebody_else_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE memories (id INTEGER PRIMARY KEY, content TEXT)")
    (tmp_path / "no.db").write_bytes(b"not a database at all, " * 60)
    for name in ("other.db", "no.db"):
        with pytest.raises(LossmapError) as raised:
            Store(tmp_path / name)
        assert raised.value.exit_code == 2 and name in str(raised.value)


@pytest.mark.parametrize(
    ("keys", "vectors", "keyed", "says"),
    [
        (["a"], None, "content", "1 keys, 2 texts, no vectors"),
        (["a", "b"], np.zeros((3, 2), np.float32), "content", "3 vectors"),
        (["a", "b"], np.zeros((2, 2)), "content", "float64"),
        (["a", "b"], np.zeros(2, np.float32), "content", r"float32 \(2,\)"),
        (["a", ""], None, "content", "line 1"),
        (["a", "b"], None, "text", "rows or content"),
    ],
)
def test_a_corpus_that_does_not_fit_together_is_refused(keys: list[str], vectors: None, keyed: str, says: str) -> None:
    held = Store()
    fill(held, "kept")
    with pytest.raises(LossmapError, match=says):
        held.fill(keys, ["x", "y"], vectors, keyed)
    assert held.size() == 1  # refused before the wipe
    held.close()
