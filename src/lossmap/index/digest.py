"""Extractive digests of a file by TextRank: no language model, every sentence was said (spec/harness 1.6).

A file is cut into contiguous sections; in each the sentences vote for one another by the cosine of their tf-idf
vectors, and the most central ones, in spoken order, are the section's digest.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from scipy import sparse

from lossmap.index import split
from lossmap.index.chunk import UNKNOWN_SPEAKER, Segment, Splitter, words
from lossmap.index.terms import terms

SCHEMA_VERSION = 1
GENERATOR = "textrank-tfidf"
MIN_WORDS = 5
SECTION_WORDS = 1_500
MAX_SECTIONS = 8
TARGET_WORDS = 55
MAX_WORDS = 70
"""int((126 - 30) / (126 / 92)): a window of 128 pieces less 2 special and 30 of a header, at 126 pieces a 92 words."""
DAMPING = 0.85
ITERATIONS = 200
TOLERANCE = 1e-10
TIE_DIGITS = 12
"""Equal sentences have equal scores; the last bits of a float would order them by how the sums were taken."""
RANK_DIGITS = 8

RULE = {
    "schema_version": SCHEMA_VERSION,
    "generator": GENERATOR,
    "min_words": MIN_WORDS,
    "section_words": SECTION_WORDS,
    "max_sections": MAX_SECTIONS,
    "target_words": TARGET_WORDS,
    "max_words": MAX_WORDS,
    "damping": DAMPING,
    "iterations": ITERATIONS,
    "tolerance": str(TOLERANCE),
}


@dataclass(frozen=True)
class Sentence:
    """A candidate: its place among the file's candidates, and the positions of the segments that it lies in.

    A position counts the file's segments in their total order. Times in seconds, from the first segment's start to the
    last one's end.
    """

    order: int
    text: str
    speaker: str
    segments: tuple[int, ...]
    start: float
    end: float

    @functools.cached_property
    def words(self) -> int:
        return len(words(self.text))


@dataclass(frozen=True)
class Digest:
    """The chosen sentences of one section in spoken order, with the score of each."""

    section: int
    sentences: tuple[Sentence, ...]
    ranks: tuple[float, ...]

    @property
    def text(self) -> str:
        return " ".join(sentence.text for sentence in self.sentences)

    @property
    def speakers(self) -> tuple[str, ...]:
        return tuple(sorted({sentence.speaker for sentence in self.sentences} - {UNKNOWN_SPEAKER}))

    @property
    def start(self) -> float:
        return round(min(sentence.start for sentence in self.sentences), 2)

    @property
    def end(self) -> float:
        return round(max(sentence.end for sentence in self.sentences), 2)


def digests(segments: Sequence[Segment], language: str = "en") -> list[Digest]:
    """One digest a section, in spoken order; none where no sentence is long enough. ``segments`` as for chunks."""
    found = candidates(segments, functools.partial(split.sentences, language=language))
    return [_digest(i, section, language) for i, section in enumerate(sections(found))]


def _digest(section: int, sentences: Sequence[Sentence], language: str) -> Digest:
    ranks = textrank([terms(sentence.text, language) for sentence in sentences])
    chosen = select([sentence.words for sentence in sentences], ranks)
    return Digest(
        section, tuple(sentences[i] for i in chosen), tuple(round(float(ranks[i]), RANK_DIGITS) for i in chosen)
    )


def candidates(segments: Sequence[Segment], sentences_of: Splitter) -> list[Sentence]:
    """Sentences of at least MIN_WORDS words, by the turns and the splitter of the chunks."""
    found: list[Sentence] = []
    for speaker, text, spans in _turns(segments):
        end = 0
        for sentence in sentences_of(text):
            begin = text.index(sentence, end)
            end = begin + len(sentence)
            if len(words(sentence)) >= MIN_WORDS:
                inside = tuple(position for position, first, last in spans if first < end and begin < last)
                times = segments[inside[0]].start, segments[inside[-1]].end
                found.append(Sentence(len(found), sentence, speaker, inside, *times))
    return found


Span = tuple[int, int, int]
"""Position of a segment, and where in the text of its turn it begins and ends."""


def _turns(segments: Sequence[Segment]) -> Iterator[tuple[str, str, list[Span]]]:
    """Speaker, text and segments of each turn: chunk.turns, with the characters of every segment."""
    for speaker, group in groupby(range(len(segments)), key=lambda i: segments[i].speaker):
        spoken = [(i, text) for i in group if (text := segments[i].text.strip())]
        ends = np.cumsum([len(text) + 1 for _, text in spoken]).tolist()
        if spoken:
            spans = [(i, end - len(text) - 1, end - 1) for (i, text), end in zip(spoken, ends, strict=True)]
            yield speaker, " ".join(text for _, text in spoken), spans


def sections(sentences: Sequence[Sentence]) -> list[list[Sentence]]:
    """Contiguous groups of about equal words, one for every SECTION_WORDS begun, MAX_SECTIONS at most.

    A group closes with the sentence that fills its share, unless it is the last one left: a long sentence may leave
    fewer groups than were planned, and never an empty one.
    """
    total = sum(sentence.words for sentence in sentences)
    parts = min(max(-(-total // SECTION_WORDS), 1), MAX_SECTIONS)
    groups: list[list[Sentence]] = [[]]
    size = 0
    for sentence in sentences:
        if size * parts >= total and len(groups) < parts:
            groups.append([])
            size = 0
        groups[-1].append(sentence)
        size += sentence.words
    return [group for group in groups if group]


def textrank(sentences: Sequence[Sequence[str]]) -> np.ndarray:
    """Centrality of each sentence among the others, from its terms: float64 (n), summing to one."""
    vectors = tfidf(sentences)
    links = sparse.csr_array(vectors @ vectors.T)
    links.setdiag(0)
    links.sort_indices()
    return pagerank(links)


def tfidf(sentences: Sequence[Sequence[str]]) -> sparse.csr_array:
    """(n, vocabulary) rows of unit length: tf * (ln((1 + n) / (1 + df)) + 1); a sentence without terms is zero.

    Sparse, here and below: its sums run in one order, where a dense product splits them by the number of threads.
    """
    vocabulary = {term: i for i, term in enumerate(sorted({term for some in sentences for term in some}))}
    columns = [vocabulary[term] for some in sentences for term in some]
    rows = np.repeat(np.arange(len(sentences)), [len(some) for some in sentences])
    shape = (len(sentences), len(vocabulary))
    counts = sparse.csr_array(sparse.coo_array((np.ones(len(columns)), (rows, columns)), shape))
    holding = np.bincount(counts.indices, minlength=len(vocabulary))
    counts.data *= (np.log((1 + len(sentences)) / (1 + holding)) + 1)[counts.indices]
    lengths = np.sqrt(counts.multiply(counts).sum(axis=1))
    counts.data /= np.repeat(lengths, np.diff(counts.indptr))
    return counts


def pagerank(links: sparse.csr_array) -> np.ndarray:
    """float64 (n) of a weighted graph (n, n), by power iteration from a uniform start.

    A node without links votes for all alike (Mihalcea and Tarau 2004; damping as in Brin and Page 1998).
    """
    count = links.shape[0]
    out = links.sum(axis=1)
    alone = out == 0
    votes, out = links.T.tocsr(), np.where(alone, 1, out)
    rank = np.full(count, 1 / count)
    for _ in range(ITERATIONS):
        before = rank
        rank = (1 - DAMPING) / count + DAMPING * (votes @ (before / out) + before[alone].sum() / count)
        if np.abs(rank - before).sum() < TOLERANCE:
            break
    return rank / rank.sum()


def select(lengths: Sequence[int], ranks: np.ndarray) -> list[int]:
    """Positions of the sentences of a digest, in spoken order; ``lengths`` in words.

    Best first, an equal score by order; one that would pass MAX_WORDS is skipped unless it is the first, and nothing is
    taken once TARGET_WORDS are there.
    """
    chosen: list[int] = []
    size = 0
    for i in np.argsort(-np.round(ranks, TIE_DIGITS), kind="stable").tolist():
        if size >= TARGET_WORDS:
            break
        if not chosen or size + lengths[i] <= MAX_WORDS:
            chosen.append(i)
            size += lengths[i]
    return sorted(chosen)
