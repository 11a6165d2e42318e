"""The methodology page: one Markdown file, and one HTML file that needs nothing else."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from lossmap import canon
from lossmap.report import documents, figures, lint, tables
from lossmap.report.claims import Book
from lossmap.report.render import MARKDOWN, environment, escape_markdown, open_book, template_text, templates


def page(scale: str, results_root: Path, out_dir: Path, digests: Mapping[str, str] | None = None) -> Path:
    """Write ``methodology.md``, its figures and a self-contained ``index.html``; the HTML file's path.

    Fails when a result of any stage is shown nowhere on the page.
    """
    lint.check_numerals(templates("md"))
    lint.check_texts({**tables.specifications(), **figures.specifications()})
    lint.check_intervals(tables.specifications())
    book = open_book(scale, results_root, digests)
    out_dir = Path(out_dir)
    env = environment(book, MARKDOWN, _markdown_figure(book, out_dir))
    text = template_text(env, "methodology.md.j2")
    if not book.not_obtained:  # without its corpus a chapter's results are empty and nothing shows them
        lint.check_orphans(book.entries, book.results.used)
    canon.write_text(out_dir / "methodology.md", text)
    canon.write_text(out_dir / "index.html", html_page(text, out_dir))
    return out_dir / "index.html"


def _markdown_figure(book: Book, out_dir: Path) -> Callable[[str], str]:
    def figure(name: str) -> str:
        file = figures.write(book, name, out_dir / "figures" / f"{name}.svg")
        caption = escape_markdown(figures.specifications()[name]["caption"])
        return f"![{caption}](figures/{file.name})"

    return figure


def html_page(text: str, folder: Path) -> str:
    """Markdown ``text`` as one HTML document; images are SVG files below ``folder`` and are put in line."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("image", _inline_image(folder))
    parser.add_render_rule("table_open", lambda *_: '<div class="scroll" tabindex="0"><table>\n')
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    tokens = parser.parse(text)
    headings = _anchor(tokens)
    body = parser.renderer.render(tokens, parser.options, {})
    title = headings[0][2]
    entries = [f'<li class="level-{level}"><a href="#{slug}">{html.escape(name)}</a></li>'
               for level, slug, name in headings if level in (2, 3)]  # fmt: skip
    style = (documents.paper_folder() / "page.css").read_text(encoding="utf-8")
    shell = (documents.paper_folder() / "page.html").read_text(encoding="utf-8")
    parts = {"title": html.escape(title), "style": style, "contents": "\n".join(entries), "body": body}
    return re.sub(r"@@(\w+)@@", lambda match: parts[match.group(1)], shell)


def _inline_image(folder: Path) -> Callable[..., str]:
    def render(_self: object, tokens: Sequence[Token], index: int, *_: object) -> str:
        token = tokens[index]
        svg = (folder / str(token.attrs["src"])).read_text(encoding="utf-8")
        drawing = svg[svg.index("<svg") :]
        return f'<figure role="img">{drawing}<figcaption>{html.escape(token.content)}</figcaption></figure>'

    return render


def _anchor(tokens: Sequence[Token]) -> list[tuple[int, str, str]]:
    """Give every heading an id that is its text in lower case; (level, id, text) in order."""
    found: list[tuple[int, str, str]] = []
    for token, inline in zip(tokens, tokens[1:], strict=False):
        if token.type == "heading_open":
            plain = "".join(child.content for child in inline.children or [])
            slug = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")
            token.attrSet("id", slug)
            found.append((int(token.tag[1]), slug, plain))
    return found
