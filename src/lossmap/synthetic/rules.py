"""The rules that plant facts and ask for them (spec/harness 4.5): gold is known before a word is rendered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from lossmap.synthetic import aggregates
from lossmap.synthetic.draft import Draft, Row
from lossmap.synthetic.frames import wordings
from lossmap.synthetic.world import Plant, Series, World

PARTS = (2, 4)  # components of a multi-file question
SUMMARIZED_AT_LEAST = 4  # sessions of a series that is asked to be summarised, where the world has enough of them


@dataclass(frozen=True)
class Book:
    """Plants by session key; queries without turn ranges; facts, one a plant; per rule how many queries were
    ``wanted`` and ``made``, and the least sessions of a series that R6 and R8 asked about (``counts``)."""

    plants: dict[str, tuple[Plant, ...]]
    queries: tuple[Row, ...]
    facts: tuple[Row, ...]
    counts: dict[str, dict[str, int]] = field(default_factory=dict)


def build(world: World) -> Book:
    """Every plant and question of ``world``; fewer than asked for where it cannot hold them."""
    draft = Draft(world)
    wanted = world.config.query_counts()
    counts: dict[str, dict[str, int]] = {}
    _lookup(draft, wanted["lookup"])
    _multi_file(draft, wanted["multi_file"])
    shares, least = aggregates.ask(draft, wanted["aggregation"])
    counts |= {rule: {"wanted": share} for rule, share in shares.items()}
    counts["R6"]["sessions_at_least"] = least
    counts["R8"] = {"wanted": wanted["summarize"], "sessions_at_least": _summarize(draft, wanted["summarize"])}
    verbatim = wanted["lookup"] // _every(draft)
    counts |= {"R1": {"wanted": wanted["lookup"] - verbatim}, "R1v": {"wanted": verbatim},
               "R2": {"wanted": wanted["multi_file"]}}  # fmt: skip
    made = Counter(row["rule"] for row in draft.queries if row["surface"] == "exact")
    return Book(
        {key: tuple(draft.plants[key]) for key in sorted(draft.plants)},
        tuple(sorted(draft.queries, key=lambda row: row["query_id"])),
        tuple(draft.facts),
        {rule: {**counts[rule], "made": made[rule]} for rule in sorted(counts)},
    )


def resolve(book: Book, positions: Mapping[str, tuple[int, int]]) -> tuple[list[Row], list[Row]]:
    """Queries with ``gold_turns`` and facts with ``first`` and ``last``, by the turn range of every plant id."""
    facts = [
        {**row, "first": positions[row["plant_id"]][0], "last": positions[row["plant_id"]][1]} for row in book.facts
    ]
    spans: dict[tuple[str, str], list[list[int]]] = {}
    for fact in facts:
        spans.setdefault((fact["query"], fact["session"]), []).append([fact["first"], fact["last"]])

    def turns(row: Row) -> dict[str, list[list[int]]]:
        found = ((key, spans.get((row["base_id"], key))) for key in row["gold_files"])
        return {key: sorted(ranges) for key, ranges in found if ranges}

    return [{**row, "gold_turns": turns(row)} for row in book.queries], facts


def _every(draft: Draft) -> int:
    return round(1 / draft.world.config.verbatim_fraction)


def _lookup(draft: Draft, wanted: int) -> None:
    """R1, and every fifth time R1v, which quotes the value and asks where it was said."""
    deck = draft.rng.shuffle(draft.world.sessions)
    for claim in islice(_claims(draft, deck), wanted):
        session = draft.world.session(claim["session"])
        series = draft.world.series_of(session.series_id)
        verbatim = (draft.numbers["lk"] + 1) % _every(draft) == 0
        rule, name = ("R1v", "verbatim") if verbatim else ("R1", "lookup")
        query_id = draft.number("lk", "v" if verbatim else "")
        draft.plant_fact(rule, query_id, claim)
        subject = draft.subject(
            series, topic=claim["topic"], said=claim["said"], aspects=(claim["aspect"],), anchor=claim["anchor"]
        )
        draft.ask(query_id, name, rule, subject, gold_files=[session.key], answer=claim["anchor"],
                  answer_kind=_kind(claim["aspect"]), scored_on="retrieval", **draft.place(series))  # fmt: skip


def _claims(draft: Draft, deck: Iterable[Any]) -> Iterator[Row]:
    """Claims on the agenda of the sessions in ``deck``, round after round while any session has one left."""
    sessions, found = list(deck), True
    while found:
        found = False
        for session in sessions:
            if (claim := draft.claim(session, session.agenda)) is not None:
                found = True
                yield claim


def _kind(aspect: str) -> str:
    return str(wordings()["aspects"][aspect]["anchor"])


def _multi_file(draft: Draft, wanted: int) -> None:
    """R2: aspects of one topic, each in another session of one series; rounds over the series until none holds more."""
    deck = draft.rng.shuffle([series for series in draft.world.series if len(series.sessions) >= PARTS[0]])
    made, found = 0, True
    while found and made < wanted:
        found = False
        for series in deck[: wanted - made]:
            if parts := _parts(draft, series):
                found, made = True, made + 1
                _ask_parts(draft, series, parts)


def _parts(draft: Draft, series: Series) -> list[Row]:
    """Claims for one question; sessions with the topic on their agenda go first, then those with fewer plants."""
    rng, free = draft.rng, len(wordings()["aspects"])
    for topic in rng.shuffle(draft.world.team(series.team_id).topics):
        left = free - sum(taken == topic.topic_id for taken, _ in draft.claims)
        size = rng.randint(PARTS[0], min(PARTS[1], len(series.sessions)))
        if left < size:
            continue
        held = [draft.world.session(key) for key in rng.shuffle(series.sessions)]
        load = {session.key: (topic.topic_id not in session.agenda, len(draft.plants[session.key])) for session in held}
        chosen = sorted(held, key=lambda session: load[session.key])[:size]
        claims = [draft.claim(session, [topic.topic_id]) for session in sorted(chosen, key=lambda s: s.key)]
        found = [claim for claim in claims if claim is not None]
        if len(found) >= PARTS[0]:
            return found
    return []


def _ask_parts(draft: Draft, series: Series, parts: list[Row]) -> None:
    query_id = draft.number("mf")
    for claim in parts:
        draft.plant_fact("R2", query_id, claim)
    names = {name: parts[0][name] for name in ("topic", "said")}
    subject = draft.subject(series, **names, aspects=tuple(claim["aspect"] for claim in parts))
    components = [{name: claim[name] for name in ("session", "aspect", "anchor")} for claim in parts]
    draft.ask(query_id, "multi_file", "R2", subject, gold_files=sorted(claim["session"] for claim in parts),
              answer={claim["session"]: claim["anchor"] for claim in parts}, answer_kind="component_map",
              scored_on="retrieval", components=components, **draft.place(series))  # fmt: skip


def _summarize(draft: Draft, wanted: int) -> int:
    """R8: a whole series, its agenda and the number of its sessions; the least sessions of a series asked about."""
    least = aggregates.least_sessions(draft.world.series, SUMMARIZED_AT_LEAST, wanted)
    fitting = [series for series in draft.world.series if len(series.sessions) >= least]
    for series in draft.rng.shuffle(fitting)[:wanted]:
        agenda = {draft.world.topic(t).name for key in series.sessions for t in draft.world.session(key).agenda}
        draft.ask(draft.number("sm"), "summarize", "R8", draft.subject(series), gold_files=sorted(series.sessions),
                  answer={"agenda": sorted(agenda), "sessions": len(series.sessions)}, answer_kind="series_skeleton",
                  scored_on="files", **draft.place(series))  # fmt: skip
    return least
