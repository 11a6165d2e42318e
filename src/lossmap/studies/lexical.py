"""BM25 over whole documents, offline: every document and query is read into terms once, any subset is indexed alone.

score(q, d) = sum over the terms of q, repeats included, of ln(1 + (N - df + .5) / (df + .5)) * tf / (tf + k1 (1 - b +
b |d| / avg |d|)), the form of Lucene (Kamphuis et al. 2020), by bm25s. Terms are the runs of word characters of the
lower-cased text without the 33 English stopwords of Lucene, which the library carries; nothing is stemmed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import bm25s
import numpy as np
from numpy.typing import NDArray

LIBRARY = "bm25s"
METHOD = "lucene"
K1 = 1.2
B = 0.75
TERM = r"\w+"
STOPWORDS = bm25s.stopwords.STOPWORDS_EN
CLOSE = 0.9

Floats = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class Collection:
    """Documents and queries as term numbers of one vocabulary, in the order of ``doc_ids`` and ``query_ids``."""

    doc_ids: tuple[str, ...]
    query_ids: tuple[str, ...]
    documents: tuple[list[int], ...]
    queries: tuple[list[int], ...]
    vocabulary: Mapping[str, int]


def card() -> dict[str, Any]:
    """What a document says about its BM25."""
    version = metadata.version(LIBRARY)
    how = {"method": METHOD, "k1": K1, "b": B, "term": TERM, "stopwords": len(STOPWORDS)}
    return {"library": LIBRARY, "library_version": version, **how}


def read(documents: Mapping[str, str], queries: Mapping[str, str]) -> Collection:
    """Terms of ``documents`` and ``queries`` (id to text), sorted by id."""
    doc_ids, query_ids = sorted(documents), sorted(queries)
    texts = [*(documents[name] for name in doc_ids), *(queries[name] for name in query_ids)]
    found = bm25s.tokenize(texts, token_pattern=TERM, stopwords=list(STOPWORDS), show_progress=False)
    cut = len(doc_ids)
    return Collection(
        tuple(doc_ids), tuple(query_ids), tuple(found.ids[:cut]), tuple(found.ids[cut:]), dict(found.vocab)
    )


def scores(collection: Collection, members: Places, asked: Places) -> Floats:
    """Scores (len(asked), len(members)) of an index that holds the documents at ``members`` and no other."""
    index = bm25s.BM25(k1=K1, b=B, method=METHOD, dtype="float64")
    held = bm25s.tokenization.Tokenized([collection.documents[i] for i in members], dict(collection.vocabulary))
    index.index(held, show_progress=False)
    return np.array([index.get_scores_from_ids(collection.queries[i]) for i in asked]).reshape(len(asked), len(members))


def rank(found: Floats, gold: Sequence[int] | Places) -> Places:
    """Rank (Q,) of column ``gold`` (Q,) in its row: descending score, equal scores by column.

    A gold document without any term of its query is not retrieved: its rank is one below the last column.
    """
    own = found[np.arange(len(found)), gold][:, None]
    earlier = np.arange(found.shape[1]) < np.asarray(gold)[:, None]
    above = (found > own).sum(axis=1) + ((found == own) & earlier).sum(axis=1)
    return np.where(own[:, 0] > 0, above, found.shape[1]) + 1


def competitors(found: Floats, gold: Sequence[int] | Places) -> NDArray[np.bool_]:
    """Which other documents (Q, D) reach ``CLOSE`` of the score of gold; all of them where that score is zero."""
    places = np.arange(len(found))
    close = found >= CLOSE * found[places, gold][:, None]
    close[places, gold] = False
    return close
