"""APIBench (Patil et al. 2023): an instruction, and the one API entry that was written up as its answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lossmap import canon
from lossmap.corpora.readers import Reading
from lossmap.corpora.readers.collection import Collection, fields_of, load_jsonl
from lossmap.corpora.registry import Stanza

VERSION = "1"
FORM = "APIBench's fields"
INSTRUCTION = re.compile(r"###\s*Instruction:\s*(.*?)\s*(?:###\s*Output|\Z)", re.DOTALL)
TITLE = "api_name"
FIELDS = (
    "domain",
    "framework",
    "functionality",
    "api_call",
    "api_arguments",
    "python_environment_requirements",
    "example_code",
    "performance",
    "description",
)


def read(stanza: Stanza, folder: Path, selection: Mapping[str, int] | None = None) -> Reading:
    """API entries as documents, evaluation instructions as queries with a single positive.

    ``merge`` null: a document is a row, gold is the row that equals the instruction's ``api_data``. ``merge`` a field
    name: a document is a distinct value of that field, shown by its first row. Instructions whose answer is no
    document are dropped and counted.
    """
    merge, collection = stanza.options["merge"], Collection(stanza.language)
    path, documents, calls = folder / stanza.options["documents"], {}, Counter()
    rows = load_jsonl(path)
    with fields_of(path, FORM):
        for number, row in enumerate(rows):
            calls[row["api_call"]] += 1
            if (identity := _identity(row, merge)) not in documents:
                documents[identity] = f"{number:04d}"
                collection.add(documents[identity], row[TITLE], entry(row))
    asked, skipped = folder / stanza.options["queries"], Counter()
    questions = load_jsonl(asked)
    with fields_of(asked, FORM):
        for position, row in enumerate(questions):
            found = documents.get(_identity(row["api_data"], merge))
            skipped["without_document"] += found is None
            skipped["asked_with_a_shared_call"] += bool(found and not merge and calls[row["api_call"]] > 1)
            if found:
                text = INSTRUCTION.search(row["code"])[1]
                collection.ask(f"{stanza.key}:{found}:{position:04d}", text, {found: 1})
    report = {"rows": len(rows), "distinct_calls": len(calls), "instructions": len(questions)}
    return collection.finish(
        selection, **report, skipped={"without_document": skipped.pop("without_document")}, **skipped
    )


def _identity(row: Mapping[str, Any], merge: str | None) -> str:
    return row[merge] if merge else canon.line(row)


def entry(row: Mapping[str, Any]) -> str:
    """The text of one API entry: its fields but for the title, one a line."""
    values = ((name, row[name]) for name in FIELDS)
    return "\n".join(f"{name}: {value if isinstance(value, str) else canon.line(value)}" for name, value in values)
