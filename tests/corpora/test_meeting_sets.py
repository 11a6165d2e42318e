"""Query sets over QMSum's meetings: files of our own in upstream's formats, and upstream's where a mirror has them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lossmap import canon, settings
from lossmap.corpora import fetch, normalise, nxt, registry
from lossmap.corpora.readers import Reading, ami_summlink, explainmeetsum
from lossmap.errors import LossmapError
from lossmap.transcript import GoldSpan, Meeting, Query, Turn

ROLES = {"Project Manager": "A", "Industrial Designer": "B", "User Interface": "C", "Marketing": "D"}
SHORT = {"Project Manager": "PM", "Industrial Designer": "ID", "User Interface": "UI", "Marketing": "ME"}
COLOURS = ("amber", "beige", "coral", "denim", "ebony", "flint", "green", "hazel", "ivory", "jade", "khaki", "lilac")
MEETINGS = ("ES9001a", "ES9001b", "TS9001a")


def meeting(meeting_id: str) -> Meeting:
    """A turn a colour, the four speakers in turn."""
    turns = tuple(
        Turn(i, list(ROLES)[i % 4], f"The {colour} case {{vocalsound}} won 't fit . Ask number {i} .")
        for i, colour in enumerate(COLOURS)
    )
    return Meeting(meeting_id, meeting_id, "Product", "en", None, turns)


DOCUMENTS = [meeting(m) for m in MEETINGS]


def evidence(kind: str, turn: int, **change: object) -> dict[str, object]:
    source = meeting("x").turns[turn]
    row = {
        "type": kind,
        "turn_index": turn,
        "sent_index": 1,
        "speaker": source.speaker,
        "content": f"Ask number {turn} .",
    }
    return {**row, **change}


@pytest.fixture
def explained(tmp_path: Path) -> Path:
    for meeting_id in (*MEETINGS, "covid_9"):
        answers = {
            "query": " Summarize the case . ",
            "tokenized_answer": ["The case won 't fit .", "Nobody asked .", "It is jade ."],
            "evidence": [[evidence("PES", 3), evidence("CES", 3), evidence("PES", 5)], [], [evidence("PES", 9)]],
        }
        other = {"query": "Which number?", "tokenized_answer": ["Two .", "Four ."]}
        document = {
            "ami": {"tokenized_answer": ["NA."], "evidence": [[]]},
            "icsi": {},
            "qmsum": {
                "general_query_list": [],
                "specific_query_list": [
                    answers,
                    {**other, "evidence": [[evidence("CES", 2)], [evidence("PES", 4)]]},
                    {**other, "evidence": [[], []]},
                ],
            },
        }
        canon.write_json(tmp_path / "data/SummaryEvidence/val" / f"{meeting_id}.json", document)
    return tmp_path


def explain(folder: Path, name: str) -> Reading:
    return explainmeetsum.read(registry.query_set(f"explainmeetsum.{name}"), folder, documents=DOCUMENTS)


def test_explained_claims_probes_0_middle_last(explained: Path) -> None:
    reading = explain(explained, "claims")
    key = "explainmeetsum.claims"
    assert reading.meetings == [] and len(reading.queries) == 12
    assert reading.queries[0] == Query(f"{key}:ES9001a:0000", "The case won 't fit .", "lookup", "Product")
    assert reading.queries[9] == Query(f"{key}:TS9001a:0002", "It is jade .", "lookup", "Product")
    assert reading.queries[-1] == Query(f"{key}:TS9001a:0004", "Four .", "lookup", "Product")
    assert reading.gold[0] == GoldSpan(f"{key}:ES9001a:0000", "ES9001a", 3, 3, 2)
    assert reading.gold[1] == GoldSpan(f"{key}:ES9001a:0000", "ES9001a", 5, 5, 1)
    assert reading.gold[-1] == GoldSpan(f"{key}:TS9001a:0004", "TS9001a", 4, 4, 1)
    assert reading.report["skipped"] == {"without_evidence": 9} and reading.report["evidence_files"] == 3
    assert reading.report["evidence_sentences"] == {"verified": 18, "CES": 6, "PES": 12}


def test_explained_queries_take_the_evidence_of_all_their_sentences(explained: Path) -> None:
    reading = explain(explained, "specific-fine")
    assert [(q.text, q.query_class) for q in reading.queries[:2]] == [
        ("Summarize the case .", "summarize"),
        ("Which number?", "lookup"),
    ]
    first = [(g.first, g.grade) for g in reading.gold if g.query_id == "explainmeetsum.specific-fine:ES9001a:0000"]
    assert first == [(3, 2), (5, 1), (9, 1)] and reading.report["skipped"] == {"without_evidence": 3}
    assert explain(explained, "icsi-summaries").queries == [] == explain(explained, "ami-summaries").queries


@pytest.mark.parametrize(
    "wrong",
    [{"speaker": "Marketing X"}, {"turn_index": 12}, {"turn_index": -1}, {"content": "Ask nobody ."}, {"type": "X"}],
)
def test_evidence_that_is_not_in_its_turn_names_the_file(explained: Path, wrong: dict[str, object]) -> None:
    path = explained / "data/SummaryEvidence/val/ES9001b.json"
    document = json.loads(path.read_text())
    document["qmsum"]["specific_query_list"][1]["evidence"][0] = [evidence("CES", 2, **wrong)]
    path.write_text(json.dumps(document))
    with pytest.raises(LossmapError, match="stands in its QMSum turn") as caught:
        explain(explained, "claims")
    assert str(path) in str(caught.value)


def write_ami(folder: Path) -> Path:
    """Word files of DOCUMENTS in NXT form: a word every half second, punctuation untouched by times of its own."""
    head = '<?xml version="1.0" encoding="ISO-8859-1"?>\n<nite:root xmlns:nite="http://nite.sourceforge.net/">'
    seats = "".join(f'<speaker nxt_agent="{agent}" role="{SHORT[role]}"/>' for role, agent in ROLES.items())
    rooms = "".join(
        f'<meeting observation="{m}" dateOnly="0{i + 1}-11-04">{seats}</meeting>' for i, m in enumerate(MEETINGS)
    )
    files = {"corpusResources/meetings.xml": rooms}
    for m in MEETINGS:
        files[f"abstractive/{m}.abssumm.xml"] = (
            f'<abstract><sentence nite:id="{m}.s.1">The case  is wrong.</sentence></abstract>'
            f'<decisions><sentence nite:id="{m}.s.2">*NA*</sentence>'
            f'<sentence nite:id="{m}.s.3">Ask again.</sentence>'
            f'<sentence nite:id="{m}.s.4">Unlinked.</sentence></decisions>'
        )
        files[f"extractive/{m}.summlink.xml"] = "".join(
            f'<summlink><nite:pointer role="extractive" href="{m}.{agent}.dialog-act.xml#id({m}.{agent}.{act})"/>'
            f'<nite:pointer role="abstractive" href="{m}.abssumm.xml#id({m}.s.{sentence})"/></summlink>'
            for agent, act, sentence in (("A", 0, 1), ("B", 1, 1), ("C", 0, 3), ("D", 2, 2))
        )
        for seat, agent in enumerate("ABCD"):
            words, acts = _words(m, seat, agent)
            files[f"words/{m}.{agent}.words.xml"] = words
            files[f"dialogueActs/{m}.{agent}.dialog-act.xml"] = acts
    for name, body in files.items():
        canon.write_text(folder / name, f"{head}{body}</nite:root>")
    return folder


def _words(m: str, seat: int, agent: str) -> tuple[str, str]:
    elements, acts = [], []
    for act, turn in enumerate(meeting(m).turns[seat::4]):
        first, clock = len(elements), 10.0 * turn.index
        for word in turn.text.replace("won 't", "won't").split():
            name = f'nite:id="{m}.{agent}.words{len(elements)}"'
            times = f'starttime="{clock}" endtime="{clock + 0.5}"'
            marks = {".": f'<w {name} {times} punc="true">.</w>', "{vocalsound}": f"<vocalsound {name} {times}/>"}
            elements.append(marks.get(word, f"<w {name} {times}>{word}</w>"))
            clock += 0 if word == "." else 0.5
        span = f"id({m}.{agent}.words{first})..id({m}.{agent}.words{len(elements) - 1})"
        acts.append(f'<dact nite:id="{m}.{agent}.{act}"><nite:child href="{m}.{agent}.words.xml#{span}"/></dact>')
    return "".join(elements), "".join(acts)


def test_summary_links_reach_the_turns_of_their_acts(tmp_path: Path) -> None:
    reading = ami_summlink.read(registry.query_set("ami.summlink"), write_ami(tmp_path), documents=DOCUMENTS)
    key = "ami.summlink"
    assert reading.meetings == [] and len(reading.queries) == 6
    assert reading.queries[0] == Query(f"{key}:ES9001a:0000", "The case is wrong.", "lookup", "Product")
    assert reading.queries[3] == Query(f"{key}:ES9001b:0002", "Ask again.", "lookup", "Product")
    assert reading.queries[-1] == Query(f"{key}:TS9001a:0002", "Ask again.", "lookup", "Product")
    assert [(g.meeting_id, g.first, g.last, g.grade) for g in reading.gold[:3]] == [
        ("ES9001a", 0, 0, 1),
        ("ES9001a", 5, 5, 1),
        ("ES9001a", 2, 2, 1),
    ]
    assert reading.report["links"] == {"all": 12, "mapped": 12}
    assert reading.report["skipped"] == {"placeholder": 3, "without_linked_turns": 3}


def test_nxt_dates_agents_and_words(tmp_path: Path) -> None:
    folder = write_ami(tmp_path)
    assert nxt.dates(folder) == {"ES9001a": "2004-11-01", "ES9001b": "2004-11-02", "TS9001a": "2004-11-03"}
    assert nxt.iso_date("16-06-2014") == "2014-06-16"
    assert nxt.sessions(folder)["ES9001a"].agents == {"PM": "A", "ID": "B", "UI": "C", "ME": "D"}
    words = nxt.words(folder / "words/ES9001a.B.words.xml")
    assert [w.text for w in words[:6]] == ["The", "beige", "case", "{vocalsound}", "won't", "fit"]
    assert (words[6].text, words[6].position, words[6].start) == ("Ask", 7, 13.0)
    (folder / "words/ES9001a.B.words.xml").write_text("<nite:root")
    with pytest.raises(LossmapError, match="no XML"):
        nxt.words(folder / "words/ES9001a.B.words.xml")


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    mirror = settings.load().mirror
    if mirror is None or not (mirror / "ami-manual-1.6.2-6d845bc0.tar.gz").exists():
        pytest.skip("no mirror with QMSum, ExplainMeetSum and AMI (LOSSMAP_MIRROR)")
    folder = tmp_path_factory.mktemp("meeting-sets")
    for key in ("qmsum", "explainmeetsum", "ami"):
        fetch.obtain(key, folder / "raw", strict=True)
    normalise.normalise("qmsum", folder / "raw" / "qmsum", folder / "qmsum")
    return folder


@pytest.mark.parametrize(
    ("name", "queries", "gold", "meetings", "dropped", "verified"),
    [
        ("claims", 4999, 11_088, 231, 10, 14_785),
        ("general-claims", 1353, 4996, 231, 4, 6952),
        ("specific-fine", 1568, 9690, 231, 2, 14_785),
        ("icsi-summaries", 1365, 4156, 59, 6, 5500),
        ("ami-summaries", 2492, 7960, 137, 48, 10_141),
    ],
)
def test_real_explained_counts(
    upstream: Path, name: str, queries: int, gold: int, meetings: int, dropped: int, verified: int
) -> None:
    key = f"explainmeetsum.{name}"
    card = normalise.normalise(key, upstream / "raw" / "explainmeetsum", upstream / key)
    assert card["counts"] == {"meetings": 0, "queries": queries, "gold": gold}
    assert card["meetings_with_queries"] == meetings and card["skipped"] == {"without_evidence": dropped}
    assert card["evidence_sentences"]["verified"] == verified and card["evidence_files"] == 231
    assert card["documents"] == "qmsum" and card["tier"] == "A"


def test_real_summary_links(upstream: Path) -> None:
    card = normalise.normalise("ami.summlink", upstream / "raw" / "ami", upstream / "ami.summlink")
    assert card["counts"] == {"meetings": 0, "queries": 2421, "gold": 15_761}
    assert card["links"] == {"all": 22_100, "mapped": 22_094}
    assert card["skipped"] == {"placeholder": 47, "without_linked_turns": 72}
