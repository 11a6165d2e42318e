from __future__ import annotations

from pathlib import Path

import pytest
import tree

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.report import arithmetic, claims, documents, render
from lossmap.report.claims import Book


def rendered(book: Book, folder: Path, text: str, target: render.Target = render.MARKDOWN) -> str:
    (folder / "page.md.j2").write_text(text)
    env = render.environment(book, target, lambda name: name, folder)
    return render.template_text(env, "page.md.j2")


def test_families_controls_and_lists_become_claims(root: Path) -> None:
    book = claims.build(root, ["stage1"], root / "claims.json")
    alias, control = book["stage1.fixture.all.ndcg10"], book["stage1.rrf30-exact.fixture.all.ndcg10"]
    assert alias == control and alias["rule"] == "measure" and len(alias["sha256"]) == 64
    assert book["stage1.fixture.lookup.ndcg10.lo"]["value"] < alias["value"]
    assert book["stage1.ann.hnsw.48.recall_mean"]["value"] == 0.8


def test_unknown_claim_names_template_line_and_nearest(root: Path, tmp_path: Path) -> None:
    with pytest.raises(LossmapError, match=r"page\.md\.j2:3[\s\S]*stage1\.fixture\.all\.ndcg10"):
        rendered(Book(root), tmp_path, "one\n\n{{ claim('stage1.fixture.all.ndcg11') }}\n")


@pytest.mark.parametrize("call", ["published('000.stage1.all')", "constant('rank-constants')", "table('x')"])
def test_other_unknown_ids_name_the_line(root: Path, tmp_path: Path, call: str) -> None:
    with pytest.raises(LossmapError, match=r"unknown [\s\S]*page\.md\.j2:2"):
        rendered(Book(root), tmp_path, "one\n{{ " + call + " }}\n")


def test_undefined_name_names_the_line(root: Path, tmp_path: Path) -> None:
    with pytest.raises(LossmapError, match=r"page\.md\.j2:2"):
        rendered(Book(root), tmp_path, "one\n{{ nothing }}\n")


def test_tier_b_is_refused_in_public_and_shown_inside(root: Path, tmp_path: Path) -> None:
    canon.write_json(root / "stage1/arms/bm25/metrics.json", tree.metrics("bm25", 0.1, tier="B"))
    tree.seal(root)
    text = "{{ claim('stage1.bm25.fixture.all.ndcg10') }}"
    with pytest.raises(LossmapError, match=r"tier-B source in a public target[\s\S]*page\.md\.j2:1"):
        rendered(Book(root), tmp_path, text)
    with pytest.raises(LossmapError, match="tier-B source"):
        rendered(Book(root), tmp_path, "{{ table('stage1.corpus-scope') }}")
    assert rendered(Book(root, public=False), tmp_path, text) == "0.1200"


def test_a_scalar_takes_the_tier_of_its_document(root: Path, tmp_path: Path) -> None:
    canon.write_json(root / "stage1/corpus.json", tree.studies()["corpus.json"] | {"tier": "B"})
    tree.seal(root)
    with pytest.raises(LossmapError, match="tier-B source"):
        rendered(Book(root), tmp_path, "{{ claim('corpus.queries') }}")


def test_a_claim_that_left_its_source_is_refused(root: Path, tmp_path: Path) -> None:
    book = canon.read_json(root / "claims.json")
    book["index.chunks"]["value"] = 40
    canon.write_json(root / "claims.json", book)
    with pytest.raises(LossmapError, match=r"does not match its source[\s\S]*--forcerun claims"):
        rendered(Book(root), tmp_path, "{{ claim('index.chunks') }}")


def test_a_deleted_rule_leaves_a_pointer_that_fails(root: Path) -> None:
    (root / "stage1" / "index.json").unlink()
    with pytest.raises(LossmapError, match=r"index\.json"):
        Book(root)
    studies = tree.studies()
    del studies["index.json"]["chunks"]
    canon.write_json(root / "stage1" / "index.json", studies["index.json"])
    with pytest.raises(LossmapError, match=r"no 'chunks'"):
        tree.seal(root)


def test_derived_values_come_from_unrounded_ones(root: Path) -> None:
    book = Book(root)
    low, high = "stage1.fixture.all.ndcg10", "stage1.rrf30-exact-gold.fixture.all.ndcg10"
    assert book.direction(high, low) == "higher" and book.direction(low, high) == "lower"
    assert book.direction(low, low, level="level") == "level"
    assert book.ratio(high, low) == f"{book.value(high) / book.value(low):.2f}"
    assert book.gap(low, high).startswith("\N{MINUS SIGN}0.")
    assert book.published("000.stage1.qmsum.all.ndcg10") == "0.1052"


def test_values_are_escaped_for_their_target(root: Path, tmp_path: Path) -> None:
    text = "{{ claim('corpus.name') }}"
    assert rendered(Book(root), tmp_path, text) == r"Fixture & sons\_1"
    (tmp_path / "p.tex.j2").write_text("<< claim('corpus.name') >>")
    env = render.environment(Book(root), render.LATEX, lambda name: name, tmp_path)
    assert render.template_text(env, "p.tex.j2") == r"Fixture \& sons\_1"


@pytest.mark.parametrize(
    ("text", "latex", "markdown"),
    [
        ("50% a_b", r"50\% a\_b", r"50% a\_b"),
        ("a|b\\", r"a|b\textbackslash{}", r"a\|b\\"),
        ("#{~^}", r"\#\{\textasciitilde{}\textasciicircum{}\}", r"\#{\~^}"),
    ],
)
def test_escaping(text: str, latex: str, markdown: str) -> None:
    assert (render.escape_latex(text), render.escape_markdown(text)) == (latex, markdown)


def test_published_arithmetic_holds_and_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(record["ok"] or record["why"] for record in arithmetic.check_published())
    numbers = {name: dict(record) for name, record in documents.published().items()}
    numbers["000.stage1.qmsum.lookup.ndcg10"]["value"] += 0.001
    monkeypatch.setattr(documents, "published", lambda: numbers)
    failed = {record["id"] for record in arithmetic.check_published() if not (record["ok"] or record["why"])}
    assert failed == {"000.stage1.qmsum.all.ndcg10", "000.stage1.qmsum.lookup.ndcg10"}


@pytest.mark.parametrize(
    ("printed", "value"),
    [("\N{MINUS SIGN}0.0280", -0.028), ("+0.0153", 0.0153), ("1,921/1,923", 1921 / 1923), ("3.99%", 0.0399)],
)
def test_a_printed_number_is_read_as_printed(printed: str, value: float) -> None:
    assert documents.number(printed) == pytest.approx(value)


def test_a_printed_delta_is_that_of_the_committed_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = {name: dict(record) for name, record in documents.published().items()}
    assert numbers["000.stage3.synthetic.multi_file.delta_r10"]["printed"] == "\N{MINUS SIGN}0.0280"
    numbers["000.stage3-v6.synthetic.multi_file.r10"]["value"] += 0.001
    monkeypatch.setattr(documents, "published", lambda: numbers)
    failed = {record["id"] for record in arithmetic.check_published() if not (record["ok"] or record["why"])}
    assert {"000.stage3.synthetic.multi_file.delta_r10", "000.stage3.slip.r10"} <= failed


def test_words_without_a_number_are_cited_and_have_no_value() -> None:
    assert documents.published()["000.stage3.index.field_before"] == {
        "printed": "content", "value": None, "source": {"document": "000", "section": "Stage 3: index v6"}, "spec": None
    }  # fmt: skip
