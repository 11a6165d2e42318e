"""Which languages are scored, on what, and which are not and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from lossmap import transcript
from lossmap.corpora import registry

NOT_ASKED = "this scale does not score it"


def study(scores: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """languages.json: a row a language of the registry; ``scores``: the rows of scores.json.

    A language is scored where a query set of a multilingual corpus is; ``missing`` names the corpora that would add to
    it and why they do not.
    """
    named = registry.load()
    measured: defaultdict[str, dict[str, float]] = defaultdict(dict)
    tiers: defaultdict[str, str] = defaultdict(lambda: "A")
    scored_on: defaultdict[str, set[str]] = defaultdict(set)
    judges: defaultdict[str, set[str]] = defaultdict(set)
    arms: set[str] = set()
    for row in scores:
        arms.add(row["arm"])
        corpus, _, language = row["corpus"].partition(".")
        if row["query_class"] == "all" and language and language in named[corpus].languages:
            measured[language][row["arm"]] = row["metrics"]["nDCG@10"]
            tiers[language] = transcript.worst([tiers[language], row["tier"]])
            scored_on[language].add(corpus)
            judges[language].add(row["judged_by"])
    return {
        "rows": [
            {
                **_row(language, measured.get(language, {}), named),
                "nDCG@10": {arm: measured[language].get(arm) for arm in sorted(arms)},
                "scored_on": sorted(scored_on[language]),
                "tier": tiers[language],
                "judged_by": " ".join(sorted(judges[language])) or None,
            }
            for language in _languages(named)
        ]
    }


def _languages(named: Mapping[str, registry.Stanza]) -> list[str]:
    return sorted({language for stanza in named.values() for language in stanza.languages})


def _row(language: str, arms: Mapping[str, float], named: Mapping[str, registry.Stanza]) -> dict[str, Any]:
    holding = [stanza for stanza in named.values() if language in stanza.languages]
    missing = [stanza for stanza in holding if not stanza.obtain]
    reasons = sorted({stanza.reason for stanza in missing if stanza.reason})
    return {
        "language": language,
        "missing": [stanza.key for stanza in missing],
        "reason": "; ".join(reasons) or (None if arms else NOT_ASKED),
        "scored": bool(arms),
    }
