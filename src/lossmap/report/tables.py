"""Tables: a specification as data (paper/tables/*.yaml), rows taken from results, rendered for two targets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lossmap.errors import LossmapError
from lossmap.report import documents
from lossmap.report.claims import Book, unknown
from lossmap.report.rows import Row, field, files, published, shaped


@dataclass(frozen=True)
class Column:
    """``width`` is a share of the text width for columns that wrap, None for those that do not."""

    title: str
    form: str
    align: str
    width: float | None


@dataclass(frozen=True)
class Table:
    """Cells are text, not yet escaped; ``breaks`` holds the row numbers before which a group begins.

    ``long`` may break over pages, ``dense`` is set smaller: both say how the paper prints it; the page ignores them.
    """

    id: str
    caption: str
    note: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    breaks: frozenset[int]
    long: bool
    dense: bool
    stale: bool


def _from_arms(book: Book, spec: Mapping[str, Any]) -> Iterator[Row]:
    """One row per arm and class. The whole metrics document is ``doc``, its arm ``arm``, the class row ``row``."""
    for arm, file, document in book.results.arms(spec["stage"]):
        for row in document["rows"]:
            scopes = {leg["scope"] for leg in document["arm"]["leg_stanzas"].values()}
            head = {"id": arm, "scope": " and ".join(sorted(scopes))}
            yield Row({"arm": head, "row": row, "doc": document}, file, row["tier"])


def _from_file(book: Book, spec: Mapping[str, Any]) -> Iterator[Row]:
    """The items of a list, or of a mapping (its key as ``key``), at a pointer of a file; other values as ``value``.

    A file name with ``*`` stands for every file that fits, in order. ``single`` takes what the pointer finds as one
    row; ``explode`` names a list inside each item, whose members become the rows, with the item's own fields beside
    theirs.
    """
    for file in files(book, spec["file"]):
        found = book.resolve(file, spec.get("pointer", ""))
        whole = book.resolve(file, "")
        tier = whole.get("tier", "A") if isinstance(whole, Mapping) else "A"
        for key, value in _items([found] if spec.get("single") else found):
            item = {"key": key, **(value if isinstance(value, Mapping) else {"value": value})}
            for part in item.get(spec["explode"], []) if "explode" in spec else [{}]:
                # The worst of the document, the item and its part: A < B < C.
                yield Row({**item, **part}, file, max(tier, item.get("tier", "A"), part.get("tier", "A")))


def _items(found: Any) -> Iterable[tuple[Any, Any]]:
    return found.items() if isinstance(found, Mapping) else enumerate(found)


def _from_facts(book: Book, spec: Mapping[str, Any]) -> Iterator[Row]:
    """A measured claim beside a published number, row by row, as the specification lists them.

    ``{corpus}`` in the id of a claim is the corpus that this scale has for real questions.
    """
    for fact in spec["facts"]:
        claim = fact["claim"].format(corpus=book.corpus) if "claim" in fact else None
        record = book.record(claim) if claim else None
        fields = {
            "label": fact["label"],
            "ours": book.claim(claim) if claim else None,
            "published": book.published(fact["published"]) if "published" in fact else None,
            "note": fact.get("note", ""),
        }
        yield Row(fields, record["file"] if record else None, record["tier"] if record else "A")


def _from_beside(book: Book, spec: Mapping[str, Any]) -> Iterator[Row]:
    """Per scope and class the cited row of published.yaml, then the rows of our arms."""
    measures = documents.data("claims.yaml")["measures"]
    names = dict(measures)
    metrics = book.results.arms(spec["stage"])
    for block in spec["blocks"]:
        for query_class in spec["classes"]:
            cited = {
                measure: book.published(f"{block['published']}.{query_class}.{name}") for name, measure in names.items()
            }
            count = book.published(f"{block['published']}.{query_class}.n")
            base = {"scope": block["scope"], "class": query_class}
            yield Row({**base, "source": "cited", "queries": count, "metrics": cited}, None)
            for arm, file, document in metrics:
                for row in document["rows"]:
                    if arm in block["arms"] and (row["corpus"], row["query_class"]) == (book.corpus, query_class):
                        yield Row({**base, "source": arm, "ann": document.get("ann"), **row}, file, row["tier"])


def _from_contrasts(book: Book, spec: Mapping[str, Any]) -> Iterator[Row]:
    """Per corpus and class the cited delta of published.yaml, then our own contrasts (``ours``: name and arm)."""
    ours = [
        c for c in book.resolve(spec["file"], spec["pointer"]) if {k: c[k] for k in ("name", "arm")} in spec["ours"]
    ]
    for block in spec["blocks"]:
        corpus = block["corpus"].format(corpus=book.corpus)
        for query_class in block["classes"]:
            stem, head = f"{block['published']}.{query_class}", {"corpus": corpus, "query_class": query_class}
            cited = {name: book.published(f"{stem}.{name}") for name in ("before", "after")}
            cited["queries"] = book.published(f"{stem}.n")
            deltas = {measure: book.published(f"{stem}.{name}") for name, measure in spec["measures"].items()}
            yield Row({**head, "name": "cited", **cited, "deltas": deltas}, None)
            yield from _measured_contrasts(book, spec, ours, head)


def _measured_contrasts(
    book: Book, spec: Mapping[str, Any], contrasts: Sequence[Mapping[str, Any]], head: Mapping[str, Any]
) -> Iterator[Row]:
    """The rows of ``contrasts`` for the corpus and class of ``head``, with nDCG@10 of both sides (file ``levels``)."""
    book.allow(spec["levels"])
    keys = ("bench", "arm", "query_class")
    levels = {tuple(row[k] for k in keys): row["metrics"]["nDCG@10"] for row in book.resolve(spec["levels"], "/rows")}
    for contrast in contrasts:
        for row in contrast["rows"]:
            if {k: row[k] for k in head} == head:
                sides = {"before": contrast["control"], "after": contrast["treatment"]}
                at = (f"/{row['corpus']}", contrast["arm"], row["query_class"])
                values = {side: levels[index + at[0], *at[1:]] for side, index in sides.items()}
                yield Row(
                    {**row, "name": contrast["name"], "arm": contrast["arm"], **values}, spec["file"], row["tier"]
                )


def _from_data(_book: Book, spec: Mapping[str, Any]) -> Iterator[Row]:
    """The rows of a YAML file of the folder paper/."""
    for fields in documents.data(spec["name"]):
        yield Row(fields, None)


def _from_checks(_book: Book, spec: Mapping[str, Any]) -> Iterator[Row]:
    """The arithmetic of published numbers."""
    for record in documents.check_published():
        yield Row({**record, "agrees": record["ok"]}, None)


def _from_tally(_book: Book, spec: Mapping[str, Any]) -> Iterator[Row]:
    """How exactly the numbers of a published document add up, identity by identity."""
    for record in documents.tally_published(spec["document"]):
        yield Row(record, None)


def _from_claims(book: Book, spec: Mapping[str, Any]) -> Iterator[Row]:
    """Every claim that a sentence of this document used."""
    for name, claim in sorted(book.used.items()):
        value = documents.formatted(claim["value"], claim["format"])
        yield Row({"id": name, **claim, "value": value}, claim["file"], claim["tier"])


def _from_files(book: Book, spec: Mapping[str, Any]) -> Iterator[Row]:
    """Every result file that this document used, with its rule, hash and code digest."""
    for name in sorted(book.results.used):
        yield Row({"file": name, **book.entries[name]}, name)


SOURCES: dict[str, Callable[[Book, Mapping[str, Any]], Iterator[Row]]] = {
    "arms": _from_arms,
    "file": _from_file,
    "facts": _from_facts,
    "beside": _from_beside,
    "contrasts": _from_contrasts,
    "published": published,
    "data": _from_data,
    "checks": _from_checks,
    "tally": _from_tally,
    "claims": _from_claims,
    "files": _from_files,
}


FEW_ROWS = 20
"""A table that fits a page floats, whatever its specification says: a long one under other floats overruns its page."""
ABOUT_THE_INSTRUMENT = (
    "stage1.peers",
    "published.",
    "corpora.trail",
    "controls",
    "claims",
    "files",
    "bench.",
    "stage1.reindex",
    "stage5.licences",
    "agreement.seed",
    "replay.published-arithmetic",
)
"""Tables that hold without any corpus, beside those that are cited whole."""


def specifications() -> dict[str, Any]:
    """Table id -> specification, from every YAML file of paper/tables/."""
    found: dict[str, Any] = {}
    for path in sorted((documents.paper_folder() / "tables").glob("*.yaml")):
        found.update(documents.data(f"tables/{path.name}"))
    return found


def _wanted(row: Row, where: Mapping[str, Any]) -> bool:
    accepted = {key: value if isinstance(value, list) else [value] for key, value in where.items()}
    return all(field(row.fields, key) in values for key, values in accepted.items())


def _cell(row: Row, column: Mapping[str, Any]) -> str:
    value = field(row.fields, column["key"])
    form = column.get("format", "text")
    if isinstance(value, str) and form != "hash":
        return value
    return documents.formatted(value, form)


def _cells(row: Row, columns: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The row as text; one of another tier than A (an internal build shows it) says so in its first cell."""
    first, *rest = (_cell(row, column) for column in columns)
    return (first if row.tier == "A" else f"{first} (tier {row.tier})", *rest)


def build(book: Book, name: str) -> Table:
    """The table ``name`` from the results of ``book``.

    Raises LossmapError for an unknown id, a tier-B row in a public target, a file without a ledger entry, and a table
    that no row reaches or of which a whole column is absent (a pointer that no longer fits its result).
    """
    every = specifications()
    if name not in every:
        unknown("table", name, every, "use a known id, or add a specification to paper/tables/")
    spec = every[name]
    rows = [row for row in SOURCES[spec["from"]](book, spec) if _wanted(row, spec.get("where", {}))]
    rows = shaped(book, spec, rows)
    for row in rows:
        if row.file is not None:
            book.allow(row.file, row.tier)
    if not rows and "*" not in spec.get("file", "*"):
        book.allow(spec["file"])  # a result that says "none" is shown as such
    cells = tuple(_cells(row, spec["columns"]) for row in rows)
    about_corpus = book.not_obtained and spec["from"] != "published" and not name.startswith(ABOUT_THE_INSTRUMENT)
    stand_in = documents.NOT_OBTAINED if about_corpus else spec.get("empty")
    if stand_in and (about_corpus or not cells):
        cells = ((stand_in, *[""] * (len(spec["columns"]) - 1)),)
        rows = []
    if not book.not_obtained:
        _refuse_empty(name, spec, cells)
    groups = [field(row.fields, spec["group"]) for row in rows] if "group" in spec else []
    return Table(
        id=name,
        caption=spec["caption"],
        note=spec.get("note", ""),
        columns=tuple(
            Column(c["title"], c.get("format", "text"), c.get("align", "left"), c.get("width")) for c in spec["columns"]
        ),
        rows=cells,
        breaks=frozenset(i for i in range(1, len(groups)) if groups[i] != groups[i - 1]),
        long=spec.get("long", False) and len(cells) > FEW_ROWS,
        dense=spec.get("dense", False),
        stale=any(row.file in book.stale for row in rows),
    )


def _refuse_empty(name: str, spec: Mapping[str, Any], cells: tuple[tuple[str, ...], ...]) -> None:
    absent = [
        column["key"]
        for place, column in enumerate(spec["columns"])
        if not column.get("optional") and all(row[place] == documents.ABSENT for row in cells)
    ]
    if absent:
        raise LossmapError(
            f"table '{name}' has no values" if not cells else f"table '{name}' has columns without values",
            where=spec.get("file", spec["from"]),
            observed=f"{len(cells)} rows; absent: {', '.join(absent)}",
            next_command="correct the keys in paper/tables/, or rerun the stage that writes the file",
        )
