"""The terms of a sentence for lexical centrality: words without stop words, reduced to Snowball stems."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import re
from collections.abc import Callable

MARK = re.compile(r"\{[^{}]*\}")
"""A transcriber's mark, as in QMSum's ``{disfmarker}``: no speech, and far the most frequent "word" of its meetings."""
WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*|\d+")

FILLERS = frozenset({
    "ah", "aha", "alright", "eh", "er", "erm", "hm", "hmm", "huh", "mhm", "mm", "mmm", "oh", "ok", "okay", "right",
    "uh", "uhhuh", "um", "well", "yeah", "yep", "yes",
})  # fmt: skip
"""Spoken English that carries no topic; ours."""

STOP_WORDS = {
    "da": "DANISH", "de": "GERMAN", "en": "EN_PLUS", "es": "SPANISH", "fr": "FRENCH", "it": "ITALIAN", "nl": "DUTCH",
    "no": "NORWEGIAN", "pt": "PORTUGUESE", "ru": "RUSSIAN", "sv": "SWEDISH", "tr": "TURKISH", "zh": "CHINESE",
}  # fmt: skip
"""Language to the list of bm25s; English is NLTK's list there, and the fillers join it."""
STEMMERS = {
    "ar": "arabic", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish",
    "et": "estonian", "fi": "finnish", "fr": "french", "hi": "hindi", "it": "italian", "nl": "dutch",
    "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sv": "swedish",
    "tr": "turkish",
}  # fmt: skip


@functools.cache
def _stop_words(language: str) -> frozenset[str]:
    # Imported where it is used: the package takes a second, and whoever reads digest rows needs none of it.
    lists = importlib.import_module("bm25s.stopwords")
    found = getattr(lists, f"STOPWORDS_{STOP_WORDS[language]}") if language in STOP_WORDS else ()
    return frozenset(found) | (FILLERS if language == "en" else frozenset())


@functools.cache
def _stemmer(language: str) -> Callable[[str], str]:
    """The Snowball stemmer of a language, with a memory; a language without one keeps its words as they are.

    The class is named rather than asked of the package, which hands the work to a C library of another version where
    one is installed.
    """
    if language not in STEMMERS:
        return str
    name = STEMMERS[language]
    kind = getattr(importlib.import_module(f"snowballstemmer.{name}_stemmer"), f"{name.title()}Stemmer")
    return functools.cache(kind().stemWord)


def terms(text: str, language: str = "en") -> list[str]:
    """Stems in order: runs of letters (apostrophes inside) or of digits, longer than one character, no stop word."""
    stop, stem = _stop_words(language), _stemmer(language)
    spoken = MARK.sub(" ", text.lower()).replace("\u2019", "'")
    return [stem(word) for word in WORD.findall(spoken) if len(word) > 1 and word not in stop]


def provenance() -> dict[str, str]:
    """Versions of the two packages whose data decides what a term is."""
    return {name: importlib.metadata.version(name) for name in ("bm25s", "snowballstemmer")}
