"""FoolMeTwice (Eisenschlos et al. 2021): a claim about a Wikipedia page, and the sentences that settle it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lossmap.corpora.readers import Reading
from lossmap.corpora.readers.collection import Collection, fields_of, load_jsonl
from lossmap.corpora.registry import Stanza

VERSION = "1"
FORM = "FoolMeTwice's fields"


def read(stanza: Stanza, folder: Path, selection: Mapping[str, int] | None = None) -> Reading:
    """Every distinct evidence sentence of all files, gold or retrieved, and the claims of the set's own file.

    A document is ``p{page}-s{sentence}``, numbered by first appearance over the files, so that the sets share their
    documents; claims are clustered by page. Its title is the page's and the section's: a sentence alone rarely names
    what it is about.
    """
    collection, places = Collection(stanza.language), _Places()
    rows = {name: load_jsonl(folder / name) for name in stanza.options["documents"]}
    for name, claims in rows.items():
        with fields_of(folder / name, FORM):
            for document_id, page, title, text in places.sentences(claims):
                collection.add(document_id, title, text, group=page)
    labels: Counter[str] = Counter()
    asked = stanza.options["claims"]
    with fields_of(folder / asked, FORM):
        for position, row in enumerate(rows[asked]):
            labels[row["label"]] += 1
            gold = {places.of[sentence["text"]]: 1 for sentence in row["gold_evidence"]}
            page = places.page(row["wikipedia_page"])
            collection.ask(f"{stanza.key}:{page}:{position:04d}", row["text"], gold)
    return collection.finish(selection, labels=dict(labels), pages=len(places.pages), claims_in=asked)


class _Places:
    """Numbers of pages and of the sentences on them."""

    def __init__(self) -> None:
        self.pages: dict[str, int] = {}
        self.counts: Counter[str] = Counter()
        self.of: dict[str, str] = {}

    def page(self, title: str) -> str:
        return f"p{self.pages.setdefault(title, len(self.pages)):03d}"

    def sentences(self, claims: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, str, str, str]]:
        """Document id, page, title and text of each sentence that no earlier claim had."""
        for row in claims:
            page = self.page(row["wikipedia_page"])
            for sentence in (*row["gold_evidence"], *row["retrieved_evidence"]):
                if (text := sentence["text"]) not in self.of:
                    self.of[text] = f"{page}-s{self.counts[page]:03d}"
                    self.counts[page] += 1
                    yield self.of[text], page, f"{row['wikipedia_page']} | {sentence['section_header']}", text
