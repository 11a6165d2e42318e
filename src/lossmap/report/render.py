"""Templates to documents: the two escaping targets, and the paper through LaTeX."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from lossmap import canon, layout
from lossmap.errors import LossmapError
from lossmap.report import documents, figures, lint, tables
from lossmap.report.claims import Book

# Seconds; an arbitrary fixed moment, so that no build's clock enters the PDF.
EPOCH = "1700000000"
OVERFULL_POINTS = 1.0
BANNERS = {"full": "", layout.INTERNAL: "internal build with rows of tier B: not for publication, not for citation"}


class Safe(str):
    """Text that is already in the target's syntax."""


LATEX_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "\N{MINUS SIGN}": r"$-$", "–": "--", "—": "---", "≥": r"$\geq$", "≤": r"$\leq$", "×": r"$\times$",
    "→": r"$\rightarrow$", "≈": r"$\approx$", "†": r"$\dagger$", "·": r"$\cdot$", "“": "``", "”": "''",
}  # fmt: skip


def escape_latex(text: str) -> str:
    """``text`` so that LaTeX prints it as it stands."""
    return "".join(LATEX_SPECIAL.get(character, character) for character in text)


def escape_markdown(text: str) -> str:
    """``text`` so that Markdown prints it as it stands, inside a table cell too."""
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", text.replace("\n", " "))


def _code_latex(text: str) -> str:
    """Typewriter text that may break after punctuation, where a narrow column needs it."""
    return r"\texttt{" + re.sub(r"([/.\-]|\\_|=|:)", r"\1\\allowbreak{}", escape_latex(text)) + "}"


def _code_markdown(text: str) -> str:
    return "`" + text.replace("|", "\\|").replace("\n", " ") + "`"


@dataclass(frozen=True)
class Target:
    """How one output format escapes text, sets code, and marks template expressions."""

    suffix: str
    escape: Callable[[str], str]
    code: Callable[[str], str]
    syntax: Mapping[str, Any]


LATEX = Target(
    "tex",
    escape_latex,
    _code_latex,
    {
        "variable_start_string": "<<", "variable_end_string": ">>", "block_start_string": "<%",
        "block_end_string": "%>", "comment_start_string": "<#", "comment_end_string": "#>",
    },
)  # fmt: skip
MARKDOWN = Target("md", escape_markdown, _code_markdown, {})


def environment(book: Book, target: Target, figure: Callable[[str], str], *first: Path) -> jinja2.Environment:
    """Strict templates whose values are escaped for ``target``; ``figure`` renders a figure by id.

    Templates are looked for in the folders ``first``, then in paper/.
    """
    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*first, documents.paper_folder()]),
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: value if isinstance(value, Safe) else target.escape(str(value)),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **target.syntax,
    )

    def cell(text: str, form: str) -> Safe:
        return Safe(
            target.code(text)
            if form in ("code", "hash") and text not in ("", documents.ABSENT)
            else target.escape(text)
        )

    def table(name: str) -> Safe:
        return Safe(env.get_template(f"tables/table.{target.suffix}.j2").render(table=tables.build(book, name)))

    env.filters["cell"] = cell
    env.globals.update(book.helpers(), table=table, figure=lambda name: Safe(figure(name)))
    env.globals.update(raw=Safe, banner=banner(book.scale))
    return env


def banner(scale: str) -> str:
    """The mark of a document that must not be cited; empty at full scale."""
    return BANNERS.get(scale, f"{scale} scale: not for citation")


def template_text(env: jinja2.Environment, name: str) -> str:
    """The rendered template; jinja2's own errors become a LossmapError with file and line."""
    try:
        return env.get_template(name).render()
    except jinja2.TemplateNotFound as error:
        raise LossmapError("a template is missing", where=documents.paper_folder() / str(error.name)) from error
    except jinja2.TemplateSyntaxError as error:
        place = f"{error.filename}:{error.lineno}"
        raise LossmapError("a template is malformed", where=place, observed=error) from error
    except jinja2.UndefinedError as error:
        frames = traceback.extract_tb(error.__traceback__)
        frame = [frame for frame in frames if frame.filename.endswith(".j2")][-1]
        raise LossmapError(
            "a template uses a name that does not exist",
            where=f"{frame.filename}:{frame.lineno}",
            observed=error,
            expected="claim, has, value, published, tally, constant, direction, ratio, gap, share, table, figure",
        ) from error


def templates(suffix: str) -> list[Path]:
    """Every template source of one target, sections and table templates included."""
    return sorted(documents.paper_folder().rglob(f"*.{suffix}.j2"))


def paper(scale: str, results_root: Path, out_dir: Path, digests: Mapping[str, str] | None = None) -> Path:
    """Render ``paper.tex`` with its figures and build ``paper.pdf`` in ``out_dir``; the PDF's path.

    ``scale`` must be the ledgers' own, or ``shipped``, which takes it from them.
    """
    lint.check_numerals(templates("tex"))
    lint.check_texts({**tables.specifications(), **figures.specifications()})
    lint.check_intervals(tables.specifications())
    book = open_book(scale, results_root, digests)
    with tempfile.TemporaryDirectory(prefix="lossmap-paper-") as scratch:
        work = Path(scratch)
        env = environment(book, LATEX, _latex_figure(book, work))
        canon.write_text(work / "paper.tex", template_text(env, "paper.tex.j2"))
        shutil.copyfile(documents.paper_folder() / "references.bib", work / "references.bib")
        compile_pdf(work / "paper.tex")
        for name in ("paper.tex", "paper.pdf"):
            with canon.atomic(Path(out_dir) / name) as handle:
                handle.write((work / name).read_bytes())
    return Path(out_dir) / "paper.pdf"


def open_book(scale: str, results_root: Path, digests: Mapping[str, str] | None) -> Book:
    """The claims of ``results_root`` at ``scale``; says how many results other code wrote, where ``digests`` tell."""
    book = Book(results_root, public=scale != layout.INTERNAL, digests=digests)
    if scale not in ("shipped", book.scale):
        raise LossmapError(
            "the results are of another scale",
            where=results_root,
            observed=book.scale,
            expected=scale,
            next_command="./run --forcerun stage1 results/stage1",
        )
    if digests is not None:
        print(f"{len(book.stale)} of {len(book.entries)} results carry a code digest other than the present one")
    return book


def _latex_figure(book: Book, work: Path) -> Callable[[str], str]:
    def figure(name: str) -> str:
        file = figures.write(book, name, work / f"{name.replace('.', '-')}.pdf")
        caption = escape_latex(figures.specifications()[name]["caption"])
        return (
            "\\begin{figure}[tb]\n\\centering\n"
            f"\\includegraphics[width=\\linewidth]{{{file.name}}}\n"
            f"\\caption{{{caption}}}\n\\label{{fig:{name}}}\n\\end{{figure}}"
        )

    return figure


def compile_pdf(source: Path) -> Path:
    """Run latexmk on ``source`` in its own folder; the PDF's path.

    The clock, the zone and the machine's paths stay out of the bytes. Raises LossmapError when LaTeX is absent or
    fails, for an undefined reference and for a box that overruns by more than a point.
    """
    if shutil.which("latexmk") is None:
        raise LossmapError(
            "latexmk is not installed", next_command="./run lossmap doctor (lists the TeX packages to install)"
        )
    env = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH, "FORCE_SOURCE_DATE": "1", "TZ": "UTC", "LC_ALL": "C"}
    # A long print line keeps every warning of the log on one line, so that it can be matched.
    env |= {"max_print_line": "1000", "error_line": "254", "half_error_line": "238"}
    call = ["latexmk", "-norc", "-pdf", "-interaction=nonstopmode", "-halt-on-error", "-file-line-error", source.name]
    done = subprocess.run(call, cwd=source.parent, env=env, capture_output=True, text=True, errors="replace")
    log = source.with_suffix(".log")
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else done.stdout
    if faults := _faults(text, done.returncode):
        raise LossmapError(
            "the paper does not build cleanly",
            where=source.name,
            observed="\n    ".join(faults[:10]),
            next_command=f"correct the template; the source is kept as {_keep(source)}",
        )
    return source.with_suffix(".pdf")


def _keep(source: Path) -> Path:
    """A copy of a failed source that outlives the scratch folder."""
    kept = Path(tempfile.gettempdir()) / f"lossmap-{os.geteuid()}-failed.tex"
    shutil.copyfile(source, kept)
    return kept


def _faults(log: str, code: int) -> list[str]:
    """What is wrong with a LaTeX run: its first error, undefined references, floats and boxes that do not fit."""
    errors = re.findall(r"^(?:\S+:\d+: .*|! .*)$", log, flags=re.MULTILINE)
    if code:
        return errors[:1] or [log.strip()[-400:]]
    undefined = re.findall(
        r"^.*Warning: (?:(?:Reference|Citation) .* undefined|Float too large).*$", log, flags=re.MULTILINE
    )
    boxes = re.findall(r"^(Overfull \\[hv]box \(([\d.]+)pt too (?:wide|high)\).*)$", log, flags=re.MULTILINE)
    return undefined + [line for line, points in boxes if float(points) > OVERFULL_POINTS]
