"""Files take turns; a smaller cap gives the beginning of a larger one."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from lossmap.search.diversity import diversity_sample

Item = tuple[str, int]
LISTS = st.lists(st.sampled_from("abcdef"), max_size=60).map(lambda files: [(f, i) for i, f in enumerate(files)])


def of(item: Item) -> str:
    return item[0]


def test_files_take_turns_in_first_seen_order() -> None:
    items = [(file, place) for place, file in enumerate("aabacb")]
    assert diversity_sample(items, of, 2) == [("a", 0), ("b", 2), ("c", 4), ("a", 1), ("b", 5)]
    assert diversity_sample(items, of, 2, cap=4) == [("a", 0), ("b", 2), ("c", 4), ("a", 1)]
    assert diversity_sample(items, of, 1) == [("a", 0), ("b", 2), ("c", 4)]
    assert diversity_sample(items, of, 9) == [("a", 0), ("b", 2), ("c", 4), ("a", 1), ("b", 5), ("a", 3)]
    assert diversity_sample([], of, 4, cap=3) == diversity_sample(items, of, 4, cap=0) == []


@settings(max_examples=400, deadline=None)
@given(LISTS, st.integers(0, 8), st.integers(0, 30), st.integers(0, 30))
def test_a_smaller_cap_gives_a_prefix(items: list[Item], per_file: int, cap: int, more: int) -> None:
    smaller, larger = (diversity_sample(items, of, per_file, size) for size in (cap, cap + more))
    assert smaller == larger[:cap]
    assert diversity_sample(items, of, per_file)[:cap] == smaller


@settings(max_examples=200, deadline=None)
@given(LISTS, st.integers(1, 8))
def test_nothing_is_invented_and_no_file_has_more_than_its_share(items: list[Item], per_file: int) -> None:
    taken = diversity_sample(items, of, per_file)
    for file in "abcdef":
        mine = [item for item in items if item[0] == file]
        assert [item for item in taken if item[0] == file] == mine[:per_file]
