"""The corpora that lossmap knows: one stanza each in workflow/config/corpora.yaml, checked against its schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from lossmap import settings
from lossmap.errors import LossmapError


@dataclass(frozen=True)
class Stanza:
    """One corpus. ``obtain`` is None where it cannot be had, and ``reason`` says why."""

    key: str
    name: str
    version: str
    tier: str
    spdx: str | None
    judged_by: str | None
    role: str
    language: str
    languages: tuple[str, ...]
    citation: str | None
    evidence: tuple[Mapping[str, str], ...]
    claims: tuple[Mapping[str, Any], ...]
    obtain: Mapping[str, Any] | None
    reason: str | None
    reader: str | None
    options: Mapping[str, Any]
    known_defects: tuple[Mapping[str, Any], ...]
    sets: Mapping[str, Mapping[str, Any]]
    documents: str | None
    published: str | None

    @property
    def generated(self) -> bool:
        """Whether a rule of ours writes it: there is nothing to fetch, and nothing to lock."""
        return self.obtain is None and self.reader is not None

    @property
    def licence(self) -> str:
        return self.spdx or "none stated"


def config_path(name: str) -> Path:
    return settings.load().root / "workflow" / "config" / name


def load() -> dict[str, Stanza]:
    """All stanzas by key, sorted. Raises LossmapError naming the field that breaks the schema."""
    path = config_path("corpora.yaml")
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    schema_path = settings.load().root / "workflow" / "schemas" / "corpora.schema.yaml"
    schema = yaml.safe_load(schema_path.read_text(encoding="utf-8"))
    broken = sorted(jsonschema.Draft202012Validator(schema).iter_errors(document), key=lambda e: list(map(str, e.path)))
    if broken:
        raise LossmapError(
            "the corpus registry breaks its schema",
            where=f"{path}: {'/'.join(map(str, broken[0].path))}",
            observed=broken[0].message,
            next_command=f"mend the stanza; the fields stand in {schema_path}",
            exit_code=2,
        )
    return {key: _stanza(key, document["corpora"][key]) for key in sorted(document["corpora"])}


def _stanza(key: str, fields: Mapping[str, Any]) -> Stanza:
    absent = {name: None for name in ("reason", "reader", "documents", "published")} | {"options": {}, "sets": {}}
    lists = {name: tuple(fields.get(name, ())) for name in ("evidence", "claims", "known_defects", "languages")}
    return Stanza(key=key, **{**absent, **fields, **lists})


def select(keys: Iterable[str] | None) -> list[Stanza]:
    """The stanzas of ``keys``, all of them for None. Raises (exit 2) on a key that is not registered."""
    known = load()
    wanted = list(known) if keys is None else list(dict.fromkeys(keys))
    unknown = [key for key in wanted if key not in known]
    if unknown:
        raise LossmapError(
            "no corpus has this key",
            observed=", ".join(unknown),
            expected=", ".join(known),
            next_command="./run lossmap corpora list",
            exit_code=2,
        )
    return [known[key] for key in wanted]


def query_set(key: str) -> Stanza:
    """The stanza behind ``corpus`` or ``corpus.set``, with the set's options merged into the corpus's own.

    Raises (exit 2) on a corpus or a set that is not registered, and on a corpus that is read by its sets only.
    """
    name, _, chosen = key.partition(".")
    stanza = select([name])[0]
    if (chosen or None) not in (stanza.sets or {None}):
        raise LossmapError(
            "no such query set",
            where=name,
            observed=chosen or "the corpus without a set",
            expected=", ".join(f"{name}.{known}" for known in stanza.sets) or name,
            next_command="./run lossmap corpora list",
            exit_code=2,
        )
    return replace(stanza, key=key, options={**stanza.options, **stanza.sets.get(chosen, {})})


def raw_folder() -> Path:
    """Where fetched corpora lie unless told otherwise: one for all scales."""
    return settings.load().root / "build" / "corpora"


def rows(destination: Path | None = None) -> list[dict[str, Any]]:
    """Per corpus: key, name, tier, licence, judged_by, role, obtained (a folder is there), reason (or None)."""
    folder = destination or raw_folder()
    return [
        {
            "key": s.key,
            "name": s.name,
            "tier": s.tier,
            "licence": s.licence,
            "judged_by": s.judged_by,
            "role": s.role,
            "obtained": (folder / s.key).is_dir(),
            "reason": s.reason,
        }
        for s in load().values()
    ]


def list_main(destination: Path | None = None) -> int:
    """Print the registry, one corpus a line."""
    print(f"{'key':<20} {'tier':<4} {'licence':<18} {'judged by':<12} state")
    for row in rows(destination):
        absent = f"not obtainable: {row['reason']}" if row["reason"] else "not fetched"
        state = "obtained" if row["obtained"] else absent
        print(f"{row['key']:<20} {row['tier']:<4} {row['licence']:<18} {row['judged_by'] or '-':<12} {state}")
    return 0
