"""BEIR and TREC exports, Croissant metadata, counts and the licence table, over small corpora written here."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from lossmap import canon, settings, transcript
from lossmap.corpora import croissant, export, licence, registry, stats
from lossmap.transcript import GoldSpan, Meeting, Query, Turn

QUERIES = [Query("fixture:m1:000", "Who?", "lookup", "X"), Query("fixture:m2:000", "Sum it.", "summarize", "Y")]
GOLD = [
    GoldSpan("fixture:m1:000", "m1", 0, 3),
    GoldSpan("fixture:m1:000", "m2", 1, 1, 2),
    GoldSpan("fixture:m1:000", "m2", 0, 1, 1),
    GoldSpan("fixture:m2:000", "m2", 0, 0),
]
CARD = {"key": "fixture", "tier": "A", "licence": "CC0-1.0", "judged_by": "constructed", "role": "fixture"}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    texts = ["one two", "  ", "three", "four"]
    meetings = [
        Meeting(
            "m1", "First", "X", "en", "2020-01-02", tuple(Turn(i, "A", t, i, i + 1.5) for i, t in enumerate(texts))
        ),
        Meeting("m2", "", "Y", "de", None, (Turn(0, "", "füñf"), Turn(1, "B", "six"))),
    ]
    card = {**CARD, "obtained": True, "skipped": {"without_spans": 3}}
    transcript.write_corpus(tmp_path / "build" / "fixture", meetings, QUERIES, GOLD, card)
    return tmp_path / "build" / "fixture"


def test_beir_files_are_turns_queries_and_judged_turns(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "beir"
    assert export.beir(corpus, out) == {"corpus.jsonl": 5, "queries.jsonl": 2, "qrels/test.tsv": 6}
    rows = list(canon.read_jsonl(out / "corpus.jsonl"))
    assert [row["_id"] for row in rows] == ["m1:0", "m1:2", "m1:3", "m2:0", "m2:1"]
    assert (rows[1]["title"], rows[1]["text"], rows[1]["metadata"]["start"]) == ("First", "three", 2)
    assert rows[3]["text"] == "füñf"
    assert list(canon.read_jsonl(out / "queries.jsonl"))[1] == {
        "_id": "fixture:m2:000",
        "text": "Sum it.",
        "metadata": {"query_class": "summarize", "domain": "Y"},
    }
    assert (out / "qrels/test.tsv").read_text().splitlines() == [
        "query-id\tcorpus-id\tscore",
        "fixture:m1:000\tm1:0\t1",
        "fixture:m1:000\tm1:2\t1",
        "fixture:m1:000\tm1:3\t1",
        "fixture:m1:000\tm2:0\t1",
        "fixture:m1:000\tm2:1\t2",
        "fixture:m2:000\tm2:0\t1",
    ]


def test_trec_qrels_over_the_meetings_of_another_corpus(corpus: Path, tmp_path: Path) -> None:
    other = tmp_path / "build" / "judging"
    transcript.write_corpus(other, [], QUERIES[1:], GOLD[3:], {**CARD, "documents": "fixture"})
    assert export.trec_qrels(other, tmp_path / "qrels.txt", corpus) == 1
    assert (tmp_path / "qrels.txt").read_text() == "fixture:m2:000 0 m2:0 1\n"
    assert export.beir(other, tmp_path / "beir", corpus)["corpus.jsonl"] == 5


def test_a_failed_export_leaves_no_file(corpus: Path, tmp_path: Path) -> None:
    with open(corpus / "gold.jsonl", "a") as handle:
        handle.write('{"query_id": "q", "meeting_id": "unknown", "first": 0, "last": 0, "grade": 1}\n')
    with pytest.raises(KeyError):
        export.trec_qrels(corpus, tmp_path / "out" / "qrels.txt")
    assert list((tmp_path / "out").iterdir()) == []


REFERENCE = {
    "type": "object",
    "required": ["@id"],
    "additionalProperties": False,
    "properties": {"@id": {"type": "string"}},
}
FIELD = {
    "type": "object",
    "required": ["@type", "@id", "name"],
    "properties": {
        "@type": {"const": "cr:Field"},
        "dataType": {"enum": ["sc:Text", "sc:Integer", "sc:Float", "sc:Date"]},
        "source": {
            "type": "object",
            "required": ["fileObject", "extract"],
            "properties": {
                "fileObject": REFERENCE,
                "extract": {"required": ["column"]},
                "transform": {"required": ["jsonPath"]},
            },
        },
        "subField": {"type": "array", "items": {"$ref": "#/$defs/field"}},
    },
    "oneOf": [{"required": ["source", "dataType"]}, {"required": ["subField", "isArray", "arrayShape"]}],
}
REQUIRED = ["@context", "@type", "conformsTo", "description", "license", "name", "url", "creator", "distribution"]
SCHEMA = {
    "$defs": {"field": FIELD},
    "type": "object",
    "required": [*REQUIRED, "version", "recordSet", "inLanguage"],
    "properties": {
        "@type": {"const": "sc:Dataset"},
        "conformsTo": {"const": "http://mlcommons.org/croissant/1.1"},
        "distribution": {
            "type": "array",
            "items": {
                "required": ["@type", "@id", "name", "contentUrl", "encodingFormat", "sha256", "contentSize"],
                "properties": {"@type": {"const": "cr:FileObject"}, "sha256": {"pattern": "^[0-9a-f]{64}$"}},
            },
        },
        "recordSet": {
            "type": "array",
            "items": {
                "required": ["@type", "@id", "name", "field"],
                "properties": {"@type": {"const": "cr:RecordSet"}, "field": {"items": {"$ref": "#/$defs/field"}}},
            },
        },
    },
}


def identifiers(value: object) -> list[str]:
    """The ids that a document defines: an object with more than an id."""
    if isinstance(value, list):
        return [found for item in value for found in identifiers(item)]
    if not isinstance(value, dict):
        return []
    own = [value["@id"]] if "@id" in value and len(value) > 1 else []
    return own + [found for name, item in value.items() if name != "@context" for found in identifiers(item)]


def test_croissant_has_every_required_property_and_real_hashes(corpus: Path) -> None:
    document = croissant.write(corpus)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert json.loads((corpus / "croissant.json").read_text()) == document
    for entry in document["distribution"]:
        assert entry["sha256"] == canon.file_sha256(corpus / entry["contentUrl"])
        assert entry["contentSize"] == f"{(corpus / entry['contentUrl']).stat().st_size} B"
    first = (corpus / "croissant.json").read_bytes()
    croissant.write(corpus)
    assert (corpus / "croissant.json").read_bytes() == first


def test_croissant_ids_are_unique_and_references_resolve(corpus: Path) -> None:
    document = croissant.write(corpus)
    known = identifiers({name: document[name] for name in ("distribution", "recordSet")})
    assert len(known) == len(set(known))
    fields = {field["@id"]: field for records in document["recordSet"] for field in records["field"]}
    targets = [field["references"]["field"]["@id"] for field in fields.values() if "references" in field]
    assert sorted(targets) == ["meetings/meeting_id", "queries/query_id"] and set(targets) <= set(known)


def test_croissant_fields_are_the_fields_of_the_files(corpus: Path) -> None:
    for records in croissant.write(corpus)["recordSet"]:
        row = next(canon.read_jsonl(corpus / f"{records['name']}.jsonl"))
        assert {field["name"] for field in records["field"]} == set(row)
        nested = [field for field in records["field"] if "subField" in field]
        assert all({part["name"] for part in field["subField"]} == set(row[field["name"]][0]) for field in nested)


def test_croissant_of_a_corpus_that_only_judges_and_of_one_without_a_licence(corpus: Path) -> None:
    card, stanza = canon.read_json(corpus / "corpus.json"), registry.load()["icsi-mrda"]
    document = croissant.describe(card, replace(stanza, documents="qmsum"), dict.fromkeys(croissant.FIELDS, 1))
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    gold = document["recordSet"][2]["field"]
    assert [field["name"] for field in gold if "references" in field] == ["query_id"]
    assert document["license"]["name"] == "none stated" and document["creator"]["name"] == "NathanDuran"
    assert document["prov:wasDerivedFrom"]["@id"].endswith(stanza.obtain["commit"])


def test_stats_count_what_lies_in_the_files(corpus: Path) -> None:
    transcript.write_corpus(corpus.parent / "absent", [], [], [], {"key": "absent", "obtained": False, "reason": "why"})
    absent, row = stats.stats(corpus.parent)
    assert (absent["key"], absent["obtained"], absent["reason"], absent["meetings"]) == ("absent", False, "why", 0)
    assert {
        name: row[name] for name in ("meetings", "turns", "blank_turns", "words", "queries", "gold", "gold_turns")
    } == {
        "meetings": 2,
        "turns": 6,
        "blank_turns": 1,
        "words": 6,
        "queries": 2,
        "gold": 4,
        "gold_turns": 8,
    }
    assert row["query_classes"] == {"lookup": 1, "summarize": 1} and row["domains"] == {"X": 1, "Y": 1}
    assert row["skipped"] == {"without_spans": 3} and row["tier"] == "A" and row["judged_by"] == "constructed"


NOT_TO_BE_HAD = (
    "locov1",
    "miracl",
    "ciral",
    "mrtydi",
    "meetingbank",
    "elitr",
    "scifact",
    "qasper",
    "esg-reports",
    "mldr",
    "epbench",
    "membench",
    "convomem",
    "longmemeval",
    "tmd",
    "mised",
    "msmarco",
    "omnidocbench",
)


def test_every_corpus_that_cannot_be_had_is_registered_with_its_reason() -> None:
    known = registry.load()
    assert all(known[key].obtain is None and known[key].reason for key in NOT_TO_BE_HAD)
    tiers = Counter(known[key].tier for key in NOT_TO_BE_HAD)
    assert {key: known[key].tier for key in ("meetingbank", "elitr", "msmarco", "tmd", "mised")} == {
        "meetingbank": "B",
        "elitr": "B",
        "msmarco": "B",
        "tmd": "C",
        "mised": "C",
    }
    assert tiers.total() == 18
    assert all(s.spdx or s.tier != "A" for s in known.values()), "tier A without a licence"
    assert not [s.key for s in known.values() if s.tier == "A" and "-NC" in (s.spdx or "")]


def test_citations_stand_in_the_bibliography() -> None:
    keys = re.findall(r"^@\w+\{(\w+),$", (settings.load().root / "paper/references.bib").read_text(), re.MULTILINE)
    assert len(keys) == len(set(keys))
    assert {s.citation for s in registry.load().values() if s.citation} <= set(keys)


def test_licence_rows_hold_claim_actual_and_evidence() -> None:
    rows = licence.licence_rows()
    assert {row["key"] for row in rows} == set(registry.load())
    assert all(row["actual"] and row["evidence"] for row in rows)
    published = {row["key"]: row for row in rows if row["case"] == "published"}
    assert not any(row["agrees"] for row in published.values())
    assert {key: (row["claimed"], row["actual"]) for key, row in published.items() if key == "meetingbank"} == {
        "meetingbank": ("cc-by-4.0", "CC-BY-NC-ND-4.0")
    }
    assert set(published) == {"ami", "meetingbank", "msmarco", "omnidocbench"}
    xquad = next(row for row in rows if row["key"] == "xquad")
    assert (xquad["claimed"], xquad["actual"]) == (None, "CC-BY-SA-4.0") and "README.md" in xquad["evidence"]


def test_a_reader_is_needed_but_for_word_timings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = registry.load()
    assert all(s.reader for s in known.values() if s.obtain and s.role != "timings")
    assert known["icsi-mrda"].reader is None and known["icsi-mrda"].tier == "B"
