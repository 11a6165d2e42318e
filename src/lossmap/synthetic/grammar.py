"""Templates compiled once into pieces: literal text, slots that a speaker fills, and choices between parts.

In a template ``{name}`` is a block of phrases.yaml or else a slot, and ``(a|b|)`` one of its parts, which may be empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

import yaml

from lossmap.errors import LossmapError
from lossmap.synthetic.pools import FOLDER

TOKEN = re.compile(r"\{(\w+)\}|([(|)])")
BARE = re.compile(r"[.,;:?!]| (?:is|was|has) ")  # what may follow a project's bare name (render.py says why)
NAMED = ("topic", "other")


@dataclass(frozen=True)
class Slot:
    name: str


@dataclass
class Pick:
    """One of ``options``; a speaker remembers what a named block gave last, so as not to say it twice running."""

    name: str
    options: list[tuple[Piece, ...]] = field(default_factory=list)


Piece = str | Slot | Pick
Template = tuple[Piece, ...]


@dataclass(frozen=True)
class Thing:
    """A noun with article, the verbs that go with it as (base, -ing, past), and whether it is plural."""

    text: str
    verbs: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Lexicon:
    ones: tuple[Thing, ...]
    manys: tuple[Thing, ...]


class Compiler:
    """Turns template text into pieces; an unknown name raises LossmapError with its line."""

    def __init__(self, blocks: Mapping[str, str], slots: frozenset[str]) -> None:
        self._slots = slots
        self._picks = {name: Pick(name) for name in blocks}
        for name, text in blocks.items():
            self._picks[name].options.extend(self.template(line) for line in text.splitlines())

    def template(self, line: str) -> Template:
        parts, rest = self._parts(line, 0, line)
        if rest != len(line) or len(parts) != 1:
            raise self._wrong(line, "a closing parenthesis or a bar outside of parentheses", "balanced (a|b)")
        return parts[0]

    def _parts(self, line: str, at: int, whole: str) -> tuple[list[Template], int]:
        """The alternatives from ``at`` to the closing parenthesis or the end of the line, and where they end."""
        parts: list[list[Piece]] = [[]]
        while match := TOKEN.search(line, at):
            self._literal(parts[-1], line[at : match.start()])
            at = match.end()
            if match[1]:
                parts[-1].append(self._named(match[1], line, at))
            elif match[2] == "(":
                inner, at = self._parts(line, at, whole)
                if line[at - 1 : at] != ")":
                    raise self._wrong(whole, "an open parenthesis", "balanced (a|b)")
                parts[-1].append(Pick("", inner))
            elif match[2] == "|":
                parts.append([])
            else:
                return [tuple(part) for part in parts], at
        self._literal(parts[-1], line[at:])
        return [tuple(part) for part in parts], len(line)

    @staticmethod
    def _literal(part: list[Piece], text: str) -> None:
        if text:
            part.append(text)

    def _named(self, name: str, line: str, after: int) -> Piece:
        if name in self._picks:
            return self._picks[name]
        if name in NAMED and BARE.match(line, after):
            name += "_bare"
        if name not in self._slots:
            raise self._wrong(line, f"{{{name}}}", "a block of phrases.yaml or a slot of speech.py")
        return Slot(name)

    @staticmethod
    def _wrong(line: str, observed: str, expected: str) -> LossmapError:
        return LossmapError("a template cannot be read", where=line, observed=observed, expected=expected)


def _document(name: str) -> dict[str, object]:
    document: dict[str, object] = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    return document


@cache
def lexicon() -> Lexicon:
    """The things that people talk about, each with the verbs of its class."""
    ones, manys = [], []
    classes: dict[str, dict[str, str]] = _document("phrases.yaml")["classes"]  # type: ignore[assignment]
    for words in classes.values():
        verbs = tuple(tuple(line.split("|")) for line in words["verbs"].splitlines())
        ones += [Thing(f"the {noun}", verbs) for noun in words["one"].splitlines()]  # type: ignore[arg-type]
        manys += [Thing(f"the {noun}", verbs) for noun in words["many"].splitlines()]  # type: ignore[arg-type]
    return Lexicon(tuple(ones), tuple(manys))


@cache
def templates(register: str, slots: frozenset[str]) -> dict[str, tuple[Template, ...]]:
    """The templates of a register by their path in its file, such as ``ask.when.q``."""
    blocks: dict[str, str] = _document("phrases.yaml")["blocks"]  # type: ignore[assignment]
    compiler = Compiler(blocks, slots)
    return {
        path: tuple(compiler.template(line) for line in text.splitlines())
        for path, text in _leaves(_document(f"speech_{register}.yaml"), "")
    }


def _leaves(tree: Mapping[str, object], path: str) -> Iterator[tuple[str, str]]:
    for name, value in tree.items():
        if isinstance(value, str):
            yield path + name, value
        elif isinstance(value, Mapping):
            yield from _leaves(value, f"{path}{name}.")
