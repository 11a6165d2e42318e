from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import tree

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.report import figures, ledger, render, site, tables
from lossmap.report.claims import Book

needs_tex = pytest.mark.skipif(shutil.which("latexmk") is None, reason="latexmk is not installed")
TINY = r"\documentclass{article}\pdftrailerid{}\pdfsuppressptexinfo=-1\begin{document}%s\end{document}"


def built(folder: Path, body: str) -> bytes:
    folder.mkdir(parents=True)
    (folder / "tiny.tex").write_text(TINY % body)
    return render.compile_pdf(folder / "tiny.tex").read_bytes()


@pytest.mark.parametrize("kind", ["pdf", "svg"])
def test_figure_bytes_are_the_same_twice(root: Path, tmp_path: Path, kind: str) -> None:
    first, second = (figures.write(Book(root), "stage1.scopes", tmp_path / name / f"f.{kind}") for name in "ab")
    assert first.read_bytes() == second.read_bytes()


@needs_tex
def test_pdf_bytes_are_the_same_in_another_folder(tmp_path: Path) -> None:
    assert built(tmp_path / "a", "Text.") == built(tmp_path / "elsewhere" / "b", "Text.")


@needs_tex
@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (r"\undefinedmacro", "Undefined control sequence"),
        (r"\ref{nowhere}", "undefined"),
        (r"\noindent\mbox{\hspace{2\textwidth}}", "Overfull"),
        (r"\begin{table}\rule{1pt}{1.2\textheight}\end{table}", "Float too large"),
    ],
)
def test_latex_faults_are_reported(tmp_path: Path, body: str, fault: str) -> None:
    with pytest.raises(LossmapError, match=fault):
        built(tmp_path / "a", body)


@needs_tex
def test_the_paper_builds_and_is_byte_identical(root: Path, tmp_path: Path) -> None:
    first, second = (render.paper("smoke", root, tmp_path / name) for name in "ab")
    assert first.read_bytes() == second.read_bytes()
    assert "smoke scale: not for citation" in first.with_suffix(".tex").read_text()


def test_the_page_needs_nothing_else(root: Path, tmp_path: Path) -> None:
    page = site.page("smoke", root, tmp_path).read_text()
    assert "smoke scale: not for citation" in page and "<svg" in page and "<table>" in page
    assert not any(mark in page for mark in ("<script", "<link ", "@import", 'src="', "url(http"))


def test_full_scale_has_no_banner(tmp_path: Path) -> None:
    root = tree.plant(tmp_path / "results", scale="full")
    assert "not for citation" not in site.page("full", root, tmp_path / "out").read_text()


def test_results_of_another_scale_are_refused(root: Path, tmp_path: Path) -> None:
    with pytest.raises(LossmapError, match="another scale"):
        site.page("full", root, tmp_path)


def test_an_orphan_result_fails_the_page(root: Path, tmp_path: Path) -> None:
    canon.write_json(root / "stage1" / "forgotten.json", {})
    tree.seal(root)
    with pytest.raises(LossmapError, match=r"forgotten\.json"):
        site.page("smoke", root, tmp_path)


def test_shipped_counts_and_marks_other_code(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries = ledger.check(root / "stage1")["entries"]
    present = {record["rule"]: record["code"] for record in entries.values()} | {"measure": "other"}
    page = site.page("shipped", root, tmp_path, present).read_text()
    arms = sum(name.startswith("arms/") for name in entries)
    assert f"{arms} of {len(entries)} results carry a code digest" in capsys.readouterr().out
    assert "Computed by code other than the present" in page


def test_one_specification_gives_both_targets(root: Path) -> None:
    book = Book(root)
    tex = render.environment(book, render.LATEX, str).globals["table"]("stage1.index")
    markdown = render.environment(book, render.MARKDOWN, str).globals["table"]("stage1.index")
    cells = [cell for row in tables.build(book, "stage1.index").rows for cell in row]
    assert all(cell in tex and cell in markdown for cell in cells if cell.isalnum())
    assert r"\toprule" in tex and "| --: |" in markdown


def test_a_column_that_no_row_has_is_an_error(root: Path) -> None:
    studies = tree.studies()
    del studies["peers.json"]["cases"][0]["values"]["lossmap"]
    canon.write_json(root / "stage1" / "peers.json", studies["peers.json"])
    tree.seal(root)
    with pytest.raises(LossmapError, match=r"values\.lossmap"):
        tables.build(Book(root), "stage1.peers")
