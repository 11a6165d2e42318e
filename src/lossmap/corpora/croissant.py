"""Croissant 1.1 metadata of a normalised corpus: what its files hold, from where, under which terms.

Terms and required properties: Croissant Format Specification 1.1 (MLCommons), context as in its first appendix.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lossmap import canon
from lossmap.corpora import registry

NAME = "croissant.json"
CONFORMS = "http://mlcommons.org/croissant/1.1"
OURS = "urn:lossmap:corpus:"  # the address of a corpus that has no upstream: ours
CROISSANT_TERMS = (
    "annotation",
    "arrayShape",
    "citeAs",
    "column",
    "containedIn",
    "equivalentProperty",
    "excludes",
    "extract",
    "field",
    "fileProperty",
    "fileObject",
    "fileSet",
    "format",
    "includes",
    "isArray",
    "isLiveDataset",
    "jsonPath",
    "key",
    "md5",
    "parentField",
    "readLines",
    "recordSet",
    "references",
    "regex",
    "sdVersion",
    "separator",
    "source",
    "subField",
    "transform",
    "unArchive",
    "value",
)
CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "prov": "http://www.w3.org/ns/prov#",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{term: f"cr:{term}" for term in CROISSANT_TERMS},
}
# Per file its scalar fields with their types.
FIELDS = {
    "meetings.jsonl": {
        "meeting_id": "sc:Text",
        "title": "sc:Text",
        "domain": "sc:Text",
        "language": "sc:Text",
        "recorded_date": "sc:Date",
    },
    "queries.jsonl": {"query_id": "sc:Text", "text": "sc:Text", "query_class": "sc:Text", "domain": "sc:Text"},
    "gold.jsonl": {
        "query_id": "sc:Text",
        "meeting_id": "sc:Text",
        "first": "sc:Integer",
        "last": "sc:Integer",
        "grade": "sc:Integer",
    },
}
KEYS = {"meetings.jsonl": "meeting_id", "queries.jsonl": "query_id"}
REFERENCES = {("gold.jsonl", "query_id"): "queries/query_id", ("gold.jsonl", "meeting_id"): "meetings/meeting_id"}
TURNS = {"index": "sc:Integer", "speaker": "sc:Text", "text": "sc:Text", "start": "sc:Float", "end": "sc:Float"}


def write(folder: Path) -> dict[str, Any]:
    """Write croissant.json beside corpus.json of the normalised corpus in ``folder``; the document."""
    card = canon.read_json(folder / "corpus.json")
    sizes = {name: (folder / name).stat().st_size for name in FIELDS}
    document = describe(card, registry.query_set(card["key"]), sizes)
    canon.write_json(folder / NAME, document)
    return document


def describe(card: Mapping[str, Any], stanza: registry.Stanza, sizes: Mapping[str, int]) -> dict[str, Any]:
    """The metadata of one corpus: ``card`` is its corpus.json, ``sizes`` the bytes of its files."""
    upstream = (stanza.obtain or {}).get("upstream")
    document = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS,
        "name": stanza.key,
        "description": _description(card, stanza),
        "license": _licence(stanza),
        "url": upstream or f"{OURS}{stanza.key}",
        "creator": _creator(stanza, upstream),
        "version": stanza.version,
        "inLanguage": stanza.language,
        "distribution": [_file(name, card["files"][name], sizes[name]) for name in FIELDS],
        "recordSet": [_records(name, stanza) for name in FIELDS],
    }
    # Both are recommended and not known of every corpus: nothing is made up for them.
    dated = {"datePublished": stanza.published} if stanza.published else {}
    derived = {"prov:wasDerivedFrom": {"@id": _source(stanza, upstream)}} if upstream else {}
    return {**document, **dated, **derived}


def _source(stanza: registry.Stanza, upstream: str) -> str:
    return f"{upstream}/tree/{stanza.obtain['commit']}"


def _description(card: Mapping[str, Any], stanza: registry.Stanza) -> str:
    counts = ", ".join(f"{card['counts'][name]} {name}" for name in ("meetings", "queries", "gold"))
    judged = f"judged by: {stanza.judged_by}" if stanza.judged_by else "without judgements"
    other = f" The gold points into the meetings of {stanza.documents}." if stanza.documents else ""
    return (
        f"{stanza.name} {stanza.version} as meetings of turns, queries and gold turn ranges ({counts}; {judged}). "
        f"Licence tier {card['tier']}.{other}"
    )


def _licence(stanza: registry.Stanza) -> str | dict[str, str]:
    if stanza.spdx:
        return f"https://spdx.org/licenses/{stanza.spdx}.html"
    return {
        "@type": "sc:CreativeWork",
        "name": "none stated",
        "description": "; ".join(e["says"] for e in stanza.evidence),
    }


def _creator(stanza: registry.Stanza, upstream: str | None) -> dict[str, str]:
    """The account that publishes upstream's repository: the one creator that the registry can name."""
    if not upstream:
        return {"@type": "sc:Organization", "name": "lossmap", "url": OURS}
    owner = upstream.rpartition("/")[0] or upstream
    return {"@type": "sc:Organization", "name": owner.rpartition("/")[2], "url": owner}


def _file(name: str, sha256: str, size: int) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "contentSize": f"{size} B",
        "encodingFormat": "application/jsonlines",
        "sha256": sha256,
    }


def _records(name: str, stanza: registry.Stanza) -> dict[str, Any]:
    stem = name.removesuffix(".jsonl")
    key = {"key": {"@id": f"{stem}/{KEYS[name]}"}} if name in KEYS else {}
    fields = [_field(name, f"{stem}/{column}", column, kind) for column, kind in FIELDS[name].items()]
    for field in fields:
        target = REFERENCES.get((name, field["name"]))
        # The meetings of a corpus that only judges lie in the files of another one.
        if target and not (stanza.documents and target.startswith("meetings/")):
            field["references"] = {"field": {"@id": target}}
    lists = [_turns(name)] if stem == "meetings" else []
    return {"@type": "cr:RecordSet", "@id": stem, "name": stem, **key, "field": fields + lists}


def _field(name: str, identifier: str, column: str, kind: str) -> dict[str, Any]:
    source = {"fileObject": {"@id": name}, "extract": {"column": column}}
    return {
        "@type": "cr:Field",
        "@id": identifier,
        "name": identifier.rpartition("/")[2],
        "dataType": kind,
        "source": source,
    }


def _turns(name: str) -> dict[str, Any]:
    """The list of turns: one field of many, its parts taken out of each by their names."""
    parts = [_field(name, f"meetings/turns/{part}", "turns", kind) for part, kind in TURNS.items()]
    for part in parts:
        part["source"]["transform"] = {"jsonPath": f"$.{part['name']}"}
    shape = {"isArray": True, "arrayShape": "-1"}
    return {"@type": "cr:Field", "@id": "meetings/turns", "name": "turns", **shape, "subField": parts}
