"""The licence gate: what was accepted, which tier passes, and whether the evidence still says what was read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lossmap import canon
from lossmap.corpora import registry
from lossmap.corpora.registry import Stanza
from lossmap.errors import LossmapError

ACCEPT_VARIABLE = "LOSSMAP_ACCEPT_LICENSES"


def accepted(flag: bool) -> bool:
    """Whether licences were accepted, by the flag or by the environment (set and neither empty nor 0)."""
    return flag or os.environ.get(ACCEPT_VARIABLE, "0") not in ("", "0")


def describe(stanza: Stanza) -> str:
    """The trail of one corpus: tier, licence, evidence, and every claim that was made elsewhere."""
    lines = [f"{stanza.key}: {stanza.name} {stanza.version}, tier {stanza.tier}, {stanza.licence}"]
    lines += [f"    evidence {item['file']}: {item['says']}" for item in stanza.evidence]
    for claim in stanza.claims:
        verdict = "agrees" if claim["agrees"] else "DISAGREES"
        lines.append(f"    {verdict}: {claim['where']}: {claim['says']}")
    return "\n".join(lines)


def print_list(stanzas: Iterable[Stanza]) -> None:
    for stanza in stanzas:
        print(describe(stanza))


def passes(stanza: Stanza, accept_noncommercial: bool) -> bool:
    """Tier A always; tier B for internal use only where that was asked for; tier C never."""
    return stanza.tier == "A" or (stanza.tier == "B" and accept_noncommercial)


def check_evidence(stanza: Stanza, folder: Path) -> None:
    """Raise where a licence file under ``folder`` is not the one that was read when the stanza was written."""
    for item in stanza.evidence:
        path = folder / item["file"]
        if not path.is_file():
            raise LossmapError(
                "a corpus has not been fetched",
                where=path,
                next_command=f"./run lossmap corpora fetch --accept-licenses --only {stanza.key}",
            )
        observed = canon.file_sha256(path)
        if observed != item["sha256"]:
            raise LossmapError(
                "the licence evidence changed: read it again, then update its hash in workflow/config/corpora.yaml",
                where=f"{stanza.key}: {item['file']}",
                observed=observed,
                expected=item["sha256"],
                next_command=f"read the file, mend the stanza, then `./run lossmap corpora lock --only {stanza.key}`",
            )


def trail(stanza: Stanza) -> dict[str, object]:
    """Licence fields of a corpus card: evidence with hashes and the claims beside it."""
    return {
        "tier": stanza.tier,
        "licence": stanza.licence,
        "evidence": list(stanza.evidence),
        "claims": list(stanza.claims),
    }


def licence_rows() -> list[dict[str, Any]]:
    """The registry as a table of claims: what was claimed where, what the corpus's own terms say, by which evidence.

    key, name, tier, where, claimed, actual, evidence, agrees, case ("published": one of the four misrepresentations
    that the seed counts; else None). A corpus about whose terms nothing is claimed elsewhere has one row without a
    claim (where, claimed and agrees are None). Sorted by key, claims as registered.
    """
    unclaimed = {"where": None, "says": None, "agrees": None}
    return [_claim_row(stanza, claim) for stanza in registry.load().values() for claim in stanza.claims or (unclaimed,)]


def _claim_row(stanza: Stanza, claim: Mapping[str, Any]) -> dict[str, Any]:
    files = "; ".join(f"{item['file']}: {item['says']}" for item in stanza.evidence)
    return {
        "key": stanza.key,
        "name": stanza.name,
        "tier": stanza.tier,
        "where": claim["where"],
        "claimed": claim["says"],
        "actual": claim.get("actual") or stanza.licence,
        "evidence": claim.get("source") or files or "no evidence file at hand",
        "agrees": claim["agrees"],
        "case": claim.get("case"),
    }
