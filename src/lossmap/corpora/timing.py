"""Times of turns: measured ones from a record, synthetic ones flagged so that nothing in seconds is read off them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lossmap.errors import LossmapError
from lossmap.transcript import Meeting, Turn

LABEL = "uniform_rate_v1"
WORDS_PER_SECOND = 2.5
GAP_SECONDS = 0.25
MINIMUM_SECONDS = 0.5
DECIMALS = 3
PARAMS = {
    "label": LABEL,
    "words_per_second": WORDS_PER_SECOND,
    "gap_seconds": GAP_SECONDS,
    "minimum_seconds": MINIMUM_SECONDS,
    "decimals": DECIMALS,
}
REAL = "real"


def timed(turns: Sequence[Turn]) -> tuple[tuple[Turn, ...], dict[str, Any]]:
    """``turns`` with times, and where those come from (spec/harness 5.4).

    A turn that has both times keeps them as they are, reversed or not: the injector's rules judge them. Every other
    turn with text starts a gap after the latest end so far. Blank turns take no time and get none. The provenance is
    ``timing_source`` ("synthetic" once one turn was filled, else "supplied"), ``params`` and ``filled`` (turns).
    """
    clock, filled, out = 0.0, 0, []
    for turn in turns:
        if turn.text.strip() and (turn.start is None or turn.end is None):
            seconds = max(MINIMUM_SECONDS, len(turn.text.split()) / WORDS_PER_SECOND)
            turn = replace(turn, start=clock, end=round(clock + seconds, DECIMALS))
            filled += 1
        if turn.start is not None and turn.end is not None:
            clock = max(clock, round(max(turn.start, turn.end) + GAP_SECONDS, DECIMALS))
        out.append(turn)
    source, params = ("synthetic", dict(PARAMS)) if filled else ("supplied", {})
    return tuple(out), {"timing_source": source, "params": params, "filled": filled}


def real(meeting: Meeting, record: Mapping[str, Any] | None) -> tuple[tuple[Turn, ...], dict[str, Any]]:
    """The turns of ``meeting`` timed by ``record`` (a row of build/<scale>/timings), or as ``timed`` does without one.

    The provenance is that of ``timed``, with the record's own fields (rule, reference, tier, aligned turns, rates)
    beside it; ``filled`` counts the turns whose times are no measurement. A record that calls its meeting synthetic
    gives synthetic times to all of it. Raises LossmapError where a record does not time exactly the turns with text.
    """
    if record is None or record["provenance"]["timing_source"] != REAL:
        turns, made = timed(meeting.turns)
        return turns, {**(record["provenance"] if record else {}), **made}
    times = {index: (start, end) for index, start, end in record["turns"]}
    spoken = {turn.index for turn in meeting.turns if turn.text.strip()}
    if times.keys() != spoken:
        raise LossmapError(
            "a timing record is of another transcript",
            where=meeting.meeting_id,
            observed=f"{len(times)} timed turns, {len(times.keys() ^ spoken)} of them or of the transcript unpaired",
            expected=f"{len(spoken)} turns with text",
            next_command="make the timings again from the present corpus",
        )
    turns = tuple(
        replace(turn, start=times[turn.index][0], end=times[turn.index][1]) if turn.index in times else turn
        for turn in meeting.turns
    )
    return turns, {**record["provenance"], "params": {}, "filled": record["provenance"]["interpolated"]}


def assert_real_timings(files: Iterable[Mapping[str, Any]]) -> None:
    """Raise unless every file record carries measured times; ``files`` are rows of an injection's files.jsonl."""
    rows = list(files)
    made_up = [row for row in rows if row.get("timing_source") != REAL]
    if made_up:
        raise LossmapError(
            "a measure in seconds was asked of timings that are not measurements",
            where=", ".join(str(row.get("meeting_id")) for row in made_up[:5]),
            observed=f"{len(made_up)} of {len(rows)} files are not timed by measurement",
            expected=f"timing_source {REAL!r} in every file",
            next_command="restrict the measure to files with real timings",
            exit_code=2,
        )
