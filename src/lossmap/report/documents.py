"""What a template may read: result documents by JSON pointer, published numbers, constants, and their formats."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from lossmap import canon, settings
from lossmap.errors import LossmapError

VERDICTS = {"gain": "+", "loss": "\N{MINUS SIGN}", "open": "o"}
FORMATS: dict[str, Callable[[Any], str]] = {
    "int": lambda value: f"{round(value):,}",
    "f1": lambda value: f"{value:.1f}",
    "f2": lambda value: f"{value:.2f}",
    "f3": lambda value: f"{value:.3f}",
    "f4": lambda value: f"{value:.4f}",
    "f6": lambda value: f"{value:.6f}",
    "g6": lambda value: f"{value:.6g}",
    "signed4": lambda value: f"{value:+.4f}".replace("-", "\N{MINUS SIGN}"),
    "pct0": lambda value: f"{100 * value:.0f}%",
    "pct1": lambda value: f"{100 * value:.1f}%",
    "pct3": lambda value: f"{100 * value:.3f}%",
    "taken": lambda value: f"{-value:,}",
    "interval": lambda value: f"[{value[0]:.4f}, {value[1]:.4f}]",
    "signed_interval": lambda value: f"[{value[0]:+.4f}, {value[1]:+.4f}]".replace("-", "\N{MINUS SIGN}"),
    # Of a control's mean, in percent already.
    "percent": lambda value: f"{value:+.1f}%".replace("-", "\N{MINUS SIGN}"),
    "percent_interval": lambda value: f"[{value[0]:+.1f}%, {value[1]:+.1f}%]".replace("-", "\N{MINUS SIGN}"),
    "signed2": lambda value: f"{value:+.2f}".replace("-", "\N{MINUS SIGN}"),
    "signed_interval2": lambda value: f"[{value[0]:+.2f}, {value[1]:+.2f}]".replace("-", "\N{MINUS SIGN}"),
    # Of a measure between 0 and 1, in points of a hundred.
    "points": lambda value: f"{100 * value:.2f}",
    "signed_points": lambda value: f"{100 * value:+.2f}".replace("-", "\N{MINUS SIGN}"),
    "points_interval": lambda value: f"[{100 * value[0]:+.2f}, {100 * value[1]:+.2f}]".replace("-", "\N{MINUS SIGN}"),
    "g3": lambda value: f"{value:.3g}",
    "hash": lambda value: str(value)[:10],
    "list": lambda value: ", ".join(map(str, value)),
    "count": lambda value: f"{len(value):,}",
    "tally": lambda value: ", ".join(f"{count:,} {name}" for name, count in value.items()),
    "verdicts": lambda value: " ".join(VERDICTS[row["verdict"]] for row in value),
    "turned": lambda value: "yes" if any(part["flips"] for part in value) else "no" if value else ABSENT,
    "yesno": lambda value: "yes" if value else "no",
    "code": str,
    "text": str,
}
ABSENT = "–"
NOT_OBTAINED = "not obtained"
NUMBER = re.compile(r"[+\N{MINUS SIGN}]?[\d,.]+%?")
SHARE = re.compile(r"([\d,]+)/([\d,]+)")


def formatted(value: Any, form: str) -> str:
    """``value`` as text; None is a dash, never a zero."""
    return ABSENT if value is None else FORMATS[form](value)


def paper_folder() -> Path:
    return settings.load().root / "paper"


@functools.cache
def _yaml(path: Path) -> Any:
    with open(path, encoding="utf-8") as handle:
        return yaml.safe_load(handle)


def data(name: str) -> Any:
    """A YAML file of the folder paper/."""
    return _yaml(paper_folder() / name)


def resolve(document: Any, pointer: str, where: object) -> Any:
    """The value at a JSON pointer (RFC 6901). Raises LossmapError naming ``where`` and the part that is absent."""
    value = document
    for part in pointer.split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        try:
            value = value[int(part)] if isinstance(value, list) else value[part]
        except (KeyError, IndexError, ValueError, TypeError):
            known = sorted(value) if isinstance(value, Mapping) else type(value).__name__
            raise LossmapError(
                f"a result has no '{part}'",
                where=f"{where}#{pointer}",
                observed=known,
                next_command="correct the pointer in paper/claims.yaml or paper/tables/, or rerun the stage",
            ) from None
    return value


def holds(document: Any, pointer: str) -> bool:
    """Whether there is anything at a JSON pointer; null is something."""
    try:
        resolve(document, pointer, "")
    except LossmapError:
        return False
    return True


class Results:
    """Result files below one root, read once; ``used`` holds those that a claim, a table or a figure showed."""

    def __init__(self, root: Path) -> None:
        self.root = Path(root)
        self.used: set[str] = set()
        self._cache: dict[str, Any] = {}

    def json(self, name: str) -> Any:
        """The parsed document ``name`` (relative to the root, e.g. ``stage1/index.json``)."""
        if name not in self._cache:
            if not (self.root / name).is_file():
                stage = name.split("/")[0]
                raise LossmapError(
                    "a result is missing", where=self.root / name, next_command=f"./run {self.root / stage}"
                )
            self._cache[name] = canon.read_json(self.root / name)
        return self._cache[name]

    def not_obtained(self) -> str | None:
        """Why the corpus of Stage 1 could not be had; None where it was."""
        card = self.json("stage1/corpus.json")
        return None if card.get("obtained", True) else str(card["reason"])

    def arms(self, stage: str) -> list[tuple[str, str, Any]]:
        """(arm id, file name, metrics document) for every arm of a stage, in the order of paper/claims.yaml."""
        order = {arm: place for place, arm in enumerate(data("claims.yaml")["arm_order"])}
        found = [path.parent.name for path in (self.root / stage / "arms").glob("*/metrics.json")]
        names = sorted(found, key=lambda arm: (order.get(arm, len(order)), arm))
        return [(arm, name := f"{stage}/arms/{arm}/metrics.json", self.json(name)) for arm in names]


def number(printed: str) -> float:
    """A number as a document printed it: thousands commas, a sign, a percent sign and ``3/4`` are understood."""
    if share := SHARE.fullmatch(printed):
        return number(share[1]) / number(share[2])
    bare = printed.replace(",", "").replace("\N{MINUS SIGN}", "-").rstrip("%")
    return float(bare) / (100 if printed.endswith("%") else 1)


def step(printed: str) -> float:
    """Half a unit in the last printed place: the rounding that a printed number may hide; 0 for words."""
    if not NUMBER.fullmatch(printed):
        return 0.0
    decimals = len(printed.rstrip("%").partition(".")[2])
    return 0.5 * 10.0**-decimals / (100 if printed.endswith("%") else 1)


@functools.cache
def published() -> dict[str, dict[str, Any]]:
    """Every published number: id -> {printed, value, source, spec}.

    Raises LossmapError where paper/published.yaml breaks its schema.
    """
    book = data("published.yaml")
    schema = _yaml(settings.load().root / "workflow" / "schemas" / "published.schema.yaml")
    try:
        jsonschema.validate(book, schema)
    except jsonschema.ValidationError as error:
        place = "/".join(map(str, error.absolute_path))
        raise LossmapError("published.yaml breaks its schema", where=place, observed=error.message) from None
    numbers: dict[str, dict[str, Any]] = {}
    for table in book["tables"]:
        for row, cells in table["rows"].items():
            for column, printed in zip(table["columns"], cells, strict=True):
                numbers[f"{table['id']}.{row}.{column}"] = _number(printed, table["source"])
    for fact in book["facts"]:
        numbers[fact["id"]] = _number(fact["printed"], fact["source"], fact.get("value"))
    for table in book["six_decimals"]:
        _add_committed(numbers, table)
    return numbers


def _add_committed(numbers: dict[str, dict[str, Any]], table: Mapping[str, Any]) -> None:
    """Six-decimal values: beside the printed number, or numbers of their own where a table names another source."""
    for row, cells in table["rows"].items():
        for column, exact in zip(table["columns"], cells, strict=True):
            name = f"{table['id']}.{row}.{column}"
            if "source" in table:
                numbers[name] = _number(f"{exact:.6f}", table["source"])
            else:
                numbers[name]["spec"] = exact


def _number(printed: str, source: Mapping[str, str], value: float | None = None) -> dict[str, Any]:
    if value is None and (NUMBER.fullmatch(printed) or SHARE.fullmatch(printed)):
        value = number(printed)
    return {"printed": printed, "value": value, "source": source, "spec": None}
