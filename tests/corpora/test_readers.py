"""The QMSum reader on our fixture (records 0, 9, last), on broken files, and on upstream's where a mirror has them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lossmap import canon, settings, transcript
from lossmap.corpora import fetch, normalise, registry
from lossmap.corpora.readers import qmsum, select
from lossmap.errors import LossmapError
from lossmap.transcript import GoldSpan, Query

if TYPE_CHECKING:
    from conftest import World

FIXTURE = Path(__file__).parents[1] / "fixtures" / "qmsum"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return shutil.copytree(FIXTURE, tmp_path / "raw")


def read(folder: Path = FIXTURE, selection: dict[str, int] | None = None):
    return qmsum.read(registry.load()["fixture"], folder, selection)


def edit(folder: Path, name: str, change) -> Path:
    path = folder / "data/ALL" / name
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    return path


def test_probes_0_9_and_last() -> None:
    reading = read()
    assert [m.meeting_id for m in (reading.meetings[0], reading.meetings[-1])] == ["Bed901", "education_903"]
    assert reading.queries[0] == Query(
        "fixture:Bed901:000", "What was found about the crackle rate of cooling loaves?", "lookup", "Academic"
    )
    assert reading.queries[9] == Query(
        "fixture:Bmr902:004", "How many nights were recorded on the bridge?", "lookup", "Academic"
    )
    assert reading.queries[-1] == Query(
        "fixture:education_903:003", "Summarise what was said about the water temperature.", "summarize", "Committee"
    )
    assert reading.gold[0] == GoldSpan("fixture:Bed901:000", "Bed901", 2, 6)
    assert reading.gold[9] == GoldSpan("fixture:Bmr902:004", "Bmr902", 1, 5)
    assert reading.gold[-1] == GoldSpan("fixture:education_903:003", "education_903", 24, 29)


def test_blank_turns_keep_their_place() -> None:
    meeting = read().meetings[0]
    assert [turn.index for turn in meeting.turns] == list(range(33))
    assert [turn.index for turn in meeting.turns if not turn.text] == [13]
    assert meeting.title == "Fixture Academic — Bed901"


def test_report_of_the_fixture() -> None:
    report = read().report
    assert report["turns"] == {"all": 296, "blank": 9, "spoken": 287}
    assert report["domains"] == {"Academic": 3, "Committee": 3, "Product": 3}
    assert report["spans"] == {"validated": 44} and report["skipped"]["general_queries"] == 11
    assert report["recurring_queries"]["strings"] == 2 and report["recurring_queries"]["pairs"] == 4


@pytest.mark.parametrize("spans", [[["5", "4"]], [["0", "34"]], [["-1", "3"]]])
def test_a_span_reversed_or_out_of_range_names_the_file(copy: Path, spans: list[list[str]]) -> None:
    def change(document: dict) -> None:
        document["specific_query_list"][2]["relevant_text_span"] = spans

    path = edit(copy, "val/ES9001b.json", change)
    with pytest.raises(LossmapError, match="reversed or out of range") as caught:
        read(copy)
    assert str(path) in str(caught.value) and "fixture:ES9001b:002" in str(caught.value)


def test_malformed_files_are_named(copy: Path) -> None:
    path = copy / "data/ALL/val/ES9001b.json"
    whole = path.read_bytes()
    for body, said in ((whole[:-40], "a JSON document"), (b"{}", "QMSum's fields"), (b"\xff", "a JSON document")):
        path.write_bytes(body)
        with pytest.raises(LossmapError, match=said) as caught:
            read(copy)
        assert str(path) in str(caught.value)


def test_an_unknown_domain_and_a_meeting_twice_are_refused(copy: Path) -> None:
    source = copy / "data/ALL/val/ES9001b.json"
    twin = copy / "data/ALL/test/ES9001b.json"
    shutil.copy(source, twin)
    with pytest.raises(LossmapError, match="the same meeting as"):
        read(copy)
    twin.rename(copy / "data/ALL/test/XX1.json")
    with pytest.raises(LossmapError, match="meeting XX1"):
        read(copy)


def test_an_entry_without_spans_is_skipped_and_counted_and_positions_stay(copy: Path) -> None:
    def change(document: dict) -> None:
        document["specific_query_list"][0]["relevant_text_span"] = []

    edit(copy, "train/Bed901.json", change)
    reading = read(copy)
    assert reading.report["skipped"]["without_spans"] == 1 and reading.queries[0].query_id == "fixture:Bed901:001"


def test_defect_rules_see_shared_and_repeated_queries(copy: Path) -> None:
    shared = json.loads((copy / "data/ALL/train/Bed901.json").read_text())["specific_query_list"]

    def share(document: dict) -> None:
        document["specific_query_list"] = [*shared, shared[0]]

    edit(copy, "train/Bmr902.json", share)
    met = {(d["rule"], *d["meetings"]) for d in read(copy).report["defects"]}
    assert met == {("shared_queries", "Bed901", "Bmr902"), ("repeated_queries", "Bmr902")}


def test_query_class_looks_at_the_first_word_only() -> None:
    texts = ["Summarize it.", "SUMMARISE it", "Describe it", "What did they summarize?", "To describe"]
    assert [qmsum.query_class(t) for t in texts] == ["summarize"] * 3 + ["lookup"] * 2


def test_selection_takes_the_first_of_each_domain_by_id() -> None:
    pairs = [("b2", "B"), ("a3", "A"), ("a1", "A"), ("a2", "A"), ("b1", "B")]
    assert select(pairs, {"per_domain": 2}) == {"a1", "a2", "b1", "b2"} and len(select(pairs, None)) == 5
    reading = read(selection={"per_domain": 1})
    assert {m.meeting_id for m in reading.meetings} == {"Bed901", "ES9001a", "covid_901"}
    assert {g.meeting_id for g in reading.gold} == {"Bed901", "ES9001a", "covid_901"}


def test_normalise_writes_the_contract_twice_alike(world: World, tmp_path: Path) -> None:
    fetch.obtain("tiny", world.raw, mirror=world.mirror)
    outs = [tmp_path / "one", tmp_path / "two"]
    for out in outs:
        normalise.normalise("tiny", world.raw / "tiny", out)
    names = ["meetings.jsonl", "queries.jsonl", "gold.jsonl", "corpus.json"]
    assert all((outs[0] / name).read_bytes() == (outs[1] / name).read_bytes() for name in names)
    card = canon.read_json(outs[0] / "corpus.json")
    assert card["counts"] == {"meetings": 9, "queries": 42, "gold": 44}
    assert (card["key"], card["tier"], card["licence"], card["judged_by"]) == ("tiny", "A", "CC0-1.0", "constructed")
    assert len(transcript.read_meetings(outs[0])) == 9


def test_normalise_refuses_a_raw_file_that_changed(world: World, tmp_path: Path) -> None:
    fetch.obtain("tiny", world.raw, mirror=world.mirror)
    (world.raw / "tiny/data/ALL/val/ES9001b.json").write_text("{}")
    with pytest.raises(LossmapError, match="1 of 10 files"):
        normalise.normalise("tiny", world.raw / "tiny", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_real_counts(tmp_path: Path) -> None:
    mirror = settings.load().mirror
    if mirror is None or not (mirror / "qmsum-83d7768c.tar.gz").exists():
        pytest.skip("no mirror with QMSum (LOSSMAP_MIRROR)")
    record = fetch.obtain("qmsum", tmp_path, strict=True)
    assert record["files"] == 234 and record["bytes"] == 23_228_913
    normalise.normalise("qmsum", tmp_path / "qmsum", tmp_path / "out")
    card = canon.read_json(tmp_path / "out" / "corpus.json")
    assert card["counts"] == {"meetings": 232, "queries": 1576, "gold": 1740}
    assert card["domains"] == {"Academic": 59, "Committee": 36, "Product": 137}
    assert card["turns"] == {"all": 129_177, "blank": 115, "spoken": 129_062}
    assert card["speakers"] == 2145 and card["spans"]["validated"] == 1740
    assert card["query_classes"] == {"lookup": 1172, "summarize": 404}
    assert card["query_domains"] == {"Academic": 312, "Committee": 417, "Product": 847}
    assert card["skipped"] == {"general_queries": 234, "without_spans": 0}
    assert (card["recurring_queries"]["strings"], card["recurring_queries"]["pairs"]) == (14, 40)
    defects = {tuple(d["meetings"]): d["present"] for d in card["defects"]}
    assert defects[("Bed005", "Bmr006")] is False and defects[("ES2015d", "TS3010d")] is True
    assert defects[("Bed008",)] is None and defects[("Bmr023",)] is None
