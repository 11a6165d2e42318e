"""Talk: its shape by register, plants whole and in place, times that only go forward, and text without slips."""

from __future__ import annotations

import re
from collections import Counter
from statistics import median
from typing import Any

import pytest

from lossmap.errors import LossmapError
from lossmap.synthetic import grammar
from lossmap.synthetic.acts import Talk
from lossmap.synthetic.disfluency import PLAIN_FILLERS, Disfluency
from lossmap.synthetic.grammar import Compiler
from lossmap.synthetic.pools import FORMAL, INTERACTIVE
from lossmap.synthetic.render import render
from lossmap.synthetic.rng import Rng
from lossmap.synthetic.speech import Voice
from lossmap.synthetic.world import Config, Plant, PlantTurn, Session, World, build

WORLD = build(Config(meetings=120))


def of(register: str, world: World = WORLD) -> list[Session]:
    return [session for session in world.sessions if world.series_of(session.series_id).register == register]


@pytest.fixture(scope="module")
def meetings() -> dict[str, list[dict[str, Any]]]:
    return {name: [render(WORLD, session)[0] for session in of(name)[:24]] for name in ("interactive", "formal")}


def spoken(row: dict[str, Any]) -> list[str]:
    return [turn["content"] for turn in row["turns"]]


@pytest.mark.parametrize("register", [INTERACTIVE, FORMAL])
def test_the_shape_of_a_register(meetings: dict[str, Any], register: Any) -> None:
    rows = meetings[register.name]
    words = [len(text.split()) for row in rows for text in spoken(row)]
    assert sum(count <= 4 for count in words) / len(words) == pytest.approx(register.short_turns, abs=0.03)
    assert median(row["word_count"] for row in rows) == pytest.approx(register.words, rel=0.3)
    low, high = register.speakers
    assert all(3 <= len(row["speakers"]) <= high for row in rows) and max(len(r["speakers"]) for r in rows) > low


def test_formal_turns_outgrow_a_chunk_and_interactive_ones_do_not(meetings: dict[str, Any]) -> None:
    longest = {name: max(len(text.split()) for row in rows for text in spoken(row)) for name, rows in meetings.items()}
    assert longest["formal"] > 250 and longest["interactive"] < 200


def test_a_row_counts_and_names_itself(meetings: dict[str, Any]) -> None:
    for row in meetings["interactive"] + meetings["formal"]:
        people = {person["speaker_id"]: person["name"] for person in row["speakers"]}
        assert row["turn_count"] == len(row["turns"])
        assert row["word_count"] == sum(len(text.split()) for text in spoken(row))
        assert [turn["index"] for turn in row["turns"]] == list(range(row["turn_count"]))
        assert all(people[turn["speaker_id"]] == turn["speaker"] for turn in row["turns"])
        assert row["turns"][0]["speaker_id"] == row["turns"][-1]["speaker_id"] == row["speakers"][0]["speaker_id"]
        assert all(name in " ".join(spoken(row)) for name in row["agenda"])


def test_times_go_forward(meetings: dict[str, Any]) -> None:
    for row in meetings["interactive"] + meetings["formal"]:
        starts = [turn["start"] for turn in row["turns"]]
        assert starts[0] >= 0 and all(b - a >= 0.245 for a, b in zip(starts, starts[1:]))
        assert all(turn["end"] > turn["start"] and round(turn["end"], 2) == turn["end"] for turn in row["turns"])
        assert row["duration_seconds"] == max(turn["end"] for turn in row["turns"])


SLIPS = {
    "a digit": r"\d",
    "a template's slot": r"[{}|()]",
    "a doubled word": r"\b([A-Za-z]+) \1\b",
    "a stray space": r"  | [.?!;:]|,,|\?\.|,\.",
    "no full stop": r"[^.?!]$",
    "a small letter first": r"^[a-z]|[.?!] [a-z]",
    "a wrong article": r"\b[Aa] [aeio]\w*|\b[Aa]n [^aeiouh\W]",
    "a full name": "|".join(re.escape(person.name) for team in WORLD.teams for person in team.roster),
    "a bare project": r"(?:{})(?!['.,;:?!]| (?:isn't|is|was|has|side|thread)\b)".format(
        "|".join(topic.name for team in WORLD.teams for topic in team.topics if topic.kind == "project")
    ),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_no_turn_has(meetings: dict[str, Any], slip: str) -> None:
    pattern = re.compile(SLIPS[slip])
    found = [text for rows in meetings.values() for row in rows for text in spoken(row) if pattern.search(text)]
    assert found == []


def test_long_sentences_seldom_repeat(meetings: dict[str, Any]) -> None:
    for rows in meetings.values():
        sentences = [s for row in rows for text in spoken(row) for s in re.split(r"(?<=[.?!]) ", text)]
        counts = Counter(s for s in sentences if len(s.split()) >= 8)
        assert len(counts) / counts.total() > 0.95


def test_nobody_follows_themselves(meetings: dict[str, Any]) -> None:
    for row in meetings["interactive"] + meetings["formal"]:
        speakers = [turn["speaker_id"] for turn in row["turns"]]
        runs = sum(a == b for a, b in zip(speakers, speakers[1:]))
        assert runs <= 0.25 * len(speakers)  # after a back-channel the main speaker or the chair may go on


ANCHORS = ("QX-4821", "3 May 2026", "the Copper Thistle readiness drill", "1,250 requests per second")


def plants(session: Session) -> list[Plant]:
    fact = [
        Plant(f"{session.key}-{n}", session.key, (
            PlantTurn("so what did we put down for the parcel relay in the end, does anybody have it in front of them"),
            PlantTurn(f"as far as the sheet says it was {anchor} and nobody has asked for anything else since", anchor),
        ))
        for n, anchor in enumerate(ANCHORS)
    ]  # fmt: skip
    text = f"we spent the morning on {ANCHORS[2]} and it was worth every minute of it, I would do it again"
    return [*fact, Plant(f"{session.key}-m", session.key, (PlantTurn(text, ANCHORS[2]),))]


@pytest.mark.parametrize("register", ["interactive", "formal"])
def test_plants_stand_whole_in_the_turns_that_are_reported(register: str) -> None:
    for session in of(register)[:12]:
        row, positions = render(WORLD, session, plants(session))
        texts, seen = spoken(row), []
        assert positions.keys() == {plant.plant_id for plant in plants(session)}
        for plant in plants(session):
            first, last = positions[plant.plant_id]
            assert last - first + 1 == len(plant.turns)
            assert plant.turns[-1].anchor in texts[last]
            seen.append((first + last) / 2 / len(texts))
            if first != last:
                assert row["turns"][first]["speaker_id"] != row["turns"][last]["speaker_id"]
            for turn, text in zip(plant.turns, texts[first : last + 1]):
                extra = set(re.findall(r"\w+", text.lower())) - set(re.findall(r"\w+", turn.text.lower()))
                assert extra <= set(PLAIN_FILLERS)
        assert min(seen) > 0.03 and max(seen) < 0.97 and max(seen) - min(seen) > 0.3


def test_plants_do_not_disturb_each_others_order_by_chance_alone() -> None:
    orders = set()
    for session in of("formal")[:10]:
        positions = render(WORLD, session, plants(session))[1]
        orders.add(tuple(plant_id[-1] for plant_id in sorted(positions, key=positions.__getitem__)))
    assert len(orders) > 5


def test_a_filler_never_splits_an_anchor() -> None:
    anchor = "postpone the copper thistle cutover until the end of the year"  # lower case all through: easy to split
    disfluency = Disfluency(Rng(3), INTERACTIVE)
    said = [
        disfluency.plant(f"we agreed to {anchor} and then to look again at what is left", anchor) for _ in range(500)
    ]
    assert all(anchor in text for text in said)
    assert len(set(said)) > 20


def test_the_length_scales_the_talk_and_its_floor() -> None:
    short = build(Config(meetings=60, length=0.1))
    rows = [render(short, session)[0] for session in of("interactive", short)[:10]]
    assert median(row["word_count"] for row in rows) == pytest.approx(700, rel=0.4)


@pytest.mark.parametrize("line", ["an {unknown} slot", "an (open|bar", "a bar | outside", "a stray ) here"])
def test_a_template_that_cannot_be_read_names_itself(line: str) -> None:
    with pytest.raises(LossmapError, match=re.escape(line)):
        Compiler({"known": "one\ntwo"}, frozenset({"slot"})).template(line)


@pytest.mark.parametrize("register", ["interactive", "formal"])
def test_every_act_has_its_templates(register: str) -> None:
    voice = Voice(Rng(1), WORLD, of(register)[0])
    acts: Counter[str] = Counter()
    for path, lines in grammar.templates(register, voice.slots).items():
        acts[path.split(".")[0]] += len(lines)
    assert all(acts[act] >= 25 for act in ("report", "more", "ask", "worry", "task", "propose", "backchannel", "plan"))


def test_the_first_item_follows_no_other(meetings: dict[str, Any]) -> None:
    before = re.compile(
        r"previous item|thank the speakers|that discussion|that item|[Mm]oving on|That brings us|keep going"
    )
    for row in meetings["interactive"] + meetings["formal"]:
        call = [t["content"] for t in row["turns"] if t["speaker_id"] == row["speakers"][0]["speaker_id"]][:2]
        assert not any(before.search(text) for text in call)


def test_nobody_thanks_themselves(meetings: dict[str, Any]) -> None:
    for row in meetings["interactive"] + meetings["formal"]:
        for turn in row["turns"]:
            assert not re.search(rf"(Thank you|Thanks), {turn['speaker'].split(' ')[0]}\b", turn["content"])


def test_a_thanking_back_channel_names_the_main_speaker_after_a_plant() -> None:
    voice = Voice(Rng(2), WORLD, of("formal")[0])
    first, main, last = voice.session.attendees[:3]
    voice.prev = first  # stale: plants are spoken past the voice
    said = [Talk(voice, Rng(seed)).bystander(last, main) for seed in range(60)]
    names = {match[1] for one in said if (match := re.match(r"Thank you, (\w+)\.", one.sentences[0]))}
    assert names - {"Chair"} == {main.first_name} and all(one.speaker not in (last, main) for one in said)
