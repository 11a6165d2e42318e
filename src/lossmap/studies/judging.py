"""Judgements of one scale: coverage per corpus, computed once and graded under any policy."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from lossmap import canon, transcript
from lossmap.index import inject
from lossmap.judge import qrels
from lossmap.judge.qrels import Coverage
from lossmap.layout import Layout
from lossmap.studies.compare import meeting_of
from lossmap.transcript import Query


@dataclass(frozen=True)
class Corpus:
    """One corpus of a scale: its card, queries, and the coverage of every chunk that its gold touches."""

    card: dict[str, Any]
    queries: list[Query]
    coverage: Coverage

    @property
    def classes(self) -> dict[str, str]:
        return {query.query_id: query.query_class for query in self.queries}

    @property
    def groups(self) -> dict[str, str]:
        return {query.query_id: meeting_of(query.query_id) for query in self.queries}


def judge(at: Layout, key: str) -> Coverage:
    """Match the injected turns of one corpus with the indexed chunks; written below build/<scale>/judge/<index>."""
    turns = qrels.read_turns(at.injection(transcript.owner(at.corpus(key))) / "turns.jsonl")
    files = {turn.file_uuid for turn in turns}
    chunks = [c for c in qrels.read_chunks(at.index_folder / "chunks.jsonl") if c.file_uuid in files]
    queries = [q.query_id for q in transcript.read_queries(at.corpus(key))]
    gold = transcript.read_gold(at.corpus(key))
    uuid_of = inject.files_of(at, key, {span.meeting_id for span in gold})
    cover = qrels.coverage(qrels.overlaps(turns, chunks), queries, gold, uuid_of)
    _save(at, key, cover)
    return cover


def _save(at: Layout, key: str, cover: Coverage) -> None:
    stem = at.judged(key)
    with canon.atomic(stem.with_name(f"{key}.npz")) as handle:
        np.savez(
            handle,
            query_ids=np.array(cover.query_ids, str),
            doc_ids=cover.doc_ids.astype(str),
            start=cover.start,
            chunk=cover.chunk,
            share=cover.share,
            grades=cover.grades,
            rest=np.array(canon.line({"unjudgeable": cover.unjudgeable, "unmatched": cover.unmatched_chunks})),
        )
    graded = qrels.grade(cover)
    qrels.write_qrels(stem.with_name(f"{key}.qrels.gz"), graded.qrels)
    canon.write_json(stem.with_name(f"{key}.json"), graded.summary())


def load(at: Layout, key: str) -> Corpus:
    """Everything that scoring one corpus needs."""
    with np.load(at.judged(key).with_name(f"{key}.npz")) as data:
        rest = json.loads(str(data["rest"]))
        cover = Coverage(
            tuple(data["query_ids"].tolist()), data["doc_ids"].astype(object), data["start"], data["chunk"],
            data["share"], data["grades"], rest["unjudgeable"], rest["unmatched"],
        )  # fmt: skip
    card = transcript.read_card(at.corpus(key))
    # The worst tier of what shaped a row: queries and judgements (the card), documents and timings of all that the
    # index holds (the injections), since every document competes for a rank.
    injected = [canon.read_json(at.injection(held) / "manifest.json")["corpus"] for held in at.documents]
    card["tier"] = transcript.worst([card["tier"], *(corpus["tier"] for corpus in injected)])
    return Corpus(card, transcript.read_queries(at.corpus(key)), cover)
