"""A generated folder as it was written, read for its checks: one meeting in memory at a time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.synthetic.frames import values_of
from lossmap.synthetic.scan import Scanner

Row = dict[str, Any]
PHRASES = {"R3": "marker", "R4": "marker", "R5": "deferral", "R7": "marker"}  # the placeholder that holds the phrase


@dataclass(frozen=True)
class Seen:
    """What stays of a meeting: its head, who spoke when first, and the text of the turns that gold names."""

    file: str
    row: Row
    turns: int
    spoke: dict[str, int]
    texts: dict[int, str]

    def at(self, turn: int | None = None) -> str:
        """File, meeting and turn, as a failure names them."""
        return f"{self.file} {self.row['meeting_key']}" + ("" if turn is None else f" turn {turn}")


@dataclass(frozen=True)
class Written:
    """``hits``: phrase to meeting key to turn to occurrences, found in the text alone."""

    queries: dict[str, Row]
    facts: list[Row]
    qrels: list[str]
    meetings: dict[str, Seen]
    hits: dict[str, dict[str, Counter[int]]]

    def of(self, *rules: str) -> Iterator[Row]:
        """The exact wordings of ``rules``."""
        return (row for row in self.queries.values() if row["surface"] == "exact" and row["rule"] in rules)

    def found(self, phrase: str) -> dict[str, Counter[int]]:
        return self.hits.get(phrase, {})

    def at(self, key: str, turn: int | None = None) -> str:
        seen = self.meetings.get(key)
        return seen.at(turn) if seen else f"(no file) {key}" + ("" if turn is None else f" turn {turn}")

    def places(self, phrase: str, keys: Iterable[str] | None = None) -> str:
        """Where ``phrase`` stands, in full."""
        found = self.found(phrase)
        spots = [
            self.at(key, turn) for key in sorted(found if keys is None else keys) for turn in sorted(found.get(key, ()))
        ]
        return "; ".join(spots) or "nowhere"


def asked(row: Row) -> dict[str, str]:
    """What fills the exact wording of ``row``, read back from its text."""
    return values_of(row["rule"], row["frame"], row["text"])


def read(folder: Path) -> Written:
    """The folder's queries, facts and judgements, and one pass over its meetings."""
    queries = {row["query_id"]: row for row in canon.read_jsonl(folder / "queries.jsonl")}
    facts = list(canon.read_jsonl(folder / "facts.jsonl"))
    phrases = {fact["anchor"] for fact in facts}
    phrases |= {
        asked(row).get(PHRASES[row["rule"]], "")
        for row in queries.values()
        if row["rule"] in PHRASES and row["surface"] == "exact"
    }
    scanner, wanted = Scanner(phrases - {""}), _wanted(queries.values())
    meetings: dict[str, Seen] = {}
    hits: dict[str, dict[str, Counter[int]]] = defaultdict(dict)
    for part in _parts(folder):
        for row in canon.read_jsonl(part):
            key, turns = row["meeting_key"], row.pop("turns")
            texts = [turn["content"] for turn in turns]
            for phrase, counter in scanner.scan(texts).items():
                hits[phrase][key] = counter
            spoke = {turn["speaker"]: place for place, turn in reversed(list(enumerate(turns)))}
            kept = {turn: texts[turn] for turn in sorted(wanted.get(key, ())) if 0 <= turn < len(texts)}
            meetings[key] = Seen(f"meetings/{part.name}", row, len(turns), spoke, kept)
    qrels = (folder / "qrels-files.tsv").read_text(encoding="utf-8").splitlines()
    return Written(queries, facts, qrels, meetings, dict(hits))


def _parts(folder: Path) -> list[Path]:
    found = sorted((folder / "meetings").glob("part-*.jsonl"))
    if not found:
        raise LossmapError(
            "a synthetic corpus has no meetings",
            where=folder / "meetings",
            expected="part-NNNN.jsonl",
            next_command="lossmap synth generate",
        )
    return found


def _wanted(queries: Iterable[Row]) -> dict[str, set[int]]:
    """The turns that gold names, by meeting."""
    wanted: dict[str, set[int]] = defaultdict(set)
    for row in queries:
        for key, spans in row["gold_turns"].items():
            for first, last in spans:
                wanted[key].update(range(first, last + 1))
    return wanted
