"""Measured times: tokens, pairing, all or nothing a meeting, interpolation, and upstream's figures where they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from lossmap import canon, settings, transcript
from lossmap.corpora import alignment, fetch, mrda, normalise, timing, timings
from lossmap.corpora.nxt import Word
from lossmap.errors import LossmapError
from lossmap.transcript import Meeting, Turn


def meeting(*turns: tuple[str, str]) -> Meeting:
    return Meeting("m", "m", "d", "en", None, tuple(Turn(i, who, text) for i, (who, text) in enumerate(turns)))


def words(text: str, start: float = 0.0) -> list[Word]:
    return [Word(i, word, start + i, start + i + 0.5) for i, word in enumerate(text.split())]


def test_tokens_join_clitics_and_letters_and_keep_events_on_request() -> None:
    text = "I 'm OK {vocalsound} , L_C_D_ 's F - seven {pause} don't 'kay ."
    assert alignment.tokens(text, False) == ["i'm", "ok", "lcd's", "f", "seven", "don't", "'kay"]
    assert alignment.tokens(text, True) == ["i'm", "ok", "{vocalsound}", "lcd's", "f", "seven", "don't", "'kay"]
    assert alignment.tokens("{vocalsound} 's .. .", True) == ["{vocalsound}", "'s"]


def test_turns_are_paired_by_speaker_and_never_by_index() -> None:
    found = alignment.align(
        meeting(("A", "one two three"), ("B", "two two"), ("A", ""), ("A", "four five"), ("A", "six seven eight")),
        {"A": words("one two extra three four lost six"), "B": words("two other", 100)},
        events=False,
    )
    assert (found.turns, found.tokens, found.matched) == (4, 10, 6)
    assert found.spans == {0: (0, 3.5), 1: (100, 100.5), 3: (4, 4.5), 4: (6, 6.5)}
    assert found.aligned == {0, 1, 3} and found.rate == 0.75 and not found.real
    assert found.places == {("A", 0): 0, ("A", 1): 0, ("A", 3): 0, ("A", 4): 3, ("A", 6): 4, ("B", 0): 1}


def test_stragglers_share_the_gap_between_timed_neighbours() -> None:
    talk = meeting(
        ("A", "x"), ("A", "a"), ("A", "x"), ("A", ""), ("A", "x"), ("A", "b"), ("A", "x"), ("A", "c"), ("A", "x")
    )
    found = alignment.Alignment(8, spans={1: (10, 12), 5: (20, 21), 7: (20.5, 22)}, aligned={1, 5, 7})
    rows, interpolated = alignment.complete(talk, found)
    assert rows == [
        (0, 9.99, 10.0),
        (1, 10, 12),
        (2, 12.0, 16.0),
        (4, 16.0, 20.0),
        (5, 20, 21),
        (6, 21.0, 21.01),
        (7, 20.5, 22),
        (8, 22.0, 22.01),
    ]
    assert interpolated == 5


def test_a_record_gives_real_turns_and_a_synthetic_one_falls_back() -> None:
    talk = meeting(("A", "one two three four five"), ("A", ""), ("B", "yes"))
    made = {"timing_source": "real", "interpolated": 1, "tier": "A"}
    record = {"turns": [[0, 5.0, 7.5], [2, 6.0, 6.2]], "provenance": made}
    turns, provenance = timing.real(talk, record)
    assert [(t.start, t.end) for t in turns] == [(5.0, 7.5), (None, None), (6.0, 6.2)]
    assert (provenance["timing_source"], provenance["filled"], provenance["params"]) == ("real", 1, {})
    for fallback in (None, {"turns": [], "provenance": {**made, "timing_source": "synthetic"}}):
        turns, provenance = timing.real(talk, fallback)
        assert turns == timing.timed(talk.turns)[0] and provenance["timing_source"] == "synthetic"
        assert provenance["filled"] == 2 and provenance.get("tier") == (fallback and "A")
    with pytest.raises(LossmapError, match="another transcript"):
        timing.real(talk, {**record, "turns": record["turns"][:1]})


def test_mrda_letters_are_the_ranks_of_channels(tmp_path: Path) -> None:
    lines = [
        "0,1,x,A,0.5+0.7+o_k|XXXX+XXXX+{@@},z,Bed901-c1,me,z",
        "1,2,x,A,1.0+1.2+i've|1.2+1.5+<hm>,z,Bed901-cb,fe,z",
        "2,3,x,Z,XXXX+XXXX+gone,z,Bed901-c4,me,z",
    ]
    canon.write_text(tmp_path / mrda.DATABASE / "Bed901.dadb", "\n".join(lines) + "\n")
    talk = Meeting("Bed901", "", "Academic", "en", None, tuple(Turn(i, f"Grad {c}", "x") for i, c in enumerate("CABJ")))
    found = mrda.channels({}, tmp_path, talk)
    assert found == {
        "Grad A": [Word(0, "o_k", 0.5, 0.7)],
        "Grad B": [],
        "Grad C": [Word(0, "i've", 1.0, 1.2), Word(1, "hm", 1.2, 1.5)],
    }
    assert mrda.dates(tmp_path) == {"Bed901": None}


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(LossmapError, match="no such timing rule") as caught:
        timings.time_meetings("ami", Path("nowhere"), [])
    assert "ami-events" in str(caught.value)


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    mirror = settings.load().mirror
    if mirror is None or not (mirror / "ami-manual-1.6.2-6d845bc0.tar.gz").exists():
        pytest.skip("no mirror with QMSum, AMI and the MRDA copy (LOSSMAP_MIRROR)")
    folder = tmp_path_factory.mktemp("timings")
    for key in ("qmsum", "ami", "icsi-mrda"):
        fetch.obtain(key, folder, strict=True, accept_noncommercial=True)
    normalise.normalise("qmsum", folder / "qmsum", folder / "normal")
    return folder


@pytest.mark.parametrize(
    ("rule", "real", "meetings", "dated", "turns", "aligned", "worst"),
    [
        ("ami-words", 130, 137, 137, 73_379, 67_016, 0.720238),
        ("ami-events", 137, 137, 137, 73_379, 73_362, 0.989936),
        ("icsi-words", 59, 59, 0, 48_208, 48_181, None),
    ],
)
def test_real_figures(
    upstream: Path, rule: str, real: int, meetings: int, dated: int, turns: int, aligned: int, worst: float | None
) -> None:
    talks = transcript.read_meetings(upstream / "normal")
    rows = timings.time_meetings(rule, upstream / timings.RULES[rule].reference, talks)
    found = timings.summary(rows)
    assert (found["real"], found["meetings"], found["dated"]) == (real, meetings, dated)
    assert (found["turns"], found["aligned_turns"]) == (turns, aligned)
    assert worst is None or found["worst"][0]["rate"] == worst
    assert found["blank"] == (113 if rule == "icsi-words" else 0)
    by_id = {talk.meeting_id: talk for talk in talks}
    for row in rows[:3]:
        timing.real(by_id[row["meeting_id"]], row)
