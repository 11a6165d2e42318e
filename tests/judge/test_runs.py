"""One total order whatever the input order, rank-derived scores, and names that decide nothing."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lossmap.errors import LossmapError
from lossmap.judge import measures, runs


def test_ties_go_by_type_file_and_number_not_by_text() -> None:
    tied = [("f_digest_0", 1.0), ("g_0", 1.0), ("f_10", 1.0), ("f_2", 1.0), ("z_9", 2.0)]
    assert runs.normalise(tied) == [("z_9", 5.0), ("f_2", 4.0), ("f_10", 3.0), ("g_0", 2.0), ("f_digest_0", 1.0)]


def test_positions_can_be_the_scores() -> None:
    assert runs.normalise([("f_1", 0.1), ("f_0", 0.9)], preserve_order=True) == [("f_1", 2.0), ("f_0", 1.0)]


@pytest.mark.parametrize(
    ("doc_id", "identity"),
    [("a-b_7", ("chunk", "a-b", 7)), ("a-b_digest_2", ("digest", "a-b", -3)), ("a_b_0", ("chunk", "a_b", 0))],
)
def test_identities(doc_id: str, identity: runs.Identity) -> None:
    assert runs.identity(doc_id) == identity


@pytest.mark.parametrize("doc_id", ["", "f", "_3", "f_x", "f_digest", "f_-1"])
def test_an_unknown_document_id_is_refused(doc_id: str) -> None:
    with pytest.raises(LossmapError, match="convention"):
        runs.identity(doc_id)


@pytest.mark.parametrize("preserve_order", [False, True])
def test_a_document_twice_is_refused(preserve_order: bool) -> None:
    with pytest.raises(LossmapError, match="twice"):
        runs.normalise([("f_0", 2.0), ("f_0", 1.0)], preserve_order)


def test_a_score_that_is_no_number_is_refused() -> None:
    with pytest.raises(LossmapError, match="not a number"):
        runs.normalise([("f_0", 2.0), ("f_1", float("nan"))])


KEYS = st.tuples(st.sampled_from("fg"), st.integers(0, 12), st.booleans())
DOCS = st.dictionaries(KEYS, st.sampled_from([0.5, 1.0, 1.00000001]), max_size=14)


def named(documents: dict[tuple[str, int, bool], float], digest: str) -> dict[str, float]:
    return {f"{f}{digest if is_digest else '_'}{n}": s for (f, n, is_digest), s in documents.items()}


@given(DOCS, st.randoms())
def test_the_order_does_not_depend_on_the_input_order(documents, random) -> None:
    rows = list(named(documents, "_digest_").items())
    expected = runs.normalise(rows)
    random.shuffle(rows)
    assert runs.normalise(rows) == expected
    assert runs.normalise(expected) == expected
    assert [score for _, score in expected] == list(range(len(rows), 0, -1))


@given(DOCS.filter(len), st.data())
def test_swapping_the_document_id_convention_moves_no_measure(documents, data) -> None:
    """Digest ids that sort above every chunk id and digest ids that sort below: the same scores."""
    keys = sorted(documents)
    gold = set(data.draw(st.lists(st.sampled_from(keys), min_size=1, unique=True)))
    scores = []
    for digest in ("_digest_", "_!digest-"):
        ids = dict(zip(keys, named({key: documents[key] for key in keys}, digest)))
        of = {ids[f, n, d]: ("digest" if d else "chunk", f, -1 - n if d else n) for f, n, d in keys}
        run = {"q": runs.normalise([(ids[key], documents[key]) for key in keys], of=of.__getitem__)}
        scores.append(measures.score({"q": {ids[key]: 1 for key in gold}}, run).values.tolist())
    assert scores[0] == scores[1]


def test_the_trec_file_has_real_ranks_and_comes_back(tmp_path: Path) -> None:
    run = runs.normalise_run({"q2": [("f_0", 0.2)], "q1": [("f_1", 0.1), ("f_0", 0.3)], "q3": []})
    runs.write_run(tmp_path / "run.gz", run, "bm25")
    assert runs.read_run(tmp_path / "run.gz") == {"q1": [("f_0", 2.0), ("f_1", 1.0)], "q2": [("f_0", 1.0)]}
    assert gzip.decompress((tmp_path / "run.gz").read_bytes()).decode().splitlines() == [
        "q1 Q0 f_0 1 2.0 bm25",
        "q1 Q0 f_1 2 1.0 bm25",
        "q2 Q0 f_0 1 1.0 bm25",
    ]
