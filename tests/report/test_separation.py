"""No tier-B row reaches a public render: not by times, judgements, documents, nor by documents that only compete.

Everything between is real: obtain, normalise, timings, injection into PostgreSQL, chunks, judgements, measures,
studies, collect and the tables. Only the rankings are invented.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import tree
import yaml

from lossmap import canon, cli, layout, transcript
from lossmap.corpora import fetch, normalise, timings
from lossmap.engine import marker
from lossmap.errors import LossmapError
from lossmap.index import inject, table, vectors
from lossmap.judge import qrels
from lossmap.layout import Layout
from lossmap.report import claims, collect, ledger, tables
from lossmap.report.claims import Book
from lossmap.search import legs
from lossmap.studies import corpora, judging, measure

HERE = Path(__file__).resolve().parents[2]
RAW = ("fixture", "fixture-ami", "fixture-evidence", "fixture-lmeb")
EVIDENCE, NEIGHBOUR = "fixture-evidence.fine", "fixture-lmeb.harbour"
INDEXES = {
    "main": {"documents": ["fixture"], "scored": ["fixture"]},
    "measured": {"documents": ["fixture"], "scored": ["fixture"], "timings": ["fixture-events"]},
    "mixed": {"documents": ["fixture", NEIGHBOUR], "scored": ["fixture"]},
}
BENCHES = {"main": "fixture", f"main/{EVIDENCE}": EVIDENCE, "measured": "fixture", "mixed": "fixture"}
CHAPTER = {
    "benches": list(BENCHES),
    "agreement": {"fixture": "main", EVIDENCE: f"main/{EVIDENCE}"},
    "timings": {"index": "measured", "rules": ["fixture-events"]},
    "ingest": ["main/fixture", "measured/fixture"],
}
PARTS = ("scores", "agreement", "timings", "ingest", "stats")
# What is of tier B -> the parts that may not be published.
CASES = {
    None: set(),
    "fixture-ami": {"scores", "timings", "ingest"},
    "fixture-evidence": {"scores", "agreement", "stats"},
    "fixture": set(PARTS),
    "fixture-lmeb": {"scores", "stats"},
}
# Per case the benches whose rows are marked.
MARKED = {
    None: set(),
    "fixture-ami": {"measured"},
    "fixture-evidence": {f"main/{EVIDENCE}"},
    "fixture": set(BENCHES),
    "fixture-lmeb": {"mixed"},
}


def edit(root: Path, name: str, change: Callable[[Any], None]) -> None:
    path = root / "workflow" / "config" / name
    document = yaml.safe_load(path.read_text())
    change(document)
    path.write_text(yaml.safe_dump(document))


@pytest.fixture(scope="module", params=CASES, ids=lambda key: f"B is {key}" if key else "all of tier A")
def case(request: pytest.FixtureRequest) -> str | None:
    return request.param


@pytest.fixture(scope="module")
def at(
    case: str | None, postgres: Callable[[], psycopg.Connection], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Layout]:
    """A checkout where ``case`` is of tier B and was obtained all the same, as a hand may; everything up to studies."""
    root = tmp_path_factory.mktemp("checkout")
    for name in ("workflow/config", "workflow/schemas", "tests/fixtures", "paper"):
        shutil.copytree(HERE / name, root / name)
    if case:
        edit(root, "corpora.yaml", lambda d: d["corpora"][case].update(tier="B"))
    edit(root, "config.yaml", lambda d: d["scales"]["smoke"].update(indexes=INDEXES, chapters={"corpora": CHAPTER}))
    edit(root, "arms.yaml", lambda d: d["stages"].update(corpora=arm(d["stages"]["corpora"])))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOSSMAP_ROOT", str(root))
        yield made(layout.load("smoke"))
        with postgres() as conn:
            for index in INDEXES:
                marker.drop_schema(conn, layout.load("smoke", index).schema)


def made(at: Layout) -> Layout:
    for key in RAW:
        fetch.obtain(key, at.raw, strict=True, accept_noncommercial=True)
    for key in ("fixture", EVIDENCE, NEIGHBOUR):
        normalise.run(at, key)
    timings.run(at, "fixture-events")
    for index in INDEXES:
        build_index(layout.load("smoke", index))
    for bench, key in BENCHES.items():
        score(layout.load("smoke", bench), key)
    for name in PARTS:
        part = at.stage("corpora") / f"{name}.json"
        canon.write_json(part, corpora.STUDIES[name](at, "corpora"))
        collect.sign(at, "corpora_study", "c" * 64, [part], [])
    return at


def arm(stage: dict[str, Any]) -> dict[str, Any]:
    return {"control": "bm25", "arms": {"bm25": stage["arms"]["bm25"]}}


def build_index(at: Layout) -> None:
    for key in at.documents:
        inject.run(at, key)
    chunking = table.run(at)
    state = ("docs_count", "docs_deleted", "embedding_models", "embedding_verdict", "embedding_unattributed")
    manifest = {
        "index_sha256": canon.digest(chunking),
        "chunking": chunking,
        "state": dict.fromkeys((*state, "embedding_dimension"), 0),
        "identity": {"encoder": {"name": "none"}, "header": "none"},
        "engine": {"version": "none"},
    }
    canon.write_json(at.index_folder / "manifest.json", manifest)


def score(at: Layout, key: str) -> None:
    judged = qrels.grade(judging.judge(at, key)).qrels
    asked = [query.query_id for query in vectors.queries(at)]
    doc_ids = table.doc_ids(table.load(at.index_folder))
    begin = [max(0, min(doc_ids.index(doc) for doc in judged[query_id]) - i % 4) for i, query_id in enumerate(asked)]
    rows, scores = legs.pad(
        [(range(place, len(doc_ids))[:60], [1.0] * len(doc_ids[place:][:60])) for place in begin], 60
    )
    meta = {"leg": "bm25", "index_sha256": canon.read_json(at.index_folder / "manifest.json")["index_sha256"]}
    legs.save(at.leg("bm25"), legs.Leg(asked, rows, scores, meta))
    measure.measure(at, "bm25", layout.arm(at, "corpora", "bm25"), corpora.scored(at, at.bench, corpora.STAGE) / "bm25")


def test_tiers_reach_every_row_and_collect_refuses_each_part_that_has_one(
    case: str | None, at: Layout, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = canon.read_json(at.stage("corpora") / "scores.json")["rows"]
    assert {row["bench"] for row in rows} == set(BENCHES)
    assert {row["bench"] for row in rows if row["tier"] != "A"} == MARKED[case]
    assert {row["tier"] for row in rows if row["bench"] in MARKED[case]} <= {"B"}
    # A corpus over the meetings of another one is no better than those, wherever its queries are asked.
    assert transcript.read_card(at.corpus(EVIDENCE))["tier"] == (
        "B" if case in ("fixture", "fixture-evidence") else "A"
    )
    for name in PARTS:
        part = at.stage("corpora") / f"{name}.json"
        code = cli.main(["collect", "corpora", "--scale", "smoke", "--parts", str(part)])
        said = capsys.readouterr().err
        assert code == int(name in CASES[case]), name
        if code:
            assert f"{name}.json" in said and "licence tier B" in said and "expected: licence tier A" in said
    if CASES[case]:
        shutil.rmtree(at.results, ignore_errors=True)
        parts = [at.stage("corpora") / f"{name}.json" for name in PARTS]
        with pytest.raises(LossmapError, match="may not be published"):
            collect.collect(at, "corpora", parts)
        assert not (at.results / "corpora").exists()


# The tables of the chapter and the part that each reads.
TABLES = {
    name: Path(spec["file"]).stem
    for name, spec in tables.specifications().items()
    if spec.get("file", "").removeprefix("corpora/").removesuffix(".json") in PARTS
}


def test_tables_refuse_what_a_hand_put_into_results(case: str | None, at: Layout, tmp_path: Path) -> None:
    root = tree.plant(tmp_path / "by-hand")
    entries = {}
    for name in PARTS:
        path = root / "corpora" / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        shutil.copyfile(at.stage("corpora") / path.name, path)
        entries[path.name] = ledger.entry(path, "corpora_study", "smoke", "c" * 64, {})
    # No language is scored here; the claims about languages want the document all the same.
    canon.write_json(root / "corpora" / "languages.json", {"rows": []})
    entries["languages.json"] = ledger.entry(
        root / "corpora" / "languages.json", "corpora_study", "smoke", "c" * 64, {}
    )
    ledger.write(root / "corpora", "smoke", entries)
    claims.build(root, ["stage1", "corpora"], root / claims.NAME)
    assert {"scores", "agreement", "timings"} <= set(TABLES.values())
    for name, part in sorted(TABLES.items()):
        assert tables.build(Book(root, public=False), name).rows
        if part not in CASES[case]:
            assert tables.build(Book(root), name).rows
            continue
        with pytest.raises(LossmapError, match=rf"tier-B source in a public target[\s\S]*corpora/{part}\.json"):
            tables.build(Book(root), name)
