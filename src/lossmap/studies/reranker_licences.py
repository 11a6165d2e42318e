"""Which re-rankers may serve the stage: facts are data (reranker_licences.yaml), and rules derive the verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from lossmap.errors import LossmapError
from lossmap.layout import Layout

NAME = "reranker_licences.yaml"
FIELDS = ("candidate", "parameters", "claimed", "evidenced", "evidence", "architecture", "remote_code", "service",
          "in_use", "note", "source")  # fmt: skip
EVIDENCE = ("licence-file", "card", "registry", "own", "none")
ARCHITECTURES = ("cross-encoder", "bi-encoder", "generative", None)
PERMISSIVE = "permissive"
REJECTED, OTHER, SHIPPABLE = "rejected", "not a cross-encoder", "shippable"
Fields = Mapping[str, Any]


@dataclass(frozen=True)
class Rule:
    """``breaks`` says whether a candidate, with the family of its licence, breaks it; the first broken rule decides."""

    name: str
    verdict: str
    reason: str
    breaks: Callable[[Fields, str | None], bool]


RULES = (
    Rule("service", REJECTED, "reached over a network", lambda c, _: c["service"] is not False),
    Rule("evidence", REJECTED, "no licence was read", lambda c, _: c["evidenced"] is None or c["evidence"] == "none"),
    Rule("licence", REJECTED, "its licence is {family}", lambda _, family: family != PERMISSIVE),
    Rule("remote-code", REJECTED, "loading it runs code of its publisher", lambda c, _: c["remote_code"] is not False),
    Rule("architecture", OTHER, "{architecture}: no score of a pair read together",
         lambda c, _: c["architecture"] != "cross-encoder"),
)  # fmt: skip
PASSED = "licence permissive, no code of its publisher, a cross-encoder"


def study(at: Layout, chapter: str) -> dict[str, Any]:
    """reranker_licences.json: the registered candidates with their verdicts, and how many have each."""
    with open(at.root / "workflow" / "config" / NAME, encoding="utf-8") as handle:
        book = yaml.safe_load(handle)
    rows = [judged(candidate, book["families"]) for candidate in book["candidates"]]
    tally = Counter(row["verdict"] for row in rows)
    rules = [{"rule": rule.name, "verdict": rule.verdict, "reason": rule.reason} for rule in RULES]
    return {"rows": rows, "rules": rules, "verdicts": {name: tally[name] for name in (SHIPPABLE, OTHER, REJECTED)}}


def judged(candidate: Fields, families: Mapping[str, list[str]]) -> dict[str, Any]:
    """The fields of a candidate with what follows from them: licence family, drop_in, verdict, rule and reason.

    The licence that was read decides, and ``agrees`` says whether the claimed one is the same. Raises (exit 2) on a
    field that is missing or unknown, and on a licence of no family.
    """
    _check(candidate)
    family = _family(candidate, families)
    rule = next((rule for rule in RULES if rule.breaks(candidate, family)), None)
    reason = rule.reason.format(family=family, architecture=candidate["architecture"]) if rule else PASSED
    return {
        **candidate,
        "family": family,
        "agrees": candidate["evidenced"] == candidate["claimed"] if candidate["evidenced"] else None,
        "drop_in": _drop_in(candidate["architecture"], candidate["remote_code"]),
        "verdict": rule.verdict if rule else SHIPPABLE,
        "rule": rule.name if rule else None,
        "reason": reason,
    }


def _drop_in(architecture: str | None, remote_code: bool | None) -> bool | None:
    """Whether it could take the place of a cross-encoder as it is; None where that is not known."""
    known = None if architecture is None else architecture == "cross-encoder"
    return False if known is False or remote_code else None if None in (known, remote_code) else True


def _family(candidate: Fields, families: Mapping[str, list[str]]) -> str | None:
    licence = candidate["evidenced"]
    found = [family for family, licences in families.items() if licence in licences]
    if licence and not found:
        known = sorted(known for licences in families.values() for known in licences)
        raise _refusal("a licence of no family", candidate["candidate"], licence, known)
    return found[0] if found else None


def _check(candidate: Fields) -> None:
    name = candidate.get("candidate", "a candidate without a name")
    if set(candidate) != set(FIELDS):
        raise _refusal("the fields of a candidate are not those of the registry", name, sorted(candidate), FIELDS)
    for field, known in (("evidence", EVIDENCE), ("architecture", ARCHITECTURES)):
        if candidate[field] not in known:
            raise _refusal(f"unknown {field}", name, candidate[field], known)


def _refusal(what: str, where: str, observed: object, expected: object) -> LossmapError:
    mend = f"mend workflow/config/{NAME}"
    return LossmapError(what, where=where, observed=observed, expected=expected, next_command=mend, exit_code=2)
