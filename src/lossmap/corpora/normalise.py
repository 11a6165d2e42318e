"""From upstream's files to the corpus contract: meetings.jsonl, queries.jsonl, gold.jsonl, corpus.json."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lossmap import canon, transcript
from lossmap.corpora import fetch, licence, lock, registry
from lossmap.corpora.readers import qmsum
from lossmap.errors import LossmapError
from lossmap.layout import Layout

READERS = {"qmsum": qmsum}


def run(at: Layout, key: str) -> dict[str, Any]:
    """The rule: one corpus of a scale, or an empty one with the reason where its record says "not obtained"."""
    record = at.raw / f"{key}.json"
    found = canon.read_json(record) if record.exists() else {}
    if found.get("obtained", True):
        per_domain = at.config["scales"][at.scale]["per_domain"]
        selection = {"per_domain": per_domain} if per_domain else None
        return normalise(key, at.raw / key, at.corpus(key), selection)
    return absent(key, at.corpus(key), found["reason"])


def absent(key: str, out_dir: Path, reason: str) -> dict[str, Any]:
    """An empty corpus that says why: every later rule runs, and its numbers are shown as not obtained."""
    stanza = registry.select([key])[0]
    card = {**_head(key, stanza), "obtained": False, "reason": reason}
    transcript.write_corpus(out_dir, [], [], [], card)
    return card


def normalise(key: str, raw_dir: Path, out_dir: Path, selection: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Write the corpus folder ``out_dir`` from the fetched folder ``raw_dir`` (``.../key``); its corpus.json.

    ``selection`` is None for everything, or ``{"per_domain": N}``. Raises LossmapError where the raw files are not
    the locked ones, where the licence evidence changed, and on anything the reader refuses.
    """
    stanza = registry.select([key])[0]
    if stanza.reader not in READERS:
        raise LossmapError(
            "a corpus has no reader", where=key, observed=stanza.reader, expected=", ".join(READERS), exit_code=2
        )
    lock.require(stanza, raw_dir, lock.entry(stanza), f"{fetch.FETCH} --only {key}")
    reader = READERS[stanza.reader]
    reading = reader.read(stanza, raw_dir, selection)
    card = {
        **_head(key, stanza),
        "obtained": True,
        "reader": {"name": stanza.reader, "version": reader.VERSION},
        "selection": dict(selection) if selection else None,
        **reading.report,
    }
    transcript.write_corpus(out_dir, reading.meetings, reading.queries, reading.gold, card)
    return canon.read_json(out_dir / "corpus.json")


def _head(key: str, stanza: registry.Stanza) -> dict[str, Any]:
    fields = {name: getattr(stanza, name) for name in ("name", "version", "judged_by", "role")}
    return {"key": key, **fields, **licence.trail(stanza)}
