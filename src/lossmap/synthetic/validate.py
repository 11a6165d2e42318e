"""Checks of a generated folder (spec/harness 4.7): gold is derived again from the written text, never from its book."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from lossmap.errors import LossmapError
from lossmap.synthetic.frames import shared_words
from lossmap.synthetic.written import PHRASES, Row, Written, asked, read
from lossmap.transcript import MONTHS

SHOWN = 10

Outcomes = Iterator[str | None]  # None for what holds, else what does not and where


def validate(folder: Path | str) -> dict[str, int]:
    """How often each check ran. Raises LossmapError where one fails, or where one had nothing to run on."""
    runs, failed = outcomes(folder)
    if failed:
        shown = "\n    ".join(failed[:SHOWN])
        raise LossmapError(
            "a synthetic corpus fails its checks",
            where=folder,
            observed=f"{len(failed)} failures\n    {shown}",
            expected="gold that the written text bears out",
            next_command="generate the corpus again; with more meetings where a check never ran",
        )
    return runs


def outcomes(folder: Path | str) -> tuple[dict[str, int], list[str]]:
    """How often each check ran, and every failure: its check, file, meeting and turn."""
    written = read(Path(folder))
    runs: dict[str, int] = {}
    failed: list[str] = []
    for name, check in CHECKS.items():
        found = list(check(written))
        runs[name] = len(found)
        failed += [f"{name} {message}" for message in found if message is not None]
        if not found:
            failed.append(f"{name} never ran: {_absent(written)}")
    return runs, failed


def _absent(written: Written) -> str:
    """Which rules have no query."""
    absent = sorted(
        {"R1", "R1v", "R2", "R3", "R4", "R5", "R6", "R7", "R8"} - {row["rule"] for row in written.queries.values()}
    )
    return f"no query of {', '.join(absent)} among {len(written.meetings)} meetings" if absent else "no facts"


def _planted(written: Written) -> dict[str, dict[str, list[int]]]:
    """Anchor to session to the turns that facts.jsonl says hold it."""
    planted: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for fact in written.facts:
        planted[fact["anchor"]][fact["session"]].append(fact["last"])
    return planted


def v1_files(written: Written) -> Outcomes:
    """Every anchor stands in the files it was planted in, and in no other."""
    for anchor, sessions in _planted(written).items():
        found = written.found(anchor)
        yield from (
            f"{written.at(key, turns[0])}: planted {anchor!r} is not there"
            for key, turns in sessions.items()
            if key not in found
        )
        strays = sorted(found.keys() - sessions.keys())
        yield from (f"{written.at(key, min(found[key]))}: {anchor!r} was not planted there" for key in strays)
        yield None


def v2_turns(written: Written) -> Outcomes:
    """Every anchor stands in its declared turn, once, and in no other turn of that file."""
    for anchor, sessions in _planted(written).items():
        for key, turns in sessions.items():
            found, declared = written.found(anchor).get(key, Counter()), Counter(turns)
            wrong = sorted(turn for turn in found | declared if found[turn] != declared[turn])
            for turn in wrong:
                yield f"{written.at(key, turn)}: {anchor!r} stands there {found[turn]} times, declared {declared[turn]}"
            yield None


def v3_components(written: Written) -> Outcomes:
    """A multi-file question has two components or more, each alone in a file of its own; gold is those files."""
    for row in written.of("R2"):
        held = {key: [] for key in row["gold_files"]}  # type: dict[str, list[str]]
        for component in row["components"]:
            for key in written.found(component["anchor"]):
                held.setdefault(key, []).append(component["anchor"])
        if len(row["components"]) < 2 or len(held) != len(row["components"]):
            yield f"queries.jsonl {row['query_id']}: {len(row['components'])} components in {len(held)} files"
        for key, anchors in sorted(held.items()):
            if len(anchors) != 1 or key not in row["gold_files"]:
                spots = "; ".join(written.places(anchor, [key]) for anchor in anchors) or _gold(written, row, key)
                yield f"{spots}: {row['query_id']} has {len(anchors)} components there, expected one in a gold file"
        yield None


def _gold(written: Written, row: Row, key: str) -> str:
    """The meeting ``key`` at the first gold turn of ``row`` in it."""
    return written.at(key, min((first for first, _ in row["gold_turns"].get(key, [])), default=0))


def v4_answers(written: Written) -> Outcomes:
    """Counts and lists of R3, R4, R5 and R7 come out of the text for the phrase and month of the question."""
    for row in written.of(*PHRASES):
        values = asked(row)
        phrase = values.get(PHRASES[row["rule"]], "")
        found = written.found(phrase)
        inside = sorted(key for key in found if _in_month(written, key, values))
        answer = {"R4": inside, "R5": sum(sum(found[key].values()) for key in inside)}.get(row["rule"], len(inside))
        if row["answer"] != answer:
            yield f"{written.places(phrase, inside)}: {row['query_id']} answers {row['answer']}, the text has {answer}"
        outside = sorted(found.keys() - set(inside))
        for name, keys in (("gold_files", inside), ("related_files", outside)):
            for key in sorted(set(row[name]) ^ set(keys)):
                yield f"{written.at(key, min(found.get(key, [0])))}: {row['query_id']} and the text differ on {name}"
        yield None


def _in_month(written: Written, key: str, values: dict[str, str]) -> bool:
    if "month" not in values:
        return True
    number = MONTHS.index(values["month"]) + 1 if values["month"] in MONTHS else 0
    return str(written.meetings[key].row["date"]).startswith(f"{values['year']}-{number:02d}-")


def _series(written: Written, row: Row) -> list[str]:
    """Meetings of the series that the question names by team and kind."""
    values = asked(row)
    return sorted(
        key
        for key, seen in written.meetings.items()
        if (seen.row["team_label"], seen.row["series_kind"]) == (values.get("team"), values.get("kind"))
    )


def v5_attendance(written: Written) -> Outcomes:
    """Who spoke in most sessions of a series is one person, with as many sessions as R6 answers."""
    for row in written.of("R6"):
        keys = _series(written, row)
        spoke = Counter(name for key in keys for name in written.meetings[key].spoke)
        ranking = sorted(spoke.items(), key=lambda item: (-item[1], item[0]))
        answer = row["answer"]
        first = {key: written.meetings[key].spoke.get(answer["speaker"]) for key in keys}
        spots = "; ".join(written.at(key, turn) for key, turn in first.items() if turn is not None) or "queries.jsonl"
        if ranking[:1] != [(answer["speaker"], answer["sessions"])]:
            yield f"{spots}: {row['query_id']} answers {answer}, the text has {dict(ranking[:1])}"
        elif len(ranking) > 1 and ranking[0][1] == ranking[1][1]:
            yield f"{spots}: {row['query_id']} has no strict maximum, {ranking[1][0]!r} spoke in as many"
        for key in sorted(set(row["gold_files"]) ^ set(keys)):
            yield f"{written.at(key, 0)}: {row['query_id']} and the text differ on the sessions of the series"
        yield None


def v6_series(written: Written) -> Outcomes:
    """A series to be summarised is all its sessions, their agenda and their number."""
    for row in written.of("R8"):
        keys = _series(written, row)
        agenda = sorted({topic for key in keys for topic in written.meetings[key].row["agenda"]})
        for key in sorted(set(row["gold_files"]) ^ set(keys)):
            yield f"{written.at(key, 0)}: {row['query_id']} and the text differ on the sessions of the series"
        if row["answer"] != {"agenda": agenda, "sessions": len(keys)}:
            spots = "; ".join(written.at(key, 0) for key in keys) or "queries.jsonl"
            yield f"{spots}: {row['query_id']} answers {row['answer']}, the files have {len(keys)} sessions, {agenda}"
        yield None


def v7_judgements(written: Written) -> Outcomes:
    """qrels-files.tsv holds the gold files of every query, and nothing else."""
    uuids = {key: seen.row["file_uuid"] for key, seen in written.meetings.items()}
    gold = {
        f"{row['query_id']} 0 {uuids.get(key, key)} 1": _gold(written, row, key)
        for row in written.queries.values()
        for key in row["gold_files"]
    }
    lines = Counter(" ".join(line.split()) for line in written.qrels)
    for number, line in enumerate(written.qrels, 1):
        text = " ".join(line.split())
        known = text in gold and lines[text] == 1
        yield None if known else f"qrels-files.tsv line {number}: {text!r} is no gold file, or twice there"
    for text in sorted(gold.keys() - lines.keys()):
        yield f"{gold[text]}: qrels-files.tsv has no line {text!r}"


def v8_spans(written: Written) -> Outcomes:
    """Gold turns are in the gold files, every span holds an answer turn, and no answer turn of them is outside."""
    anchors_of: dict[str, list[str]] = defaultdict(list)
    for fact in written.facts:
        anchors_of[fact["query"]].append(fact["anchor"])
    for row in written.of("R1", "R1v", "R2", *PHRASES):
        anchors = anchors_of[row["query_id"]]
        for key in sorted(set(row["gold_files"]) | row["gold_turns"].keys()):
            spans = row["gold_turns"].get(key, [])
            turns = sorted({turn for anchor in anchors for turn in written.found(anchor).get(key, ())})
            for turn in turns:
                if not any(first <= turn <= last for first, last in spans):
                    yield f"{written.at(key, turn)}: the answer to {row['query_id']} is outside of {spans}"
            for first, last in spans:
                if not any(first <= turn <= last for turn in turns):
                    yield f"{written.at(key, first)}: gold turns {first} to {last} of {row['query_id']} hold no answer"
            if not spans or key not in row["gold_files"]:
                yield f"{written.at(key, turns[0] if turns else 0)}: {row['query_id']} is short of gold turns or file"
        yield None


def v9_apart(written: Written) -> Outcomes:
    """No anchor stands inside another."""
    first = {fact["anchor"].lower(): fact for fact in reversed(written.facts)}
    everything = "\n".join(sorted(first))
    for anchor, fact in sorted(first.items()):
        if everything.count(anchor) > 1:
            others = sorted(other for other in first if anchor in other and other != anchor)
            yield f"{written.at(fact['session'], fact['last'])}: {fact['anchor']!r} stands inside {others[:3]}"
        yield None


def v10_exists(written: Written) -> Outcomes:
    """Every query has gold, in meetings and turns that exist, and the same gold in each of its wordings."""
    same = ("gold_files", "related_files", "gold_turns", "answer", "answer_kind", "rule", "scored_on")
    for row in written.queries.values():
        where = f"queries.jsonl {row['query_id']}"
        if not row["gold_files"]:
            yield f"{where}: no gold file"
        for key in [*row["gold_files"], *row["related_files"]]:
            if key not in written.meetings:
                yield f"{where}: meeting {key} does not exist"
        for key, spans in row["gold_turns"].items():
            turns = written.meetings[key].turns if key in written.meetings else 0
            for first, last in spans:
                if not 0 <= first <= last < turns:
                    yield f"{written.at(key, last)}: gold of {row['query_id']} ends beyond its {turns} turns"
        base = written.queries.get(row["base_id"])
        if base is None or any(row[name] != base[name] for name in same):
            yield f"{where}: other gold than {row['base_id']}"
        yield None


def v11_rewordings(written: Written) -> Outcomes:
    """Two rewordings of every question by different frames; none shares a content word with its gold text."""
    frames: dict[str, list[str]] = defaultdict(list)
    for row in written.queries.values():
        frames[row["base_id"]].append(row["frame"])
    for base_id, used in frames.items():
        wanted = 1 if written.queries[base_id]["rule"] == "R1v" else 3
        if len(set(used)) != wanted:
            yield f"queries.jsonl {base_id}: wordings by the frames {sorted(used)}, expected {wanted} different ones"
    for row in written.queries.values():
        if row["surface"] == "exact":
            continue
        values = asked(written.queries[row["base_id"]])
        names = [row["topic"] or "", *(values.get(name, "") for name in ("team", "month", "year"))]
        for where, text in _gold_text(written, row):
            if shared := shared_words(row["text"], text, names):
                yield f"{where}: {row['query_id']} shares {shared} with it"
        yield None


def _gold_text(written: Written, row: Row) -> Iterator[tuple[str, str]]:
    """Titles and agendas of the gold files, and their gold turns, with where they stand."""
    for key in row["gold_files"]:
        if (seen := written.meetings.get(key)) is None:
            continue
        yield seen.at(), " ".join([seen.row["title"], *seen.row["agenda"]])
        for first, last in row["gold_turns"].get(key, []):
            for turn in range(first, last + 1):
                yield seen.at(turn), seen.texts.get(turn, "")


CHECKS: dict[str, Callable[[Written], Outcomes]] = {
    "V1": v1_files,
    "V2": v2_turns,
    "V3": v3_components,
    "V4": v4_answers,
    "V5": v5_attendance,
    "V6": v6_series,
    "V7": v7_judgements,
    "V8": v8_spans,
    "V9": v9_apart,
    "V10": v10_exists,
    "V11": v11_rewordings,
}
