"""Is the synthetic tier easier or harder than real meetings: BM25 over its whole meetings, beside QMSum's domains.

The score is that of ``lexical`` (its formula, terms, stopwords, constants). Here only the terms of the questions are
counted, in one pass over the documents, so that 22 million words need no list of terms in memory.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from lossmap import canon
from lossmap.judge import intervals
from lossmap.studies import composition, lexical
from lossmap.studies.lexical import K1, B, Floats, Places
from lossmap.studies.whole import NAMES, Row, load, mean, measures, scored

SCHEMA_VERSION = 1
TIER = "A"
JUDGED_BY = "constructed"
TERM = re.compile(lexical.TERM)
TOP = 10
MEASURES = ("R@1", "R@5", "R@10", "RR")
BLOCK = 500
CLASSES = ("lookup", "verbatim", "multi_file", "aggregation", "summarize")


@dataclass(frozen=True)
class Lexicon:
    """Weights (V, D) of the terms of Q queries in D documents; ``asked`` (Q, V) counts the terms of each query."""

    weights: sparse.csc_matrix
    asked: sparse.csr_matrix

    def scores(self, queries: Places) -> Floats:
        """BM25 scores (len(queries), D)."""
        return np.asarray((self.asked[queries] @ self.weights).toarray())


def terms(text: str) -> list[str]:
    """Terms of ``text`` as ``lexical`` reads them."""
    return [term for term in TERM.findall(text.lower()) if term not in lexical.STOPWORDS]


def read(documents: Iterable[str], queries: Sequence[str]) -> Lexicon:
    """Count the terms of ``queries`` in ``documents``, which are read once, one at a time."""
    found = [Counter(terms(query)) for query in queries]
    place = {term: at for at, term in enumerate(sorted({term for counter in found for term in counter}))}
    asked = _matrix([{place[term]: count for term, count in counter.items()} for counter in found], len(place))
    held: list[dict[int, int]] = []
    lengths: list[int] = []
    for text in documents:
        counter = Counter(terms(text))
        lengths.append(counter.total())
        held.append({place[term]: count for term, count in counter.items() if term in place})
    return Lexicon(_weights(_matrix(held, len(place)), np.array(lengths, float)), asked)


def _matrix(rows: Sequence[dict[int, int]], width: int) -> sparse.csr_matrix:
    columns = [column for row in rows for column in sorted(row)]
    values = [float(row[column]) for row in rows for column in sorted(row)]
    ends = np.cumsum([0, *(len(row) for row in rows)])
    return sparse.csr_matrix((values, columns, ends), shape=(len(rows), width))


def _weights(counts: sparse.csr_matrix, lengths: Floats) -> sparse.csc_matrix:
    """What each term adds to the score of each document, for ``counts`` (D, V): ``lexical`` has the formula."""
    documents = counts.shape[0]
    holding = np.bincount(counts.indices, minlength=counts.shape[1])
    idf = np.log(1 + (documents - holding + 0.5) / (holding + 0.5))
    norm = K1 * (1 - B + B * lengths / lengths.mean())
    weighted = counts.copy()
    weighted.data = counts.data / (counts.data + np.repeat(norm, np.diff(counts.indptr))) * idf[counts.indices]
    return weighted.T.tocsc()


def study(folder: Path, qmsum: Path | None) -> Row:
    """The document realism.json for the generated ``folder``, with QMSum's pooled domains where its corpus is given.

    A rank is that of the first gold meeting, so R@k says whether any gold is among the first k. Rows never pool
    corpora.
    """
    folder = Path(folder)
    config = canon.read_json(folder / "config.json")
    queries = sorted(canon.read_jsonl(folder / "queries.jsonl"), key=lambda row: row["query_id"])
    heads: list[Row] = []
    lexicon = read(_texts(folder, heads), [row["text"] for row in queries])
    head = {"corpus": config["corpus_id"], "tier": TIER, "judged_by": JUDGED_BY}
    return {
        "schema_version": SCHEMA_VERSION,
        **head,
        "meetings": len(heads),
        "queries": len(queries),
        "bm25": {**lexical.card(), "markers": "dropped", "speakers": "not indexed", "close": lexical.CLOSE},
        "ranks": "of the first gold meeting; without a term of the query it is one below the last",
        "competitors": "meetings that reach close of gold's score, for queries with one gold meeting",
        "clusters": "the gold meeting; the question where gold is several meetings",
        "intervals": intervals.card(),
        "near_duplicates": _near_duplicates(config, heads),
        "rows": [{**head, **row} for row in _rows(lexicon, queries, [row["meeting_key"] for row in heads])],
        "real": _real(qmsum) if qmsum is not None else [],
    }


def _texts(folder: Path, heads: list[Row]) -> Iterator[str]:
    """What is said in each meeting, in the order of the files; all but the turns goes to ``heads``."""
    for part in sorted((folder / "meetings").glob("part-*.jsonl")):
        for row in canon.read_jsonl(part):
            turns = row.pop("turns")
            heads.append(row)
            yield " ".join(turn["content"] for turn in turns)


def _near_duplicates(config: Row, heads: Sequence[Row]) -> Row:
    """The dial, and what came of it: the share of meetings in clusters of two and more, their heads counted."""
    sizes = Counter(row["near_duplicate_cluster"] for row in heads if row["near_duplicate_cluster"] is not None)
    inside = sum(size for size in sizes.values() if size > 1)
    return {
        "join_probability": config["near_duplicate_rate"],
        "clusters": len(sizes),
        "in_clusters": inside / len(heads),
    }


def _rows(lexicon: Lexicon, queries: Sequence[Row], keys: Sequence[str]) -> Iterator[Row]:
    """A row a class and surface, then one a rule and surface of the aggregations."""
    groups: dict[tuple[str, str | None, str], list[int]] = defaultdict(list)
    for at, row in enumerate(queries):
        groups[row["query_class"], None, row["surface"]].append(at)
        if row["query_class"] == "aggregation":
            groups[row["query_class"], row["rule"], row["surface"]].append(at)
    order = sorted(groups, key=lambda name: (CLASSES.index(name[0]), name[1] or "", name[2]))
    place = {key: at for at, key in enumerate(keys)}
    for query_class, rule, surface in order:
        asked = groups[query_class, rule, surface]
        parts = zip(*(_measured(lexicon, queries, block, place) for block in _blocks(asked)))
        first, held, close = (np.concatenate(part) for part in parts)
        yield {"query_class": query_class, "rule": rule, "surface": surface, "documents": len(keys),
               **_summary([queries[at] for at in asked], first, held, close, len(keys))}  # fmt: skip


def _blocks(asked: Sequence[int]) -> Iterator[Sequence[int]]:
    return (asked[low : low + BLOCK] for low in range(0, len(asked), BLOCK))


def _measured(
    lexicon: Lexicon, queries: Sequence[Row], asked: Sequence[int], place: dict[str, int]
) -> tuple[Places, Floats, Floats]:
    """For each query: the rank of its first gold, the share of its gold in the first ten, its competitors.

    No competitors (nan) for a query with several gold meetings.
    """
    found = lexicon.scores(np.array(asked, int))
    golds = [sorted(place[key] for key in queries[at]["gold_files"]) for at in asked]
    ranks = [lexical.rank(np.repeat(row[None], len(gold), axis=0), gold) for row, gold in zip(found, golds)]
    close = lexical.competitors(found, [gold[0] for gold in golds]).sum(axis=1)
    return (
        np.array([some.min() for some in ranks], int),
        np.array([float((some <= min(TOP, len(place))).mean()) for some in ranks]),
        np.array([count if len(gold) == 1 else np.nan for count, gold in zip(close, golds)], float),
    )


def _summary(queries: Sequence[Row], first: Places, held: Floats, close: Floats, documents: int) -> Row:
    clusters = [row["gold_files"][0] if len(row["gold_files"]) == 1 else row["base_id"] for row in queries]
    columns = [NAMES.index(name) for name in MEASURES]
    values = np.column_stack([measures(first, documents)[:, columns], held])
    single = ~np.isnan(close)
    return {
        **scored(values, clusters, (*MEASURES, "gold_in_10")),
        "median_rank": float(np.median(first)),
        "unmatched": int((first > documents).sum()),
        "single_gold": int(single.sum()),
        **_competition(mean(close[single]), mean((close * (first <= documents))[single]), documents),
    }


def _competition(competitors: float | None, matched: float | None, documents: int) -> Row:
    share = None if competitors is None else competitors / documents
    return {"competitors": competitors, "competitors_share": share, "competitors_matched": matched}


def _real(folder: Path) -> list[Row]:
    """QMSum's domains over one index of all its meetings, with the fields of a synthetic row."""
    dropped = {"domain", "index", "competitors_own", "competitors_own_matched", "competitors", "competitors_matched"}
    rows = []
    for row in composition.domains(load(Path(folder))):
        if row["index"] != "pooled":
            continue
        kept = {name: value for name, value in row.items() if name not in dropped and not name.startswith("nDCG")}
        kept |= {"domain": row["domain"], "query_class": "all", "surface": "asked", "single_gold": row["queries"]}
        rows.append({**kept, **_competition(row["competitors"], row["competitors_matched"], row["documents"])})
    return rows
