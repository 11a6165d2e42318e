"""From upstream's files to the corpus contract: meetings.jsonl, queries.jsonl, gold.jsonl, corpus.json."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lossmap import canon, transcript
from lossmap.corpora import croissant, fetch, licence, lock, registry
from lossmap.corpora.readers import (
    ami_summlink,
    apibench,
    dstc10,
    earnings21,
    explainmeetsum,
    foolmetwice,
    lmeb,
    locomo,
    proced,
    qmsum,
    reme,
    synthetic,
    xquad,
)
from lossmap.errors import LossmapError
from lossmap.layout import Layout

READERS = {
    "ami-summlink": ami_summlink,
    "apibench": apibench,
    "dstc10": dstc10,
    "earnings21": earnings21,
    "explainmeetsum": explainmeetsum,
    "foolmetwice": foolmetwice,
    "lmeb": lmeb,
    "locomo": locomo,
    "proced": proced,
    "qmsum": qmsum,
    "reme": reme,
    "synthetic": synthetic,
    "xquad": xquad,
}


def run(at: Layout, key: str) -> dict[str, Any]:
    """The rule: one corpus or query set of a scale, or an empty one with the reason where it could not be had."""
    if registry.query_set(key).generated:
        chosen = {"budget": at.config["scales"][at.scale]["synthetic"]["budget"]}
        return normalise(key, at.generated, at.corpus(key), chosen)
    name = base(key)
    record = at.raw / f"{name}.json"
    found = canon.read_json(record) if record.exists() else {}
    if found.get("obtained", True):
        scale = at.config["scales"][at.scale]
        per_domain = None if name in scale.get("whole", ()) else scale["per_domain"]
        selection = {"per_domain": per_domain} if per_domain else None
        return normalise(key, at.raw / name, at.corpus(key), selection)
    return absent(key, at.corpus(key), found["reason"])


def first(at: Layout, key: str, limit: int, out: Path) -> dict[str, Any]:
    """By hand: the first ``limit`` meetings by key of a generated corpus, with a warning of the gold that this cuts.

    Written to ``out``, since a rule owns the corpus of the scale. Raises (exit 2) on a corpus that is not generated.
    """
    if not registry.query_set(key).generated or limit < 1:
        raise LossmapError(
            "only a generated corpus is cut by a limit",
            where=key,
            observed=f"--limit {limit}",
            expected="a generated corpus and a limit of at least 1; others are cut by per_domain in config.yaml",
            next_command="./run lossmap corpora normalise synthetic --limit N --out DIR",
            exit_code=2,
        )
    return normalise(key, at.generated, out, {"first": limit})


def base(key: str) -> str:
    """The corpus of a query set: what is fetched and locked."""
    return key.partition(".")[0]


def absent(key: str, out_dir: Path, reason: str) -> dict[str, Any]:
    """An empty corpus that says why: every later rule runs, and its numbers are shown as not obtained."""
    stanza = registry.query_set(key)
    card = {**_head(stanza, stanza.tier), "obtained": False, "reason": reason}
    transcript.write_corpus(out_dir, [], [], [], card)
    return card


def normalise(key: str, raw_dir: Path, out_dir: Path, selection: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Write the corpus folder ``out_dir`` from the fetched folder ``raw_dir`` (``.../corpus``); its corpus.json.

    ``selection`` is None for everything, ``{"per_domain": N}``, or ``{"budget": N}`` for what a rule generated. A
    corpus whose gold points into the meetings of another one (``documents``) reads them beside ``out_dir``. Raises
    LossmapError where the raw files are not the locked ones, where the licence evidence changed, and on anything the
    reader refuses.
    """
    stanza, locked = registry.query_set(key), registry.select([base(key)])[0]
    if stanza.reader not in READERS:
        raise LossmapError(
            "a corpus has no reader", where=key, observed=stanza.reader, expected=", ".join(READERS), exit_code=2
        )
    if stanza.generated:
        _require_generated(key, raw_dir)
        licence.check_evidence(stanza, raw_dir)
    else:
        lock.require(locked, raw_dir, lock.entry(locked), f"{fetch.FETCH} --only {locked.key}")
    reader, tier = READERS[stanza.reader], stanza.tier
    if stanza.documents:
        other = out_dir.parent / stanza.documents
        tier = transcript.worst([tier, transcript.read_card(other)["tier"]])
        reading = reader.read(stanza, raw_dir, selection, documents=transcript.read_meetings(other))
    else:
        reading = reader.read(stanza, raw_dir, selection)
    card = {
        **_head(stanza, tier),
        "obtained": True,
        "reader": {"name": stanza.reader, "version": reader.VERSION},
        "selection": dict(selection) if selection else None,
        **reading.report,
    }
    transcript.write_corpus(out_dir, reading.meetings, reading.queries, reading.gold, card)
    croissant.write(out_dir)
    return canon.read_json(out_dir / "corpus.json")


def _require_generated(key: str, folder: Path) -> None:
    """Before the licence: its absence is told as that of a corpus to fetch, and this one cannot be fetched."""
    if not (folder / canon.SUMS).is_file():
        raise LossmapError(
            "a corpus has not been generated",
            where=f"{key}: {folder}",
            observed=f"no file {canon.SUMS}",
            next_command="./run lossmap synth generate --scale SCALE, with the scale of this folder",
        )


def _head(stanza: registry.Stanza, tier: str) -> dict[str, Any]:
    fields = {name: getattr(stanza, name) for name in ("key", "name", "version", "judged_by", "role", "documents")}
    return {**fields, **licence.trail(stanza), "tier": tier}
