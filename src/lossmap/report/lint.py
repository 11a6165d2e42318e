"""Two checks on the templates: no typed number in a sentence, and no result that the page forgets."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from lossmap.errors import LossmapError

# (pattern, reason): a numeral that is part of a name, a reference or a layout instruction, not a quantity.
COMMON = (
    (r"\bnDCG@\d+\b|\bR@\d+\b", "a measure's name carries its cut"),
    (r"\b[Ss]tage \d\b|\bstage\d\b", "the name of a stage"),
    (r"\bS[0-3]\b", "the name of a stage of the replay"),
    (r"\bbge-m3\b|\bjina-embeddings-v5-text-nano\b", "a model's name"),
    (r"\bF1\b|\bBM25\b|\be5\b|\bL2\b", "names with a digit"),
    (r"\ball-MiniLM-L\d+-v\d\b|\bMiniLM-L\d+-v\d\b", "a model's name"),
    (r"\bsha256\b|\bSHA-256\b|\bUTF-8\b", "names of standards"),
    (r"\bApache-2\.0\b|\bCC BY(?:-[A-Z]+)* \d\.\d\b", "names of licences"),
    (r"\bstage\d?\.[a-z][a-z0-9.-]*", "the id of a table, figure or claim"),
)
MARKDOWN = (
    (r"^ {0,3}\d{1,2}\. (?=\D)", "list enumeration"),
    (r"\{#[\w.-]+\}|\]\(#[\w.-]+\)", "an anchor"),
)
LATEX = (
    (r"\\(?:ref|cref|Cref|label|eqref|cite[tp]?|nocite|input)\*?(?:\[[^\]]*\])*\{[^}]*\}", "a reference"),
    (r"\\(?:documentclass|usepackage|PassOptionsToPackage)(?:\[[^\]]*\])?\{[^}]*\}", "package options"),
    (
        r"-?\d*\.?\d+(?:pt|em|ex|cm|mm|fil+)\b|(?<=[={\[])-?\d*\.?\d+in\b|\d*\.?\d+\\(?:text|line|column)(?:width|height)",
        "a length",
    ),
    (r"\\(?:pdf\w+|tolerance|clubpenalty|widowpenalty)\s*=?-?\d+", "a TeX parameter"),
    (r"\\renewcommand\{\\\w+fraction\}\{\d?\.\d+\}", "a share of the page that floats may take"),
    (r"\\frac\{1\}|\\Bigl\(1\b", "the unit of a formula, not a quantity"),
)
NUMERAL = re.compile(r"\d[\d.,]*")


def _blank(match: re.Match[str]) -> str:
    """Spaces in place of a match, newlines kept, so that lines still count."""
    return re.sub(r"[^\n]", " ", match.group())


def numerals(source: str, latex: bool) -> list[tuple[int, str, str]]:
    """(line, numeral, line text) of every bare numeral of a template's source."""
    code = r"<<.*?>>|<%.*?%>|<#.*?#>" if latex else r"\{\{.*?\}\}|\{%.*?%\}|\{#(?!\w).*?#\}"
    text = re.sub(code, _blank, source, flags=re.DOTALL)
    if latex:
        text = re.sub(r"(?<!\\)%.*", _blank, text)
    for pattern, _reason in (*COMMON, *(LATEX if latex else MARKDOWN)):
        text = re.sub(pattern, _blank, text, flags=re.MULTILINE)
    lines = source.splitlines()
    return [
        (number, hit.group(), lines[number - 1].strip())
        for number, line in enumerate(text.splitlines(), 1)
        for hit in NUMERAL.finditer(line)
    ]


def check_numerals(templates: Iterable[Path]) -> None:
    """Raise LossmapError listing ``file:line: numeral: text`` for every typed number in ``templates``."""
    hits = [
        f"{path}:{line}: '{numeral}' in: {text}"
        for path in templates
        for line, numeral, text in numerals(path.read_text(encoding="utf-8"), ".tex" in path.name)
    ]
    if hits:
        raise LossmapError(
            "a number was typed into a template",
            where="\n    ".join(hits),
            expected="claim('...'), published('...') or constant('...')",
            next_command="add it to paper/claims.yaml, paper/published.yaml or paper/constants.yaml and name it here",
        )


# A file that stands beside one that the page uses: the same numbers in another form, or the raw material of it.
COMPANIONS = (
    ("*/arms/*/metrics.md", "metrics.json", "the same rows, to be read on a terminal"),
    ("*/arms/*/per_query.csv.gz", "metrics.json", "what the rows are means of"),
    ("*/arms/*/run.txt.gz", "metrics.json", "the TREC run of a control"),
    ("*/arms/*/qrels.txt.gz", "metrics.json", "the TREC qrels of a control"),
    ("*/ann.csv.gz", "index.json", "recall of every query, whose deciles the page draws"),
    ("*/arms/*/runinfo.json", "metrics.json", "times, which are never rendered"),
)


def orphans(listed: Iterable[str], used: set[str]) -> list[str]:
    """Result files that no claim, table or figure of the page used."""

    def accompanied(name: str) -> bool:
        folder = name.rpartition("/")[0]
        return any(fnmatch.fnmatch(name, glob) and f"{folder}/{main}" in used for glob, main, _ in COMPANIONS)

    return sorted(name for name in listed if name not in used and not accompanied(name))


def check_orphans(listed: Iterable[str], used: set[str]) -> None:
    """Raise LossmapError naming every result that the page does not show."""
    if lost := orphans(listed, used):
        raise LossmapError(
            "results that the page does not show",
            where=", ".join(lost),
            expected="each used by a claim, a table or a figure of paper/methodology.md.j2",
            next_command="add a table to paper/tables/ and name it on the page, or stop writing the file",
        )


SHOWN = ("caption", "note", "empty", "title", "label", "purpose", "index")
"""Keys whose strings a reader sees, at any depth of a specification."""


def _sentences(value: Any) -> Iterator[str]:
    """Every string that a specification prints."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key in SHOWN and isinstance(inner, str):
                yield inner
            else:
                yield from _sentences(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _sentences(inner)


def check_texts(specifications: Mapping[str, Mapping[str, Any]]) -> None:
    """The numeral lint over captions, notes and column titles of table and figure specifications."""
    texts = {
        f"{name}: {text}"
        for name, spec in specifications.items()
        for text in _sentences(spec)
        if numerals(text, latex=False)
    }
    if texts:
        raise LossmapError(
            "a number was typed into the text of a table or figure",
            where="\n    ".join(sorted(texts)),
            next_command="say it without the number, or show it in a column",
        )


DELTAS, INTERVALS = ("delta", "deltas", "percent"), ("interval", "intervals", "percent_intervals")
SIGNED = ("signed2", "signed4", "signed_points", "percent")


def bare(spec: Mapping[str, Any]) -> list[str]:
    """Keys of the columns of a table that show a delta without an interval of the same measure beside it.

    A table, or a column, may say why it has none (``bare``); cited numbers have no format and are as they were printed.
    """
    columns = spec.get("columns", [])
    shown = [column["key"].split(".") for column in columns if "interval" in column.get("format", "")]
    return [
        column["key"]
        for column in columns
        if column.get("format") in SIGNED and not (column.get("bare") or spec.get("bare"))
        for parts in [column["key"].split(".")]
        for place in [i for i, part in enumerate(parts) if part in DELTAS or part.endswith("_percent")][:1]
        if not any(_of_one_measure(parts, place, interval) for interval in shown)
    ]


def _of_one_measure(parts: list[str], place: int, interval: list[str]) -> bool:
    """Whether an interval's key lies where the delta's does, and names the same measure after it."""
    if interval[:place] != parts[:place] or interval[place : place + 1] not in [[name] for name in INTERVALS]:
        return False
    if parts[place] == "percent" and len(parts) == place + 1:
        return interval[place] == "percent_intervals"
    return [part for part in interval[place + 1 :] if part not in ("delta", "meetings", "queries")] == parts[
        place + 1 :
    ]


def check_intervals(specifications: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise LossmapError naming every table with a delta that has neither an interval nor a reason for its absence."""
    if found := [f"{name}: {', '.join(keys)}" for name, spec in specifications.items() if (keys := bare(spec))]:
        raise LossmapError(
            "a delta is shown without its interval",
            where="\n    ".join(found),
            expected="a column with the interval of the same measure in the same table",
            next_command="add the column, or say why there is none with 'bare'",
        )
