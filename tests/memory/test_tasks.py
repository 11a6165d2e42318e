"""What is stored and what is asked: crafted corpora for the rules, the full corpora (where they are) for the counts."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from lossmap import layout, transcript
from lossmap.corpora import registry
from lossmap.errors import LossmapError
from lossmap.layout import Layout
from lossmap.memory import groups, lmeb, tasks
from lossmap.memory.tasks import Question, Task
from lossmap.transcript import GoldSpan, Meeting, Query, Turn

ROOT = Path(__file__).resolve().parents[2]
REGISTRY = yaml.safe_load((ROOT / "workflow" / "config" / "tasks.yaml").read_text())
FULL = layout.load("full")


def need(*keys: str) -> None:
    missing = [key for key in keys if not (FULL.corpus(key) / "corpus.json").is_file()]
    if missing:
        pytest.skip(f"not normalised here: {', '.join(missing)}")


def collection(domain: str, **documents: str) -> list[Meeting]:
    return [Meeting(name, f"On {name}", domain, "en", None, (Turn(0, "", text),)) for name, text in documents.items()]


def query(query_id: str, domain: str = "all", kind: str = "lookup") -> Query:
    return Query(query_id, f"what of {query_id}?", kind, domain)


class World:
    """A root with the real schemas, a registry of one stanza ``task``, and corpora that a test writes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.copytree(ROOT / "workflow" / "schemas", root / "workflow" / "schemas")
        (root / "workflow" / "config").mkdir()

    def at(self, scale: str = "full") -> Layout:
        return Layout(self.root, scale, {"scales": {scale: {}}})

    def corpus(
        self, key: str, meetings: list[Meeting], asked: dict[Query, list[tuple[str, int, int, int | None]]], **card: Any
    ) -> None:
        gold = [GoldSpan(query.query_id, *span) for query, spans in asked.items() for span in spans]
        head = {"key": key, "tier": "A", "documents": None, "obtained": True, **card}
        for scale in ("full", "internal"):
            transcript.write_corpus(self.at(scale).corpus(key), meetings, list(asked), gold, head)

    def load(self, scale: str = "full", cap: int | None = None, **fields: Any) -> Task:
        stanza = {"name": "Crafted", "corresponds": None, "relation": "crafted", "keyed": "rows", **fields}
        (self.root / "workflow" / "config" / "tasks.yaml").write_text(yaml.safe_dump({"task": stanza}))
        layout._yaml.cache_clear()
        return tasks.load(self.at(scale), "task", cap)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def talk(world: World) -> None:
    """Two meetings with one blank turn, and four queries: one has only the blank turn, one only a grade of 0."""
    words = {"m1": ["Hello. ", "", "We cut the rope."], "m2": ["Hello.", "The rope is cut."]}
    meetings = [
        Meeting(name, f"Talk {name}", "Product", "en", None, tuple(Turn(i, "Ada", text) for i, text in enumerate(said)))
        for name, said in words.items()
    ]
    asked = {
        query("qmsum:m1:000", "Product"): [("m1", 0, 2, None)],
        query("qmsum:m1:001", "Product"): [("m1", 1, 1, None)],
        query("qmsum:m2:000", "Product", "summarize"): [("m2", 1, 1, 2), ("m2", 0, 0, 0)],
        query("qmsum:m2:001", "Product"): [("m2", 0, 0, 0)],
    }
    world.corpus("qmsum", meetings, asked)


def test_a_turn_is_stored_without_speaker_and_a_blank_one_not_at_all(world: World) -> None:
    talk(world)
    task = world.load(documents=["qmsum"], queries=["qmsum"], unit="turn", candidates="meeting")
    assert [(g.name, g.keys, g.texts) for g in task.groups] == [
        ("all", ("m1/0", "m1/2", "m2/0", "m2/1"), ("Hello.", "We cut the rope.", "Hello.", "The rope is cut."))
    ]
    assert task.questions == (
        Question("qmsum:m1:000", "what of qmsum:m1:000?", "Product", "all", frozenset({"m1/0", "m1/2"}), "m1", "m1"),
        Question("qmsum:m2:000", "what of qmsum:m2:000?", "Product", "all", frozenset({"m2/1"}), "m2", "m2"),
    )
    assert task.candidates == {"m1": frozenset({"m1/0", "m1/2"}), "m2": frozenset({"m2/0", "m2/1"})}


def test_without_candidates_a_query_asks_the_whole_group(world: World) -> None:
    talk(world)
    task = world.load(documents=["qmsum"], queries=["qmsum"], unit="turn", classes=["lookup"])
    assert not task.candidates
    assert [(q.query_id, q.scene) for q in task.questions] == [("qmsum:m1:000", None)]


def test_groups_are_domains_and_a_subtask_is_a_domain_by_a_query_set(world: World) -> None:
    meetings = collection("north", n1="Tin.", n2="Zinc.") + collection("south", s1="Salt.")
    generalized = {
        query("reme.content:n1:0", "north"): [("n1", 0, 0, 1)],
        query("reme.content:s1:0", "south"): [("s1", 0, 0, 1)],
    }
    world.corpus("reme.content", meetings, generalized)
    world.corpus("reme.content-task", meetings, {query("reme.content-task:s1:0", "south"): [("s1", 0, 0, 1)]})
    task = world.load(documents=["reme.content"], queries=["reme.content", "reme.content-task"], group="domain")
    assert [(g.name, g.keys) for g in task.groups] == [("north", ("n1", "n2")), ("south", ("s1",))]
    assert task.groups[0].texts == ("On n1 Tin.", "On n2 Zinc.")
    subtasks = [(q.subtask, q.group, q.cluster == q.query_id) for q in task.questions]
    assert subtasks == [("north/content", "north", True), ("south/content", "south", True),
                        ("south/content-task", "south", True)]  # fmt: skip


def test_corpora_of_one_task_keep_their_like_named_documents_apart(world: World) -> None:
    for name, text in (("torchhub", "Torch."), ("huggingface", "Face.")):
        key = f"apibench.{name}"
        world.corpus(key, collection("all", d0=text), {query(f"{key}:d0:0"): [("d0", 0, 0, 1)]})
    both = ["apibench.huggingface", "apibench.torchhub"]
    task = world.load(documents=both, queries=both)
    assert [(g.name, g.texts) for g in task.groups] == [
        ("huggingface", ("On d0 Face.",)),
        ("torchhub", ("On d0 Torch.",)),
    ]
    assert [(q.subtask, q.group) for q in task.questions] == [("huggingface", "huggingface"), ("torchhub", "torchhub")]
    assert tasks.keys(task.stanza) == both


def test_gold_in_two_meetings_is_refused_where_one_is_to_be_asked(world: World) -> None:
    meetings = collection("all", a="A.", b="B.")
    world.corpus("qmsum", meetings, {query("qmsum:a:0"): [("a", 0, 0, 1), ("b", 0, 0, 1)]})
    given = {"documents": ["qmsum"], "queries": ["qmsum"]}
    assert world.load(**given).questions[0].gold == {"a", "b"}
    with pytest.raises(LossmapError, match="several corpora or meetings"):
        world.load(**given, candidates="meeting")


def numbered(count: int, subtask: str) -> list[Question]:
    names = [f"{subtask}{number}" for number in range(count)]
    return [Question(name, "?", subtask, "all", frozenset(), None, name) for name in names]


def test_a_cap_takes_every_kth_query_of_a_subtask() -> None:
    """1,335 queries under a cap of 200 are every 7th: 191 (spec/replay 5.1)."""
    kept = tasks.capped([*numbered(1335, "a"), *numbered(200, "b"), *numbered(5, "c")], 200)
    assert Counter(question.subtask for question in kept) == {"a": 191, "b": 200, "c": 5}
    assert [question.query_id for question in kept[:3]] == ["a0", "a7", "a14"]
    assert len(tasks.capped(numbered(1000, "a"), 200)) == 200
    with pytest.raises(LossmapError, match="cap of queries"):
        tasks.capped([], 0)


def test_a_pool_is_whole_answers_then_what_follows_them() -> None:
    order = list("abcdefghij")
    gold = [frozenset("c"), frozenset("fg"), frozenset("aij")]
    assert groups.pool(order, gold, 3) == frozenset("cfg")
    assert groups.pool(order, gold, 5) == frozenset("cfg") | frozenset("dh")  # g follows f, and is there already
    assert groups.pool(order, gold, 10) == frozenset(order)
    with pytest.raises(ValueError, match="do not fill"):
        groups.pool(order, gold, 11)


def test_tiny_pools_ask_what_they_hold_and_name_the_size_they_cannot_make(world: World) -> None:
    meetings = collection("all", **{f"d{n}": f"Text {n}." for n in range(5)})
    world.corpus("xquad.en", meetings, {query(f"xquad.en:d{n}:0"): [(f"d{n}", 0, 0, 1)] for n in (1, 2, 4)})
    task = world.load(documents=["xquad.en"], queries=["xquad.en"], rows=[2, 4, 9])
    assert [(g.name, g.keys) for g in task.groups] == [("r2", ("d1", "d2")), ("r4", ("d1", "d2", "d3", "d4"))]
    assert [(q.query_id, q.subtask) for q in task.questions if q.group == "r2"] == [
        ("r2:xquad.en:d1:0", "r2"),
        ("r2:xquad.en:d2:0", "r2"),
    ]
    assert task.questions[-1].cluster == "xquad.en:d4:0"
    assert task.obtained and task.reason == "its corpus has 5 rows here: no pool of 9"


def test_a_tier_below_a_is_loaded_at_the_internal_scale_alone(world: World) -> None:
    world.corpus("locomo", collection("all", c1="Yes."), {query("locomo:c1:0"): [("c1", 0, 0, 1)]}, tier="B")
    given = {"documents": ["locomo"], "queries": ["locomo"]}
    public, internal = world.load("full", **given), world.load("internal", **given)
    assert (public.obtained, public.tier, public.questions) == (False, "B", ())
    assert "tier B" in str(public.reason)
    assert (internal.obtained, internal.reason, len(internal.questions)) == (True, None, 1)


def test_a_corpus_that_could_not_be_had_says_why_and_one_without_its_rule_is_an_error(world: World) -> None:
    world.corpus("qmsum", [], {}, obtained=False, reason="no network")
    assert world.load(documents=["qmsum"], queries=["qmsum"]).reason == "qmsum: no network"
    with pytest.raises(LossmapError, match="corpora normalise xquad.en --scale full"):
        world.load(documents=["xquad.en"], queries=["xquad.en"])


def test_a_stanza_that_breaks_the_schema_is_named(world: World) -> None:
    with pytest.raises(LossmapError, match="task/keyed"):
        world.load(documents=["qmsum"], queries=["qmsum"], keyed="lines")
    with pytest.raises(LossmapError, match="unknown tasks.yaml"):
        tasks.stanza(FULL, "no-such-task")


@pytest.mark.parametrize("name", REGISTRY)
def test_every_stanza_fits_its_schema_and_names_known_corpora(name: str) -> None:
    given = tasks.stanza(FULL, name)
    for key in tasks.keys(given):
        registry.query_set(key)
    if (shared := given.get("lexical")) is not None:
        other = REGISTRY[shared]
        assert [given[field] for field in ("documents", "queries", "unit", "keyed")] == [
            other[field] for field in ("documents", "queries", "unit", "keyed")
        ]
        assert "cap" not in given and "cap" not in other


def test_the_registry_covers_the_eleven_tasks_of_the_seed() -> None:
    asked = {given["corresponds"] for given in REGISTRY.values() if isinstance(given["documents"], dict)} - {None}
    assert asked == {"SciFact", "ESGReports", "TMD", "ReMe", "MemBench", "ConvoMem", "QASPER", "EPBench", "Gorilla",
                     "LongMemEval", "MLDR"}  # fmt: skip


def test_names_are_those_of_the_chapter() -> None:
    config = {"scales": {"full": {"chapters": {"replay": {"tasks": ["b", "a"]}}}, "small": {"chapters": {}}}}
    assert [tasks.names(Layout(ROOT, scale, config)) for scale in ("full", "small", "shipped")] == [["b", "a"], [], []]


FIXTURE = "tests/fixtures/lmeb"


def of_lmeb(name: str, scenes: str) -> dict[str, str]:
    return {"lmeb": name, "corpus": "fixture-lmeb", "scenes": scenes, "folder": FIXTURE}


def fixture_lmeb(world: World) -> None:
    shutil.copytree(ROOT / FIXTURE, world.root / FIXTURE)


def test_the_candidates_of_a_dialogue_are_found_by_the_first_two_parts_of_the_query_id(world: World) -> None:
    fixture_lmeb(world)
    task = world.load(documents=of_lmeb("Harbour", "prefix"))
    assert [(g.name, len(g.keys)) for g in task.groups] == [("all", 12)]
    assert (task.tier, task.judged_by, task.obtained) == ("A", "constructed", True)
    assert len(task.questions) == 11  # the twelfth has no qrel
    first = task.questions[0]
    assert first.subtask == "watch" and first.gold == {"north_1:D1:1"} and first.scene is not None
    assert task.candidates[first.scene] == {f"north_1:D1:{turn}" for turn in range(1, 7)}
    assert all(q.scene in task.candidates for q in task.questions)
    assert first.query_id == "task:watch:north_1_q1"


def test_candidates_may_be_keyed_by_the_whole_query_id(world: World) -> None:
    fixture_lmeb(world)
    task = world.load(documents=of_lmeb("manual", "query"))  # the folder is called Manual
    assert {q.scene: task.candidates[str(q.scene)] >= q.gold for q in task.questions} == {
        "all:m1": True,
        "all:m2": True,
        "all:m3": True,
        "all:m4": True,
    }
    whole = world.load(documents=of_lmeb("Bakery", "query"))
    assert not whole.candidates and {q.scene for q in whole.questions} == {None}


def test_two_rules_that_name_different_candidates_are_refused() -> None:
    lists = {"a_b": frozenset("x"), "a_b_c": frozenset("y"), "a_d": frozenset("z"), "a_d_e": frozenset("z")}
    assert lmeb.scene("a_d_e", "query", lists) == "a_d_e"
    assert lmeb.scene("a_d_e", "prefix", lists) == "a_d"
    assert lmeb.scene("none_such", "prefix", lists) is None
    with pytest.raises(LossmapError, match="not decided"):
        lmeb.scene("a_b_c", "query", lists)


def test_lmeb_is_not_obtained_without_its_folder(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(lmeb.VARIABLE, raising=False)
    given = {"documents": {"lmeb": "SciFact", "corpus": "scifact"}}
    task = world.load(**given)
    assert not task.obtained and "LOSSMAP_LMEB" in str(task.reason) and (task.tier, task.judged_by) == ("A", "human")
    monkeypatch.setenv(lmeb.VARIABLE, str(ROOT / FIXTURE))
    assert world.load(**given).reason == "no folder SciFact below LOSSMAP_LMEB"
    monkeypatch.setenv(lmeb.VARIABLE, str(world.root))
    with pytest.raises(LossmapError, match="eval_data/<Type>/<Dataset>"):
        world.load(**given)


def test_gold_that_no_line_has_and_a_subtask_without_corpus_are_errors(world: World) -> None:
    fixture_lmeb(world)
    place = world.root / FIXTURE / "eval_data" / "Procedural" / "Bakery"
    with (place / "qrels.tsv").open("a") as handle:
        handle.write("b1\tstep 99\t1\n")
    with pytest.raises(LossmapError, match="step 99"):
        world.load(documents=of_lmeb("Bakery", "query"))
    (place / "corpus.jsonl").unlink()
    with pytest.raises(LossmapError, match="no corpus"):
        world.load(documents=of_lmeb("Bakery", "query"))


def counts(task: Task) -> tuple[int, int, int]:
    """Lines, queries, gold."""
    lines = sum(len(group.keys) for group in task.groups)
    return lines, len(task.questions), sum(len(question.gold) for question in task.questions)


@pytest.mark.parametrize("variant", ["content", "when-to-use"])
def test_reme_is_the_six_corpora_and_nine_subtasks_of_lmeb(variant: str) -> None:
    need(f"reme.{variant}", f"reme.{variant}-task")
    task = tasks.load(FULL, f"reme-{variant}")
    assert {group.name: len(group.keys) for group in task.groups} == {
        "appworld_qwen3_8b": 207,
        "appworld_qwen3_14b": 218,
        "appworld_qwen3_32b": 184,
        "bfcl_qwen3_8b": 96,
        "bfcl_qwen3_14b": 110,
        "bfcl_qwen3_32b": 99,
    }
    assert counts(task) == (914, 1219, 1219)
    assert len({q.subtask for q in task.questions}) == 9


def test_apibench_is_three_corpora() -> None:
    need("apibench.huggingface", "apibench.torchhub", "apibench.tensorflowhub")
    task = tasks.load(FULL, "apibench")
    assert [(group.name, len(group.keys)) for group in task.groups] == [
        ("huggingface", 936),
        ("torchhub", 94),
        ("tensorflowhub", 80),
    ]
    assert Counter(q.subtask for q in task.questions) == {"huggingface": 834, "torchhub": 186, "tensorflowhub": 688}


def test_the_procedural_memories_are_judged_by_a_model() -> None:
    need("proced-mem-bench")
    task = tasks.load(FULL, "proced-mem-bench")
    assert (counts(task), task.judged_by) == ((336, 40, 893), "model")


def test_claims_and_paragraphs_are_single_corpora() -> None:
    need("foolmetwice.test", "xquad.en")
    assert counts(tasks.load(FULL, "foolmetwice")) == (17562, 1380, 1735)
    assert counts(tasks.load(FULL, "xquad-en")) == (240, 1190, 1190)


def test_the_pool_of_turns_has_every_spoken_turn_of_232_meetings() -> None:
    need("qmsum")
    pool, subset = tasks.load(FULL, "qmsum-pool"), tasks.load(FULL, "qmsum-turns")
    assert counts(pool) == counts(subset) == (129062, 1576, 83220)
    assert len(set(pool.groups[0].texts)) == 86157
    assert sum(map(len, subset.candidates.values())) == 129062 and len(subset.candidates) == 232
    assert Counter(q.subtask for q in pool.questions) == {"Academic": 312, "Committee": 417, "Product": 847}
    assert all(q.gold <= subset.candidates[str(q.scene)] for q in subset.questions)


def test_claims_are_capped_by_domain() -> None:
    need("qmsum", "explainmeetsum.claims")
    claims = tasks.load(FULL, "explainmeetsum-claims")
    assert Counter(q.subtask for q in claims.questions) == {"Academic": 169, "Committee": 195, "Product": 200}
    whole = tasks.load(FULL, "explainmeetsum-claims", 10_000)
    assert counts(whole)[:2] == (129062, 4999)
    assert Counter(q.subtask for q in whole.questions) == {"Academic": 841, "Committee": 1361, "Product": 2797}


def test_tiny_pools_have_their_sizes() -> None:
    need("reme.content", "synthetic")
    asked = {
        name: Counter(q.group for q in tasks.load(FULL, name).questions) for name in ("tiny-reme", "tiny-synthetic")
    }
    assert asked["tiny-reme"] == {"r19": 19, "r20": 20, "r30": 30, "r31": 31, "r55": 55}
    assert asked["tiny-synthetic"] == {"r19": 9, "r20": 10, "r30": 15, "r31": 15, "r55": 27}
    for name in asked:
        assert [len(group.keys) for group in tasks.load(FULL, name).groups] == [19, 20, 30, 31, 55]


def test_queries_that_share_an_answer_or_a_page_are_one_cluster() -> None:
    gold = {"a": {"p1-s1"}, "b": {"p1-s2", "p2-s1"}, "c": {"p2-s1"}, "d": {"p3-s1"}}
    asked = [groups.Question(name, name, "s", "g", frozenset(keys), None, name) for name, keys in gold.items()]
    found = {rule: [q.cluster for q in groups.clustered(asked, rule)] for rule in ("query", "gold", "prefix")}
    assert found["query"] == ["a", "b", "c", "d"]
    assert found["gold"] == ["p1-s1", "p1-s2", "p1-s2", "p3-s1"]
    assert found["prefix"] == ["p1", "p1", "p1", "p3"]
