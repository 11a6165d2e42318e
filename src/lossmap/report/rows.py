"""The rows of a table before they are text: beside each other's numbers, beside cited ones, or corpus beside corpus."""

from __future__ import annotations

import fnmatch
from collections.abc import ItemsView, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lossmap.report import documents
from lossmap.report.claims import Book

Spec = Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """Nested fields of one row and the file they come from (None for cited and project data)."""

    fields: Mapping[str, Any]
    file: str | None
    tier: str = "A"


def field(fields: Mapping[str, Any], key: str) -> Any:
    """The value at a dotted key; ``nDCG@10`` and the like hold no dot. None where a part is absent."""
    value: Any = fields
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def shaped(book: Book, spec: Spec, rows: Sequence[Row]) -> list[Row]:
    """``rows`` with what the specification's ``join``, ``cited`` and ``pivot`` ask for, in this order."""
    shapes = {"join": _joined, "cited": _cited, "pivot": _pivoted}
    for name, shape in shapes.items():
        if name in spec:
            rows = list(shape(book, spec[name], rows))
    return list(rows)


def _joined(book: Book, joins: Mapping[str, Spec], rows: Sequence[Row]) -> Iterator[Row]:
    """Each row with its fellow of another file, which has equal values of the keys ``by``, under the name in ``joins``.

    A row without a fellow has an empty field. ``explode`` names a list inside each fellow, whose members stand for it;
    ``where`` keeps fellows, and ``only`` the rows that are given one, of these values.
    """
    found = {}
    for name, join in joins.items():
        file = book.allow(join["file"]) if rows else join["file"]
        others = book.resolve(file, join["pointer"]) if rows else []
        whole = [{**o, **part} for o in others for part in (o.get(join["explode"], []) if "explode" in join else [{}])]
        kept = [other for other in whole if _asked(book, join) <= other.items()]
        found[name] = {tuple(other[key] for key in join["by"]): other for other in kept}
    for row in rows:
        beside = {
            name: found[name].get(tuple(row.fields[key] for key in join["by"]), {})
            if join.get("only", {}).items() <= row.fields.items()
            else {}
            for name, join in joins.items()
        }
        tiers = (other.get("tier", "A") for other in beside.values())
        yield Row({**row.fields, **beside}, row.file, max(row.tier, *tiers))


def _asked(book: Book, join: Spec) -> ItemsView[str, Any]:
    """What ``where`` asks of a fellow; ``{corpus}`` is the corpus that this scale has for real questions."""
    return {key: str(value).format(corpus=book.corpus) for key, value in join.get("where", {}).items()}.items()


def _cited(book: Book, spec: Spec, rows: Sequence[Row]) -> Iterator[Row]:
    """Each row with the published numbers of its namesake, as ``cited``; ``names``: value of ``by`` to the cited name;
    of several keys ``by``, their values with a space between.

    The ids of ``cells`` are filled from the row and that ``{name}``; as ``{corpus}`` the one that this scale has for
    real questions is called ``real``. ``keep`` chooses rows that are ``named`` or the ``others``; without it all stay,
    and a row has no cited number where none was printed.
    """
    for row in rows:
        keys = [spec["by"]] if isinstance(spec["by"], str) else spec["by"]
        name, corpus = spec["names"].get(" ".join(row.fields[key] for key in keys)), row.fields.get("corpus")
        if spec.get("keep") not in (None, "named" if name else "others"):
            continue
        said = {**row.fields, "name": name, "corpus": spec.get("real") if corpus == book.corpus else corpus}
        cells = {cell: printed(book, number.format(**said)) for cell, number in spec["cells"].items()} if name else {}
        yield Row({**row.fields, "cited": {"name": name, **cells}}, row.file, row.tier)


def printed(book: Book, number: str) -> str | None:
    """A published number as printed; None where the document printed none."""
    return (
        None if documents.published().get(number, {"printed": "none"})["printed"] == "none" else book.published(number)
    )


def published(book: Book, spec: Spec) -> Iterator[Row]:
    """The rows of a published ``table``, as ``row``, with its numbers by column; rows of none of our columns are left
    out."""
    wanted = {column["key"] for column in spec["columns"]}
    found: dict[str, dict[str, Any]] = {}
    for number in documents.published():
        row, _, column = number.removeprefix(f"{spec['table']}.").rpartition(".")
        if number.startswith(f"{spec['table']}.") and row and column in wanted:
            found.setdefault(row, {"row": row})[column] = printed(book, number)
    yield from (Row(fields, None) for fields in found.values())


def _pivoted(book: Book, spec: Spec, rows: Sequence[Row]) -> Iterator[Row]:
    """One row for all corpora: equal values of ``by`` share it, and each side stands under the name ``sides`` gives it.

    ``{corpus}`` in a side is the corpus that this scale has for real questions. ``verdict`` names a delta: the row's
    ``verdict`` then says in a word whether all sides gain, all lose, none moves, some do, or they are split.
    """
    sides = {corpus.format(corpus=book.corpus): name for name, corpus in spec["sides"].items()}
    together: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row.fields["corpus"] in sides:
            together.setdefault(tuple(field(row.fields, key) for key in spec["by"]), []).append(row)
    for some in together.values():
        placed = {sides[row.fields["corpus"]]: row.fields for row in some}
        deltas = [field(fields, spec["verdict"]) for fields in placed.values()] if "verdict" in spec else []
        shared = {**some[0].fields, **placed, "verdict": verdict(deltas)}
        yield Row(shared, some[0].file, max(row.tier for row in some))


def verdict(deltas: Sequence[float | None]) -> str | None:
    """What the signs of an arm's deltas say together, as the published table says it; None of nothing."""
    signs = {(delta > 0) - (delta < 0) for delta in deltas if delta is not None}
    words = {(): None, (0,): "equal", (1,): "gain", (-1,): "loss", (-1, 1): "split"}
    return words.get(tuple(sorted(signs)), "one-sided")


def files(book: Book, pattern: str) -> list[str]:
    """The results that a name stands for: itself, or with ``*`` every one that fits, in order."""
    return sorted(fnmatch.filter(book.entries, pattern)) if "*" in pattern else [pattern]
