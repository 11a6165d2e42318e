"""Readers of the plain corpora, on data made here in upstream's format (records 0, 9 and last) and on the mirror's."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lossmap import settings
from lossmap.corpora import fetch, lock, normalise, registry
from lossmap.corpora.readers import Reading
from lossmap.errors import LossmapError
from lossmap.transcript import GoldSpan, Query, Turn

LMEB = Path(__file__).parents[1] / "fixtures" / "lmeb"


def dump(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def dump_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def read(key: str, folder: Path, selection: dict[str, int] | None = None, **options: Any) -> Reading:
    stanza = registry.query_set(key)
    stanza = replace(stanza, options={**stanza.options, **options})
    return normalise.READERS[stanza.reader].read(stanza, folder, selection)


def claims(folder: Path) -> None:
    """Two files of 10 and 4 claims; claim i is about page i // 2 and shares a retrieved sentence with its neighbour."""
    for name, numbers in (("dev", range(10)), ("test", range(10, 14))):
        rows = [
            {
                "id": f"c{i}",
                "text": f"Claim {i}.",
                "label": "SUPPORTS" if i % 2 else "REFUTES",
                "wikipedia_page": f"Page {i // 2}",
                "gold_evidence": [{"section_header": "Top", "text": f"Fact {i}."}],
                "retrieved_evidence": [
                    {"section_header": "Life", "text": f"{said}."} for said in (f"Fact {i}", i // 2)
                ],
            }
            for i in numbers
        ]
        dump_lines(folder / "dataset" / f"{name}.jsonl", rows)


def test_foolmetwice(tmp_path: Path) -> None:
    claims(tmp_path)
    dev, test = read("foolmetwice.dev", tmp_path), read("foolmetwice.test", tmp_path)
    assert dev.meetings == test.meetings and len(dev.meetings) == 14 + 7
    assert (dev.meetings[0].meeting_id, dev.meetings[0].title) == ("p000-s000", "Page 0 | Top")
    assert dev.meetings[1].turns == (Turn(0, "", "0."),) and dev.meetings[1].title == "Page 0 | Life"
    assert dev.queries[0] == Query("foolmetwice.dev:p000:0000", "Claim 0.", "lookup", "all")
    assert dev.queries[9] == Query("foolmetwice.dev:p004:0009", "Claim 9.", "lookup", "all")
    assert test.queries[-1] == Query("foolmetwice.test:p006:0003", "Claim 13.", "lookup", "all")
    assert test.gold[-1] == GoldSpan("foolmetwice.test:p006:0003", "p006-s002", 0, 0, 1)
    assert dev.report["labels"] == {"REFUTES": 5, "SUPPORTS": 5} and len(dev.queries) == 10


def test_a_selection_keeps_judged_groups_whole_and_only_queries_with_all_their_gold(tmp_path: Path) -> None:
    claims(tmp_path)
    reading = read("foolmetwice.test", tmp_path, {"per_domain": 1})
    assert {m.meeting_id for m in reading.meetings} == {"p005-s000", "p005-s001", "p005-s002"}
    assert [q.text for q in reading.queries] == ["Claim 10.", "Claim 11."] and len(reading.gold) == 2


def entries(folder: Path) -> list[dict[str, Any]]:
    """12 rows of 11 calls; 14 instructions, of which the last but one asks for an entry that is not there."""
    fields = ("domain", "framework", "functionality", "api_arguments", "python_environment_requirements")
    rows = [
        {name: name.upper() for name in (*fields, "example_code", "description")}
        | {"api_name": f"name{i}", "api_call": f"load({min(i, 10)})", "performance": {"dataset": "D", "accuracy": i}}
        for i in range(12)
    ]
    dump_lines(folder / "data/api/huggingface_api.jsonl", rows)
    dump_lines(folder / "data/api/tensorflowhub_api.jsonl", rows)
    asked = [*rows, {**rows[0], "api_call": "load(99)"}, rows[3]]
    opening = ["###Instruction: Do", "### Instruction:  Do"]
    closing = ["\n###Output: <<<domain>>>: D", "\n### Output: x", ""]
    questions = [
        {
            "code": f"{opening[i % 2]} thing {i}.{closing[i % 3]}",
            "api_call": row["api_call"],
            "provider": "P",
            "api_data": row,
        }
        for i, row in enumerate(asked)
    ]
    dump_lines(folder / "data/apibench/huggingface_eval.json", questions)
    dump_lines(folder / "data/apibench/tensorflow_eval.json", questions)
    return rows


def test_apibench_by_row(tmp_path: Path) -> None:
    entries(tmp_path)
    reading = read("apibench.huggingface", tmp_path)
    assert (len(reading.meetings), len(reading.queries), len(reading.gold)) == (12, 13, 13)
    assert reading.meetings[9].title == "name9"
    assert reading.meetings[9].turns[0].text.startswith("domain: DOMAIN\nframework: FRAMEWORK\n")
    assert 'performance: {"accuracy":9,"dataset":"D"}' in reading.meetings[9].turns[0].text
    assert [reading.queries[i].text for i in (0, 9, -1)] == ["Do thing 0.", "Do thing 9.", "Do thing 13."]
    assert reading.gold[-1] == GoldSpan("apibench.huggingface:0003:0013", "0003", 0, 0, 1)
    assert reading.report["skipped"] == {"without_document": 1} and reading.report["asked_with_a_shared_call"] == 2


def test_apibench_by_call(tmp_path: Path) -> None:
    entries(tmp_path)
    reading = read("apibench.tensorflowhub", tmp_path)
    assert (len(reading.meetings), len(reading.queries)) == (11, 13)
    assert reading.gold[11] == GoldSpan("apibench.tensorflowhub:0010:0011", "0010", 0, 0, 1)


def test_reme(tmp_path: Path) -> None:
    for group in ("appworld_a", "bfcl_a"):
        rows = [
            {
                "memory_id": f"{group}-{i:02d}",
                "content": f"Do {i}.",
                "when_to_use": f"When {i}",
                "metadata": {"generalized_query": f"general {group} {i}", "task_query": f"task {i // 2}"},
            }
            for i in range(6)
        ]
        dump_lines(tmp_path / f"docs/library/paper_data/task/{group}.jsonl", rows)
    plain, task = read("reme.content", tmp_path), read("reme.when-to-use-task", tmp_path)
    assert [plain.queries[i].text for i in (0, 9, -1)] == [
        "general appworld_a 0",
        "general bfcl_a 3",
        "general bfcl_a 5",
    ]
    assert plain.queries[9].query_id == "reme.content:bfcl_a-03:0003" and plain.queries[9].domain == "bfcl_a"
    assert plain.meetings[9].turns[0].text == "Do 3." and task.meetings[9].turns[0].text == "When 3\nDo 3."
    assert len(task.meetings) == 12 and len(task.queries) == 6 and task.report["distinct_queries"] == 3
    assert read("reme.content", tmp_path, {"per_domain": 2}).report["domains"] == {"appworld_a": 2, "bfcl_a": 2}


def test_proced_mem_bench(tmp_path: Path) -> None:
    options = registry.load()["proced-mem-bench"].options
    pairs = [{"step_id": 1, "state": "A room.", "action": "look"}, {"step_id": 2, "state": "A cup.", "action": "take"}]
    trajectories = [
        {"task_instance_id": f"alf_{i}", "task_description": f"task {i}", "state_action_pairs": pairs}
        for i in range(12)
    ]
    dump(tmp_path / options["trajectories"], {"trajectories": trajectories})
    scores = (10.0, 8.0, 7.0, 6.0, 5.0)
    queries = [
        {
            "query_text": f"goal {i}",
            "tier": "EASY",
            "relevant_trajectories": [
                {"trajectory_id": f"alf_{j}", "relevance_score": s} for j, s in enumerate(scores)
            ],
        }
        for i in range(11)
    ]
    dump(tmp_path / options["queries"], {"queries": queries})
    reading = read("proced-mem-bench", tmp_path)
    assert (
        reading.meetings[9].turns[0].text == "A room.\n> look\nA cup.\n> take" and reading.meetings[9].title == "task 9"
    )
    assert [reading.queries[i].query_id for i in (0, 9, -1)] == [f"proced-mem-bench:{i:04d}" for i in (0, 9, 10)]
    assert [g.grade for g in reading.gold[:4]] == [2, 2, 1, 1] and len(reading.gold) == 44
    assert registry.load()["proced-mem-bench"].judged_by == "model"


def test_locomo(tmp_path: Path) -> None:
    def talk(name: str, evidence: list[list[str]]) -> dict[str, Any]:
        said = {
            f"session_{s}": [
                {
                    "speaker": "AB"[n % 2],
                    "dia_id": f"D{s}:{n}",
                    "text": f"{s}.{n}",
                    **({"blip_caption": "x"} if n == 1 else {}),
                }
                for n in (1, 2, 3)
            ]
            for s in (10, 2, 1)
        }
        conversation = {"speaker_a": "A", "speaker_b": "B", "session_1_date_time": "1 May", **said}
        qa = [{"question": f"q{i}", "answer": 1, "evidence": e, "category": 1 + i % 5} for i, e in enumerate(evidence)]
        return {"sample_id": name, "conversation": conversation, "qa": qa}

    odd = [["D1:1"], ["D:2:3"], ["D10:03"], ["D1:1 D2:2", "D1:1"], ["D"], ["D9:1", "D1:2"], []]
    dump(tmp_path / "data/locomo10.json", [talk("conv-1", [["D1:1"]] * 8), talk("conv-2", odd)])
    reading = read("locomo", tmp_path)
    assert [t.text for t in reading.meetings[0].turns] == [f"{s}.{n}" for s in (1, 2, 10) for n in (1, 2, 3)]
    assert [reading.queries[i].query_id for i in (0, 9, -1)] == [
        "locomo:conv-1:0000",
        "locomo:conv-2:0001",
        "locomo:conv-2:0005",
    ]
    gold = [(g.query_id[-4:], g.first, g.last, g.grade) for g in reading.gold if g.meeting_id == "conv-2"]
    assert gold == [
        ("0000", 0, 0, 1),
        ("0001", 5, 5, 1),
        ("0002", 8, 8, 1),
        ("0003", 0, 0, 1),
        ("0003", 4, 4, 1),
        ("0005", 1, 1, 1),
    ]
    assert reading.report["skipped"] == {"evidence_without_turn": 2, "without_evidence": 2}
    assert reading.report["mended_evidence"] == 3 and reading.report["turns_with_an_image"] == 6
    assert [m.meeting_id for m in read("locomo", tmp_path, {"per_domain": 1}).meetings] == ["conv-1"]


def test_xquad(tmp_path: Path) -> None:
    articles = [
        {
            "title": f"Super_Title_{a}",
            "paragraphs": [
                {
                    "context": f"Text {a} {p}.",
                    "qas": [{"id": f"{a}{p}{q}", "question": f"¿{a} {p} {q}? "} for q in (0, 1)],
                }
                for p in (0, 1)
            ],
        }
        for a in range(3)
    ]
    dump(tmp_path / "xquad.es.json", {"data": articles})
    reading = read("xquad.es", tmp_path)
    assert {m.language for m in reading.meetings} == {"es"} and reading.meetings[0].title == "Super Title 0"
    assert [(reading.queries[i].query_id, reading.queries[i].text) for i in (0, 9, -1)] == [
        ("xquad.es:a00-p00:0000", "¿0 0 0?"),
        ("xquad.es:a02-p00:0009", "¿2 0 1?"),
        ("xquad.es:a02-p01:0011", "¿2 1 1?"),
    ]
    assert reading.gold[9] == GoldSpan("xquad.es:a02-p00:0009", "a02-p00", 0, 0, 1)
    assert len(read("xquad.es", tmp_path, {"per_domain": 2}).queries) == 8


def test_dstc10(tmp_path: Path) -> None:
    knowledge = {
        "hotel": {
            str(e): {"name": f"H{e}", "docs": {str(d): {"title": f"Q{d}?", "body": f"A{d}."} for d in range(3)}}
            for e in (7, 8)
        },
        "taxi": {"*": {"name": None, "docs": {"0": {"title": "Card?", "body": "Yes."}}}},
    }
    hotel, taxi = {"domain": "hotel", "entity_id": 8, "doc_id": 2}, {"domain": "taxi", "entity_id": "*", "doc_id": 0}
    labels = [
        {"target": True, "knowledge": [taxi if i == 9 else hotel]} if i % 4 != 2 else {"target": False}
        for i in range(14)
    ]
    logs = [[{"speaker": "S", "text": "hello"}, {"speaker": "U", "text": f" turn {i} "}] for i in range(14)]
    for name, value in (("knowledge", knowledge), ("val/labels", labels), ("val/logs", logs)):
        dump(tmp_path / f"task2/data/{name}.json", value)
    reading = read("dstc10", tmp_path)
    assert [m.meeting_id for m in (reading.meetings[0], reading.meetings[-1])] == ["hotel.7.0", "taxi.any.0"]
    assert reading.meetings[0].title == "H7" and reading.meetings[0].turns[0].text == "Q0?\nA0."
    assert reading.queries[0] == Query("dstc10:0000", "turn 0", "lookup", "hotel")
    assert reading.queries[7] == Query("dstc10:0009", "turn 9", "lookup", "taxi")
    assert reading.gold[-1] == GoldSpan("dstc10:0013", "hotel.8.2", 0, 0, 1)
    assert reading.report["skipped"] == {"not_knowledge_seeking": 3}
    logs[4].append({"speaker": "S", "text": "bye"})
    dump(tmp_path / "task2/data/val/logs.json", logs)
    with pytest.raises(LossmapError, match="does not end with a user turn"):
        read("dstc10", tmp_path)


def test_earnings21(tmp_path: Path) -> None:
    names = [f"{i:02d}" for i in range(11)]
    rows = "".join(f"{n},1.0,24000,Firm {n},3,Sector {int(n) % 2},2,2,1\n" for n in names)
    head = "file_id,audio_length,sample_rate,company_name,financial_quarter,sector,speaker_switches,unique_speakers,"
    head += "curator_id\n"
    (tmp_path / "earnings21-file-metadata.csv").write_text(head + rows)
    (tmp_path / "speaker-metadata.csv").write_text("file_id,speaker_id,speaker_name\n09,0,Ann Lee\n")
    (tmp_path / "transcripts/nlp_references").mkdir(parents=True)
    for n in names:
        lines = ["Good|0||||UC|[]|[]", "day|0|||.|LC|[]|['1']", 'So "it|1|||,|LC|[]|[]', "ends|0|||?|LC|[]|[]"]
        text = "\n".join(["token|speaker|ts|endTs|punctuation|case|tags|wer_tags", *lines]) + "\n"
        (tmp_path / f"transcripts/nlp_references/{n}.nlp").write_text(text)
    reading = read("earnings21", tmp_path)
    assert [reading.meetings[i].title for i in (0, 9, -1)] == ["Firm 00 Q3", "Firm 09 Q3", "Firm 10 Q3"]
    assert reading.meetings[9].turns == (
        Turn(0, "Ann Lee", "Good day."),
        Turn(1, "speaker 1", 'So "it,'),
        Turn(2, "Ann Lee", "ends?"),
    )
    assert reading.queries == [] and reading.report["named_speakers"] == 1 and reading.report["tokens"] == 44
    assert len(read("earnings21", tmp_path, {"per_domain": 1}).meetings) == 2
    (tmp_path / "transcripts/nlp_references/10.nlp").write_text("token|speaker\n")
    with pytest.raises(LossmapError, match="upstream form") as caught:
        read("earnings21", tmp_path)
    assert "10.nlp" in str(caught.value)


def test_lmeb_scenes_by_prefix() -> None:
    reading = read("fixture-lmeb.harbour", LMEB)
    assert [(reading.queries[i].query_id, reading.queries[i].domain) for i in (0, 9, -1)] == [
        ("fixture-lmeb.harbour:north_1:0000", "north_1"),
        ("fixture-lmeb.harbour:south_2:0009", "south_2"),
        ("fixture-lmeb.harbour:south_2:0010", "south_2"),
    ]
    assert reading.meetings[9].meeting_id == "south_2_3a_D1_3a_4" and reading.report["domains"] == {
        "north_1": 6,
        "south_2": 6,
    }
    assert reading.report["skipped"] == {"qrels_of_no_query": 0, "without_qrels": 1}
    assert {m.domain for m in reading.meetings} == {q.domain for q in reading.queries}


def test_lmeb_equal_candidate_lists_are_one_scene_and_grades_stay() -> None:
    manual, bakery = read("fixture-lmeb.manual", LMEB), read("fixture-lmeb.bakery", LMEB)
    assert [q.domain for q in manual.queries] == ["m1", "m1", "m3", "m3"] and manual.report["candidates"] is None
    assert [m.title for m in manual.meetings[:1]] == ["Boiler"]
    assert [(g.meeting_id, g.grade) for g in bakery.gold] == [
        ("step_20_1", 2),
        ("step_20_2", 1),
        ("step_20_3", 2),
        ("step_20_4", 2),
        ("step_20_5", 1),
    ]
    assert bakery.queries[-1].query_id == "fixture-lmeb.bakery:b3:0002"


def test_lmeb_overlapping_candidates_are_reported_as_lists(tmp_path: Path) -> None:
    for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv"):
        (tmp_path / name).write_text((LMEB / "eval_data/Semantic/Manual" / name).read_text())
    lists = {"m1": ["boiler-1"], "m2": ["boiler-1", "boiler-2"]}
    dump_lines(tmp_path / "candidates.jsonl", [{"scene_id": s, "candidate_doc_ids": ids} for s, ids in lists.items()])
    reading = read("fixture-lmeb.manual", tmp_path, task=".")
    assert reading.report["candidates"] == lists and {m.domain for m in reading.meetings} == {"all"}
    (tmp_path / "corpus.jsonl").unlink()
    with pytest.raises(LossmapError, match="no such file here or above"):
        read("fixture-lmeb.manual", tmp_path, task=".")


def no_id(rows: list[Any]) -> None:
    del rows[1]["wikipedia_page"]


def no_gold(rows: list[Any]) -> None:
    rows[1]["gold_evidence"] = [{"text": "of another file"}]


@pytest.mark.parametrize("change", [no_id, no_gold])
def test_a_broken_record_names_the_file(tmp_path: Path, change: Callable[[list[Any]], None]) -> None:
    claims(tmp_path)
    path = tmp_path / "dataset/dev.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    change(rows)
    dump_lines(path, rows)
    with pytest.raises(LossmapError, match="FoolMeTwice's fields") as caught:
        read("foolmetwice.dev", tmp_path)
    assert str(path) in str(caught.value)
    path.write_text('{"a": 1}\n{"b"\n')
    with pytest.raises(LossmapError, match="object 1"):
        read("foolmetwice.dev", tmp_path)


# key: documents or meetings, queries, gold spans, and further counts of the report
REAL = {
    "foolmetwice.dev": (17_562, 1169, 1472, {"pages": 443}),
    "foolmetwice.test": (17_562, 1380, 1735, {"labels": {"REFUTES": 699, "SUPPORTS": 681}}),
    "apibench.huggingface": (936, 834, 834, {"instructions": 911, "asked_with_a_shared_call": 45}),
    "apibench.torchhub": (94, 186, 186, {"rows": 94}),
    "apibench.tensorflowhub": (80, 688, 688, {"rows": 696, "distinct_calls": 80}),
    "reme.content": (914, 914, 914, {"distinct_queries": 907}),
    "reme.when-to-use": (914, 914, 914, {"distinct_texts": 914}),
    "reme.content-task": (914, 305, 305, {"distinct_queries": 221}),
    "reme.when-to-use-task": (914, 305, 305, {"distinct_texts": 914}),
    "proced-mem-bench": (336, 40, 893, {"grades": {"1": 557, "2": 336}}),
    "locomo": (10, 1981, 2816, {"turns": 5882, "skipped": {"evidence_without_turn": 3, "without_evidence": 4}}),
    "dstc10": (12_039, 104, 104, {"instances": 263}),
    "earnings21": (44, 0, 0, {"tokens": 362_351, "turns": 3062, "speakers": 466}),
    **{
        f"xquad.{language}": (240, 1190, 1190, {"articles": 48})
        for language in ("ar", "de", "el", "en", "es", "hi", "ro", "ru", "th", "tr", "vi", "zh")
    },
}


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    mirror = settings.load().mirror
    if mirror is None or not (mirror / "xquad-7d30520c.tar.gz").exists():
        pytest.skip("no mirror with the corpora (LOSSMAP_MIRROR)")
    raw = tmp_path_factory.mktemp("raw")
    for key in sorted({normalise.base(key) for key in REAL}):
        fetch.fetch_one(registry.load()[key], raw, mirror)
    return raw


@pytest.mark.parametrize("key", REAL)
def test_real_counts(mirrored: Path, key: str) -> None:
    documents, queries, gold, report = REAL[key]
    reading = read(key, mirrored / normalise.base(key))
    assert (len(reading.meetings), len(reading.queries), len(reading.gold)) == (documents, queries, gold)
    assert {name: reading.report[name] for name in report} == report
    assert len({m.meeting_id for m in reading.meetings}) == documents
    assert len({q.query_id for q in reading.queries}) == queries and all(q.text for q in reading.queries)
    assert {g.query_id for g in reading.gold} == {q.query_id for q in reading.queries}


def test_the_groups_of_reme_and_the_sectors_of_earnings21(mirrored: Path) -> None:
    groups = read("reme.content", mirrored / "reme").report["domains"]
    assert sorted(groups.values()) == [96, 99, 110, 184, 207, 218]
    asked = read("reme.content-task", mirrored / "reme").report["query_domains"]
    assert sorted(asked.values()) == [96, 99, 110] and all(group.startswith("bfcl") for group in asked)
    sectors = read("earnings21", mirrored / "earnings21").report["domains"]
    assert Counter(sectors.values()) == {5: 8, 4: 1}


# Runs last: it alters what the others read.
@pytest.mark.parametrize("key", sorted({normalise.base(key) for key in REAL}))
def test_verify_sees_one_altered_byte(mirrored: Path, key: str) -> None:
    path = sorted(lock.load()[key])[-1]
    target = mirrored / key / path
    body = bytearray(target.read_bytes())
    body[len(body) // 2] ^= 1
    target.write_bytes(body)
    assert [problem.path for problem in lock.verify(mirrored, [key])[key]] == [path]
