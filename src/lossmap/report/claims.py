"""Claims: every number that a sentence may use, where it stands and which rule wrote it."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from lossmap import canon, transcript
from lossmap.errors import LossmapError
from lossmap.report import arithmetic, documents, ledger

NAME = "claims.json"


def build(results_root: Path, stages: list[str], out: Path) -> dict[str, Any]:
    """Write claims.json: claim id -> {value, unit, format, file, pointer, rule, sha256, tier}.

    Scalars and lists come from paper/claims.yaml, the families ``<stage>.<arm>.<corpus>.<class>.<measure>`` from the
    metrics document of every arm. Every stage is checked against its ledger first.
    """
    results = documents.Results(results_root)
    found: dict[str, Any] = {}
    for stage in stages:
        entries = ledger.check(Path(results_root) / stage)["entries"]
        for name, record in [*_scalars(results, stage), *_lists(results, stage), *_arms(results, stage)]:
            source = entries.get(record["file"].removeprefix(f"{stage}/"))
            if source is None:
                _unledgered(name, record["file"], stage)
            found[name] = {**record, "rule": source["rule"], "sha256": source["sha256"]}
    canon.write_json(out, found)
    return found


def _unledgered(name: str, file: str, stage: str) -> NoReturn:
    raise LossmapError(
        f"claim '{name}' reads a file without a ledger entry",
        where=file,
        next_command=f"./run --forcerun {stage} results/{stage}",
    )


def _record(results: documents.Results, file: str, pointer: str, form: str, unit: str, tier: str) -> dict[str, Any]:
    try:
        value = documents.resolve(results.json(file), pointer, file)
    except LossmapError:
        if results.not_obtained() is None:
            raise
        value = None
    return {"value": value, "unit": unit, "format": form, "file": file, "pointer": pointer, "tier": tier}


def _scalars(results: documents.Results, stage: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, spec in documents.data("claims.yaml")["scalars"].items():
        if spec["file"].split("/")[0] == stage and _there(results, spec):
            # A document about one corpus carries that corpus's licence tier; one about the instrument carries none.
            tier = results.json(spec["file"]).get("tier", "A")
            yield name, _record(results, spec["file"], spec["pointer"], spec["format"], spec["unit"], tier)


def _lists(results: documents.Results, stage: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """One claim per field of every item of a list; the id is filled from the item's own fields.

    ``explode`` names a list inside each item: its members are the items then, with the outer fields beside theirs.
    ``absent``: fields that an item may lack; it then has no such claim. ``where`` keeps the items of these values.
    """
    for spec in documents.data("claims.yaml")["lists"]:
        file, pointer = spec["file"], spec["pointer"]
        if file.split("/")[0] != stage or not _there(results, spec):
            continue
        for place, outer in enumerate(_listed(results, file, pointer)):
            asked = spec.get("where", {}).items() <= outer.items()
            for tail, item in _parts(outer, spec.get("explode")) if asked else []:
                tier = transcript.worst([outer.get("tier", "A"), item.get("tier", "A")])
                for field, form in spec["fields"].items():
                    if field in spec.get("absent", ()) and not documents.holds(item, f"/{field}"):
                        continue
                    record = _record(results, file, f"{pointer}/{place}{tail}/{field}", form, field, tier)
                    yield f"{spec['id'].format(**item)}.{field}", record


def _there(results: documents.Results, spec: Mapping[str, Any]) -> bool:
    """Whether a scale has the file; only one marked ``optional`` may be missing."""
    return not spec.get("optional") or (results.root / spec["file"]).is_file()


def _parts(outer: Mapping[str, Any], explode: str | None) -> list[tuple[str, Mapping[str, Any]]]:
    """(rest of the pointer, fields) of an item, or of each member of its list ``explode``."""
    if explode is None:
        return [("", outer)]
    return [(f"/{explode}/{place}", {**outer, **part}) for place, part in enumerate(outer.get(explode, []))]


def _listed(results: documents.Results, file: str, pointer: str) -> list[Any]:
    """The items of a list; none where the corpus that it describes could not be had."""
    try:
        return documents.resolve(results.json(file), pointer, file)
    except LossmapError:
        if results.not_obtained() is None:
            raise
        return []


def _arms(results: documents.Results, stage: str) -> Iterator[tuple[str, dict[str, Any]]]:
    control = documents.data("claims.yaml")["controls"].get(stage)
    for arm, file, document in results.arms(stage):
        for place, row in enumerate(document["rows"]):
            tail = f"{row['corpus']}.{row['query_class']}"
            for name, pointer, form, unit in _row_fields(row, f"/rows/{place}"):
                record = _record(results, file, pointer, form, unit, row["tier"])
                yield f"{stage}.{arm}.{tail}.{name}", record
                if arm == control:
                    yield f"{stage}.{tail}.{name}", record


def _row_fields(row: Mapping[str, Any], base: str) -> Iterator[tuple[str, str, str, str]]:
    """(claim suffix, pointer, format, unit) of every number of a metrics row."""
    for name in ("queries", "empty", "unanswered"):
        yield name, f"{base}/{name}", "int", "queries"
    for name, measure in documents.data("claims.yaml")["measures"].items():
        yield name, f"{base}/metrics/{measure}", "f4", measure
        if measure in row.get("intervals", {}):
            meetings = f"{base}/intervals/{measure}/meetings"
            yield f"{name}.interval", meetings, "interval", measure
            yield f"{name}.lo", f"{meetings}/0", "f4", measure
            yield f"{name}.hi", f"{meetings}/1", "f4", measure
        if measure in row.get("ceilings", {}):
            yield f"{name}.ceiling", f"{base}/ceilings/{measure}", "f4", measure


def site() -> str:
    """``file:line`` of the template that is being rendered, found on the stack of its compiled code."""
    frame = sys._getframe(1)
    while frame is not None:
        template = frame.f_globals.get("__jinja_template__")
        if template is not None:
            return f"{template.filename or template.name}:{template.get_corresponding_lineno(frame.f_lineno)}"
        frame = frame.f_back
    return "outside a template"


def unknown(kind: str, name: str, known: Iterable[str], mend: str) -> NoReturn:
    """Raise for an id that nobody defined, with the nearest ids that exist."""
    near = difflib.get_close_matches(name, list(known), n=3, cutoff=0.4)
    raise LossmapError(
        f"unknown {kind} '{name}'",
        where=site(),
        expected=f"one of the known ids; nearest: {', '.join(near) or 'none'}",
        next_command=mend,
    )


class Book:
    """The claims of one results root, as templates use them; it remembers what was used, for appendix and checks.

    ``public`` refuses tier-B sources. ``digests`` (rule -> present code digest) marks results of other code.
    """

    def __init__(self, results_root: Path, public: bool = True, digests: Mapping[str, str] | None = None) -> None:
        self.results = documents.Results(results_root)
        self.public = public
        self.stages = ledger.stages(results_root)
        self.entries: dict[str, Any] = {}
        scales = set()
        for stage in self.stages:
            document = ledger.check(Path(results_root) / stage)
            scales.add(document["scale"])
            self.entries.update({f"{stage}/{name}": record for name, record in document["entries"].items()})
        if len(scales) != 1:
            raise LossmapError(
                "the results to render are of no scale or of several",
                where=results_root,
                observed=sorted(scales) or "no stage directory with a ledger",
                next_command="./run results/stage1",
            )
        self.scale = scales.pop()
        self.claims = canon.read_json(Path(results_root) / NAME)
        self.stale = set(ledger.stale(self.entries, digests)) if digests is not None else set()
        self.used: dict[str, dict[str, Any]] = {}

    @property
    def corpus(self) -> str:
        """The key of the corpus that Stage 1 scores: smoke scale has a corpus of its own."""
        return str(self.results.json("stage1/corpus.json")["key"])

    @property
    def not_obtained(self) -> str | None:
        """The reason why the numbers of this book could not be had; its sentences then say "not obtained"."""
        return self.results.not_obtained()

    def allow(self, file: str, tier: str = "A") -> str:
        """``file`` when it may be shown: ledgered, and of a publishable tier in a public target."""
        if file not in self.entries:
            _unledgered(f"used at {site()}", file, file.split("/")[0])
        if self.public and tier != "A":
            raise LossmapError(
                "a tier-B source in a public target",
                where=f"{site()} ({file})",
                observed=f"licence tier {tier}",
                expected="licence tier A",
                next_command="leave its corpus out of this scale",
            )
        self.results.used.add(file)
        return file

    def record(self, name: str) -> dict[str, Any]:
        """The claim ``name``, compared with the file it points into, and noted as used."""
        if name not in self.claims and self.not_obtained:
            return {"value": None, "format": "text", "file": "stage1/corpus.json", "tier": "A"}
        if name not in self.claims:
            unknown("claim", name, self.claims, "use a known id, or add it to paper/claims.yaml")
        claim = self.claims[name]
        file = self.allow(claim["file"], claim["tier"])
        absent = claim["value"] is None and self.not_obtained
        present = None if absent else documents.resolve(self.results.json(file), claim["pointer"], file)
        if claim["sha256"] != self.entries[file]["sha256"] or present != claim["value"]:
            raise LossmapError(
                f"claim '{name}' does not match its source",
                where=f"{site()} ({file}#{claim['pointer']})",
                observed=claim["value"],
                expected=present,
                next_command="./run --forcerun claims",
            )
        self.used[name] = claim
        # A count of nothing is no measurement: without the corpus every number of its chapters is "not obtained".
        counted = self.not_obtained and not isinstance(claim["value"], str)
        return {**claim, "value": None} if counted else claim

    def _published(self, name: str) -> dict[str, Any]:
        numbers = documents.published()
        if name not in numbers:
            unknown("published number", name, numbers, "use a known id, or add it to paper/published.yaml")
        return numbers[name]

    def value(self, name: str) -> Any:
        """The unrounded value of a claim, of a published number (``000.`` ids) or of a constant."""
        if name in documents.data("constants.yaml"):
            return documents.data("constants.yaml")[name]["value"]
        return self._published(name)["value"] if name[:3].isdigit() else self.record(name)["value"]

    def has(self, name: str) -> bool:
        """Whether there is such a claim: a scale may leave an arm out that another asks."""
        return name in self.claims

    def claim(self, name: str, form: str | None = None) -> str:
        """A measured number as text, in the claim's own format unless ``form`` names another."""
        record = self.record(name)
        return self._text(record["value"], form or record["format"])

    def resolve(self, file: str, pointer: str) -> Any:
        """What a pointer finds; nothing where the corpus that it describes could not be had."""
        try:
            return documents.resolve(self.results.json(file), pointer, file)
        except LossmapError:
            if self.not_obtained is None:
                raise
            return []

    def _text(self, value: Any, form: str) -> str:
        return documents.NOT_OBTAINED if value is None and self.not_obtained else documents.formatted(value, form)

    def published(self, name: str) -> str:
        """A cited number exactly as its document printed it."""
        return self._published(name)["printed"]

    def tally(self, document: str, part: str, count: str = "checked") -> str:
        """How many identities of a part of a cited document are ``checked``, or ``exact``, ``one``, ``more`` last
        digits off, or ``beyond_rounding``."""
        rows = {row["part"]: row for row in arithmetic.tally_published(document)}  # the last of a part is its whole
        if part not in rows:
            unknown("part", part, rows, "use a part that an identity of paper/published.yaml names")
        return documents.formatted(rows[part][count], "int")

    def constant(self, name: str) -> str:
        """A number that no rule measures; its reason stands in paper/constants.yaml."""
        constants = documents.data("constants.yaml")
        if name not in constants:
            unknown("constant", name, constants, "use a known id, or add it to paper/constants.yaml with a reason")
        return str(constants[name]["value"])

    def direction(
        self, first: str, second: str, above: str = "higher", below: str = "lower", level: str = "the same"
    ) -> str:
        """The word for ``first`` against ``second``: above, below, or level where both print alike at four places."""
        values = [self.value(name) for name in (first, second)]
        if None in values:
            return self._text(None, "text")
        a, b = (round(value, 4) for value in values)
        return level if a == b else above if a > b else below

    def ratio(self, first: str, second: str, form: str = "f2") -> str:
        """``first`` over ``second`` on unrounded values, rounded once."""
        part, divisor = self.value(first), self.value(second)
        return self._text(part / divisor if divisor and part is not None else None, form)

    def gap(self, first: str, second: str, form: str = "signed4") -> str:
        """``first`` minus ``second`` on unrounded values, rounded once."""
        values = [self.value(name) for name in (first, second)]
        return self._text(None if None in values else values[0] - values[1], form)

    def share(self, part: str, whole: str, form: str = "pct1") -> str:
        """``part`` as a share of ``whole``."""
        return self.ratio(part, whole, form)

    def helpers(self) -> dict[str, Any]:
        """What a template calls, by name."""
        names = ("claim", "has", "value", "published", "tally", "constant", "direction", "ratio", "gap", "share")
        known = {"scale": self.scale, "corpus": self.corpus, "stages": self.stages}
        return {name: getattr(self, name) for name in names} | known
