"""Checks: each passes on what the generator wrote, fails on a corpus with just its property broken, and says where."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.synthetic import generate, validate, world
from lossmap.synthetic.frames import content_words
from lossmap.synthetic.scan import Scanner, naive

Row = dict[str, Any]
CHECKS = {f"V{number}" for number in range(1, 12)}
PLACE = re.compile(r"meetings/part-\d{4}\.jsonl T\d{3}-S\d-\d{4} turn \d+")


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("synthetic") / "corpus"
    generate.generate(world.Config(meetings=24, length=0.03, shard_size=10), folder, workers=1)
    return folder


class Corpus:
    """A generated folder in memory, to break and to write again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.queries = list(canon.read_jsonl(folder / "queries.jsonl"))
        self.facts = list(canon.read_jsonl(folder / "facts.jsonl"))
        self.parts = {p: list(canon.read_jsonl(p)) for p in sorted((folder / "meetings").glob("part-*.jsonl"))}
        self.qrels = (folder / "qrels-files.tsv").read_text().splitlines()
        self.meetings = {row["meeting_key"]: row for rows in self.parts.values() for row in rows}

    def base(self, rule: str) -> Row:
        return next(row for row in self.queries if row["rule"] == rule and row["surface"] == "exact")

    def wordings(self, rule: str) -> list[Row]:
        return [row for row in self.queries if row["base_id"] == self.base(rule)["query_id"]]

    def fact(self, rule: str, place: int = 0) -> Row:
        return [fact for fact in self.facts if fact["rule"] == rule][place]

    def turn(self, fact: Row, name: str = "last") -> Row:
        return self.meetings[fact["session"]]["turns"][fact[name]]

    def write(self) -> None:
        canon.write_jsonl(self.folder / "queries.jsonl", self.queries)
        canon.write_jsonl(self.folder / "facts.jsonl", self.facts)
        canon.write_text(self.folder / "qrels-files.tsv", "".join(f"{line}\n" for line in self.qrels))
        for path, rows in self.parts.items():
            canon.write_jsonl(path, rows)


def stray_anchor(corpus: Corpus) -> None:
    fact = corpus.fact("R1")
    other = next(row for key, row in corpus.meetings.items() if key != fact["session"])
    other["turns"][0]["content"] += f" {fact['anchor']}"


def answer_before_its_turn(corpus: Corpus) -> None:
    fact = corpus.fact("R1")
    first, last = corpus.turn(fact, "first"), corpus.turn(fact)
    first["content"], last["content"] = last["content"], first["content"]


def component_lost(corpus: Corpus) -> None:
    for row in corpus.wordings("R2"):
        row["components"] = row["components"][1:]


def count_off_by_one(corpus: Corpus) -> None:
    for row in corpus.wordings("R3"):
        row["answer"] += 1


def month_of_another_year(corpus: Corpus) -> None:
    base = corpus.base("R7")
    base["text"] = re.sub(r"20\d\d", "2031", base["text"])


def attendance_off_by_one(corpus: Corpus) -> None:
    for row in corpus.wordings("R6"):
        row["answer"]["sessions"] -= 1


def session_left_out(corpus: Corpus) -> None:
    lost = ""
    for row in corpus.wordings("R8"):
        lost = row["gold_files"].pop()
        uuid = corpus.meetings[lost]["file_uuid"]
        corpus.qrels.remove(f"{row['query_id']} 0 {uuid} 1")


def judgement_of_another_file(corpus: Corpus) -> None:
    query_id, zero, uuid, one = corpus.qrels[3].split()
    other = next(row["file_uuid"] for row in corpus.meetings.values() if row["file_uuid"] != uuid)
    corpus.qrels[3] = " ".join((query_id, zero, other, one))


def span_without_its_answer(corpus: Corpus) -> None:
    for row in corpus.wordings("R1"):
        for spans in row["gold_turns"].values():
            spans[0][1] = spans[0][0]


def anchor_in_an_anchor(corpus: Corpus) -> None:
    fact, inner = corpus.fact("R1", 0), corpus.fact("R1", 1)
    longer = f"{inner['anchor']}s"
    turn = corpus.turn(fact)
    turn["content"] = turn["content"].replace(fact["anchor"], longer)
    fact["anchor"] = longer


def span_beyond_the_meeting(corpus: Corpus) -> None:
    for row in corpus.wordings("R1v"):
        for key, spans in row["gold_turns"].items():
            spans[0][1] = len(corpus.meetings[key]["turns"])


def word_of_the_gold_text(corpus: Corpus) -> None:
    words = content_words(" ".join(re.findall(r"\b[a-z]{4,}", gold_text(corpus)))).values()
    corpus.wordings("R1")[1]["text"] += f" It is somewhere in the {max(words)}"


def gold_text(corpus: Corpus) -> str:
    fact = next(fact for fact in corpus.facts if fact["query"] == corpus.base("R1")["query_id"])
    return str(corpus.turn(fact, "first")["content"])


MUTATIONS: dict[Callable[[Corpus], None], str] = {
    stray_anchor: "V1",
    answer_before_its_turn: "V2",
    component_lost: "V3",
    count_off_by_one: "V4",
    month_of_another_year: "V4",
    attendance_off_by_one: "V5",
    session_left_out: "V6",
    judgement_of_another_file: "V7",
    span_without_its_answer: "V8",
    anchor_in_an_anchor: "V9",
    span_beyond_the_meeting: "V10",
    word_of_the_gold_text: "V11",
}


def test_every_check_runs_and_passes_on_a_generated_corpus(clean: Path) -> None:
    runs = validate.validate(clean)
    assert runs.keys() == CHECKS == validate.CHECKS.keys() and min(runs.values()) > 0


def test_every_check_has_a_mutation() -> None:
    assert set(MUTATIONS.values()) == CHECKS


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_broken_property_fails_its_check_alone_and_names_file_and_turn(
    mutation: Callable[[Corpus], None], clean: Path, tmp_path: Path
) -> None:
    corpus = Corpus(Path(shutil.copytree(clean, tmp_path / "broken")))
    mutation(corpus)
    corpus.write()
    _, failed = validate.outcomes(corpus.folder)
    assert {message.split()[0] for message in failed} == {MUTATIONS[mutation]}
    assert any(PLACE.search(message) for message in failed)
    with pytest.raises(LossmapError, match=rf"{MUTATIONS[mutation]} .*turn \d+"):
        validate.validate(corpus.folder)


def test_a_check_with_nothing_to_run_on_fails_and_names_the_missing_rule(clean: Path, tmp_path: Path) -> None:
    corpus = Corpus(Path(shutil.copytree(clean, tmp_path / "broken")))
    gone = {row["query_id"] for row in corpus.queries if row["rule"] == "R6"}
    corpus.queries = [row for row in corpus.queries if row["query_id"] not in gone]
    corpus.qrels = [line for line in corpus.qrels if line.split()[0] not in gone]
    corpus.write()
    with pytest.raises(LossmapError, match="V5 never ran: no query of R6 among 24 meetings"):
        validate.validate(corpus.folder)


def test_a_phrase_that_disfluency_would_split_is_missed(clean: Path, tmp_path: Path) -> None:
    corpus = Corpus(Path(shutil.copytree(clean, tmp_path / "broken")))
    fact = corpus.fact("R5")
    words = fact["anchor"].split(" ")
    turn = corpus.turn(fact)
    turn["content"] = turn["content"].replace(fact["anchor"], " ".join([words[0], "um,", *words[1:]]))
    corpus.write()
    _, failed = validate.outcomes(corpus.folder)
    assert {"V2", "V4", "V8"} <= {message.split()[0] for message in failed}


def test_a_folder_without_meetings_is_refused(clean: Path, tmp_path: Path) -> None:
    shutil.copytree(clean, tmp_path / "broken", ignore=shutil.ignore_patterns("part-*"))
    with pytest.raises(LossmapError, match="no meetings"):
        validate.validate(tmp_path / "broken")


def test_the_narrowed_scan_equals_the_naive_scan_on_a_corpus(clean: Path) -> None:
    phrases = {fact["anchor"] for fact in canon.read_jsonl(clean / "facts.jsonl")}
    scanner = Scanner(phrases)
    for part in sorted((clean / "meetings").glob("part-*.jsonl")):
        for row in map(json.loads, part.read_text().splitlines()):
            turns = [turn["content"] for turn in row["turns"]]
            assert scanner.scan(turns) == naive(turns, phrases)


TEXTS = st.text("aAbB1 .-_,'\nß", max_size=30)
PHRASES = st.sets(st.from_regex(r"[abB1]{1,2}([ .-][abB1]{1,2}){0,2}", fullmatch=True), min_size=1, max_size=4)


@given(st.lists(TEXTS, max_size=4), PHRASES)
def test_the_narrowed_scan_equals_the_naive_scan(turns: list[str], phrases: set[str]) -> None:
    assert Scanner(phrases).scan(turns) == naive(turns, phrases)
