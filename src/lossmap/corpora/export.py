"""A normalised corpus for other tools: BEIR's jsonl files and trec_eval's qrels, at the level of turns.

A document is a turn with text, ``{meeting}:{turn}``; a gold span judges each of them with its grade (1 where coverage
of chunks would decide), the highest where spans overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from lossmap import canon, transcript
from lossmap.layout import Layout

COVERED = 1  # the grade of a span that carries none
HEADER = "query-id\tcorpus-id\tscore\n"


def beir(corpus: Path, out: Path, documents: Path | None = None) -> dict[str, int]:
    """Write corpus.jsonl, queries.jsonl and qrels/test.tsv under ``out``; the rows of each.

    ``documents`` is the folder of the corpus whose meetings the gold points into, where it is another one.
    """
    meetings = (documents or corpus) / "meetings.jsonl"
    return {
        "corpus.jsonl": canon.write_jsonl(out / "corpus.jsonl", _documents(meetings)),
        "queries.jsonl": canon.write_jsonl(out / "queries.jsonl", _queries(corpus)),
        "qrels/test.tsv": _write(
            out / "qrels" / "test.tsv", corpus, meetings, HEADER, "{query}\t{document}\t{grade}\n"
        ),
    }


def trec_qrels(corpus: Path, path: Path, documents: Path | None = None) -> int:
    """Write ``query 0 document grade`` lines to ``path``; their number. ``documents`` as in `beir`."""
    meetings = (documents or corpus) / "meetings.jsonl"
    return _write(path, corpus, meetings, "", "{query} 0 {document} {grade}\n")


def _documents(meetings: Path) -> Iterator[dict[str, Any]]:
    for meeting in canon.read_jsonl(meetings):
        for turn in filter(_spoken, meeting["turns"]):
            metadata = {name: meeting[name] for name in ("domain", "language", "recorded_date")}
            yield {
                "_id": f"{meeting['meeting_id']}:{turn['index']}",
                "title": meeting["title"],
                "text": turn["text"],
                "metadata": {**metadata, **{name: turn[name] for name in ("speaker", "start", "end")}},
            }


def _queries(corpus: Path) -> Iterator[dict[str, Any]]:
    for query in canon.read_jsonl(corpus / "queries.jsonl"):
        metadata = {"query_class": query["query_class"], "domain": query["domain"]}
        yield {"_id": query["query_id"], "text": query["text"], "metadata": metadata}


def _spoken(turn: Mapping[str, Any]) -> bool:
    return bool(turn["text"].strip())


def _write(path: Path, corpus: Path, meetings: Path, header: str, line: str) -> int:
    spoken = {
        m["meeting_id"]: {turn["index"] for turn in m["turns"] if _spoken(turn)} for m in canon.read_jsonl(meetings)
    }
    count = 0
    with canon.atomic(path) as handle:
        handle.write(header.encode())
        for query, document, grade in _judgements(corpus / "gold.jsonl", spoken):
            handle.write(line.format(query=query, document=document, grade=grade).encode())
            count += 1
    return count


def _judgements(gold: Path, spoken: Mapping[str, set[int]]) -> Iterator[tuple[str, str, int]]:
    """(query id, document id, grade), sorted by query, meeting and turn; gold.jsonl is sorted by the first two."""
    for (query, meeting), spans in groupby(canon.read_jsonl(gold), lambda span: (span["query_id"], span["meeting_id"])):
        grades: dict[int, int] = {}
        for span in spans:
            grade = COVERED if span["grade"] is None else span["grade"]
            for turn in spoken[meeting].intersection(range(span["first"], span["last"] + 1)):
                grades[turn] = max(grade, grades.get(turn, 0))
        yield from ((query, f"{meeting}:{turn}", grades[turn]) for turn in sorted(grades))


def write(at: Layout, key: str, out: Path) -> dict[str, int]:
    """Both formats of one normalised corpus into ``out``; the rows of each file."""
    corpus = at.corpus(key)
    documents = at.corpus(transcript.owner(corpus))
    return {**beir(corpus, out, documents), "qrels.txt": trec_qrels(corpus, out / "qrels.txt", documents)}
