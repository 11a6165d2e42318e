"""Text vectors of chunks and queries, through the content-addressed cache."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lossmap import canon, transcript
from lossmap.encode import cache, models
from lossmap.encode.encoder import Encoder
from lossmap.index import plane, table
from lossmap.index.header import Passage, embedding_text
from lossmap.layout import Layout

CHUNKS = "passages.npz"
DIGESTS = "digests.npz"


@dataclass(frozen=True)
class Vectors:
    """``distinct`` float32 (d, dimension), one row a distinct text; ``inverse`` int32 (n): the row of each text.

    Scores are computed once a distinct text and fanned out: equal texts then tie exactly, whatever the BLAS does at the
    edges of its blocks.
    """

    distinct: np.ndarray
    inverse: np.ndarray

    def take(self, rows: np.ndarray) -> Vectors:
        """The vectors of the texts ``rows`` alone, every distinct one used."""
        used, inverse = np.unique(self.inverse[rows], return_inverse=True)
        return Vectors(self.distinct[used], inverse.astype(np.int32))

    def sha256(self) -> str:
        """Hash of every byte: part of the identity of an index."""
        found = hashlib.sha256(np.ascontiguousarray(self.distinct))
        found.update(np.ascontiguousarray(self.inverse))
        return found.hexdigest()


def of(model_name: str, kind: str, texts: Sequence[str], window: int | None = None) -> tuple[Vectors, int]:
    """Vectors of ``texts`` (kind ``query`` or ``passage``), and how many texts were not in the cache.

    ``window``: word-pieces at which a text is cut; None for the registry's.
    """
    model = models.get(model_name, window)
    prompt = model.query_prompt if kind == "query" else model.passage_prompt
    order = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    distinct, encoded = cache.encode_distinct(model, list(order), prompt)
    return Vectors(distinct, np.array([order[text] for text in texts], np.int32)), encoded


def cut_by(model_name: str, texts: Sequence[str], windows: Sequence[int]) -> dict[str, Any]:
    """What each window leaves out of the passages ``texts``: texts cut, and word-pieces that no vector sees."""
    model = models.get(model_name)
    pieces = Encoder(model).pieces(texts, model.passage_prompt)
    found = [
        {
            "window": window,
            "texts_cut": int((pieces > window).sum()),
            "pieces_lost": int((pieces - window).clip(0).sum()),
        }
        for window in windows
    ]
    return {"texts": len(texts), "pieces": int(pieces.sum()), "windows": found}


def save(path: Path, value: Vectors) -> None:
    with canon.atomic(path) as handle:
        np.savez(handle, distinct=value.distinct, inverse=value.inverse)


def load(path: Path) -> Vectors:
    with np.load(path) as data:
        return Vectors(data["distinct"], data["inverse"])


def run_passages(at: Layout) -> dict[str, int]:
    """The rule: passages.npz of an index."""
    report = _passages(at, CHUNKS, at.header, table.load(at.index_folder))
    at.note_reuse("encode", report["distinct"] - report["encoded_now"])
    return report


def run_digests(at: Layout) -> dict[str, int]:
    """The rule: digests.npz of an index with a digest plane, under that plane's header."""
    return _passages(at, DIGESTS, at.digests or "none", plane.load(at.index_folder))


def run_queries(at: Layout) -> dict[str, int]:
    """The rule: the vectors of the queries of a bench."""
    return _write(at, at.query_vectors, "query", [query.text for query in queries(at)])


def _passages(at: Layout, name: str, header: str, rows: Sequence[Passage]) -> dict[str, int]:
    return _write(at, at.index_folder / name, "passage", [embedding_text(header, row) for row in rows])


def _write(at: Layout, path: Path, kind: str, texts: Sequence[str]) -> dict[str, int]:
    """How many texts there are, how many differ, and how many were new to the cache."""
    value, encoded = of(at.model, kind, texts, at.window)
    save(path, value)
    return {"texts": len(texts), "distinct": len(value.distinct), "encoded_now": encoded}


def queries(at: Layout) -> list[transcript.Query]:
    """Every query of a bench, by id: the order of its vectors and of every leg."""
    found = [query for key in at.scored for query in transcript.read_queries(at.corpus(key))]
    return sorted(found, key=lambda query: query.query_id)
