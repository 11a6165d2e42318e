"""What a template may read: result documents by JSON pointer, published numbers, constants, and their formats."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
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


# Arithmetic of printed numbers: a name, and how the operands (value, rounding slack) give (value, slack).
def _ratio(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    value = a[0] / b[0]
    return value, value * (a[1] / a[0] + b[1] / b[0])


IDENTITIES: dict[str, Callable[..., tuple[float, float]]] = {
    "sum": lambda *terms: (sum(v for v, _ in terms), sum(s for _, s in terms)),
    "difference": lambda a, b: (a[0] - b[0], a[1] + b[1]),
    "ratio": _ratio,
    # a / (a + b): the part of two.
    "share": lambda a, b: (a[0] / (a[0] + b[0]), 0.0),
    # (a - b) / a: the share of a that is lost on the way to b.
    "lost_share": lambda a, b: (1 - b[0] / a[0], _ratio(b, a)[1]),
    "weighted_mean": lambda *pairs: (
        sum(n[0] * v[0] for n, v in pairs) / sum(n[0] for n, _ in pairs),
        max(v[1] for _, v in pairs),
    ),
}


def check_published() -> list[dict[str, Any]]:
    """The arithmetic of published numbers: one record per identity.

    A record: id, kind, identity (in words), printed, computed, ok, apart. ``ok`` allows for the rounding of every
    operand and of the printed result; ``about`` in published.yaml widens it where the document says "roughly".
    ``apart``: how many units of its last place the printed number lies from what the printed operands give; None for
    words and where "roughly" stands.
    """
    numbers = published()
    return [*_identities(numbers), *_six_decimals(numbers)]


def _operand(numbers: Mapping[str, dict[str, Any]], name: str) -> tuple[float, float]:
    if name not in numbers:
        return float(name), 0.0
    return numbers[name]["value"], 0.0 if "." not in numbers[name]["printed"] else step(numbers[name]["printed"])


def _identities(numbers: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    records = []
    for rule in _expanded(data("published.yaml")["identities"]):
        operands = [
            tuple(_operand(numbers, part) for part in term) if isinstance(term, list) else _operand(numbers, term)
            for term in rule["of"]
        ]
        computed, slack = IDENTITIES[rule["kind"]](*operands)
        printed = numbers[rule["id"]]["printed"]
        allowed = slack + step(printed) + rule.get("about", 0.0) + 1e-12
        ok = abs(computed - numbers[rule["id"]]["value"]) <= allowed
        records.append(
            {
                "id": rule["id"],
                "kind": rule["kind"],
                "identity": rule["says"],
                "printed": printed,
                "computed": computed,
                "ok": ok,
                "apart": None if "about" in rule else _apart(printed, numbers[rule["id"]]["value"], computed),
            }
        )
    return records


def _apart(printed: str, value: float, computed: float) -> int | None:
    """Units of the last place of ``printed`` between it and ``computed``, rounded to that place."""
    unit = 2 * step(printed)
    return abs(round((computed - value) / unit)) if unit else None


def tally_published(document: str) -> list[dict[str, Any]]:
    """How exactly one document adds up, by identity: numbers printed ``exact``, ``one`` last digit off, or ``more``."""
    found: dict[str, list[dict[str, Any]]] = {}
    for record in check_published():
        if record["id"].startswith(f"{document}.") and record["apart"] is not None:
            found.setdefault(record["identity"], []).append(record)
    every = {**found, "all": [record for some in found.values() for record in some]}
    return [{"identity": name, **_tally(some)} for name, some in every.items()]


def _tally(records: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    apart = [record["apart"] for record in records]
    beyond = sum(not record["ok"] for record in records)
    return {"checked": len(apart), "exact": apart.count(0), "one": apart.count(1),
            "more": sum(each > 1 for each in apart), "beyond_rounding": beyond}  # fmt: skip


def _expanded(rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A rule with ``rows`` or ``columns`` stands for one rule each, ``{row}`` and ``{column}`` replaced in its ids."""

    def fill(value: Any, row: str, column: str) -> Any:
        if isinstance(value, str):
            return value.replace("{row}", row).replace("{column}", column)
        if isinstance(value, list):
            return [fill(item, row, column) for item in value]
        return {k: fill(v, row, column) for k, v in value.items()} if isinstance(value, dict) else value

    return [
        fill({k: v for k, v in rule.items() if k not in ("rows", "columns")}, row, column)
        for rule in rules
        for row in rule.get("rows", [""])
        for column in rule.get("columns", [""])
    ]


def _six_decimals(numbers: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Each printed number against the committed six-decimal one: it must round to what was printed."""
    return [
        {
            "id": name,
            "kind": "rounding",
            "identity": "committed value rounds to the printed one",
            "printed": record["printed"],
            "computed": record["spec"],
            "ok": abs(record["spec"] - record["value"]) <= step(record["printed"]) + 1e-12,
            "apart": None,
        }
        for name, record in numbers.items()
        if record["spec"] is not None
    ]
