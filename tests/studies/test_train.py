"""Groups mined from rankings, the order in which they are learnt, and a whole training run where torch is installed."""

from __future__ import annotations

import argparse
import dataclasses
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lossmap import canon, layout
from lossmap.cli import rerank
from lossmap.encode import rerankers
from lossmap.errors import LossmapError
from lossmap.studies import checkpoints, groups, train, tune
from lossmap.studies.groups import Group, Pool, Recipe

PAGES, PER_PAGE, ASKED = 6, 8, 3
RECIPE = Recipe(near=3, far=2, first=6, depth=30, held_out=2, groups=40, seed=13)
LOOP = {
    "steps": 5, "groups": 8, "megabatch": 2, "rate": 1.0e-3, "head": 2, "warmup": 2, "decay": 0.01, "clip": 1.0,
    "dropout": 0.1, "length": 48, "checkpoints": [2, 5], "seed": 13,
}  # fmt: skip
SHAPE = {
    "vocab_size": 120, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16,
    "max_position_embeddings": 64,
}  # fmt: skip
STANZA = {
    "base": {"random": SHAPE},
    "data": {"scale": "tiny", "index": "made", "corpus": "made.dev"},
    "groups": {"near": 3, "far": 2, "first": 6, "depth": 30, "held_out": 2},
    "loop": LOOP,
    "max_length": 64,
}
WORDS = ["amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "jetty", "knoll", "ledge"]


def _pool() -> Pool:
    """Pages of passages that share words, two rankings of all of them, and pages that no claim asks about."""
    rng = np.random.default_rng(5)
    pages = [f"p{page}" for page in range(PAGES + 2) for _ in range(PER_PAGE)]
    texts = [f"{page} " + " ".join(rng.choice(WORDS, rng.integers(4, 24))) for page in pages]
    asked = [(page, place) for page in range(PAGES) for place in range(ASKED)]
    gold = [frozenset({page * PER_PAGE + place}) for page, place in asked]
    ids = [f"made.dev:p{page}:{place}" for page, place in asked]
    ranked = [[rng.permutation(len(texts)).tolist()[: RECIPE.depth] for _ in asked] for _ in range(2)]
    docs = [f"f{row}_0" for row in range(len(texts))]
    return Pool(
        ids, [texts[min(rows)][:40] for rows in gold], [f"p{page}" for page, _ in asked], gold, *ranked, texts, docs,
        [page if int(page[1:]) < PAGES else "" for page in pages],
        {query: {docs[row]: 1 for row in rows} for query, rows in zip(ids, gold, strict=True)},
    )  # fmt: skip


def _task(pool: Pool, name: str = "minilm-foolmetwice", **changed: Any) -> train.Task:
    stanza = {**STANZA, **changed}
    loop = tune.Loop(**stanza["loop"])
    recipe = dataclasses.replace(RECIPE, groups=loop.groups * loop.steps)
    mined, held = list(groups.mine(pool, recipe)), checkpoints.held_out(pool, recipe)
    return train.Task(name, stanza, loop, mined, held, {"key": "made.dev"})


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> layout.Layout:
    monkeypatch.setenv("LOSSMAP_CACHE", str(tmp_path / "cache"))
    return layout.Layout(tmp_path, "tiny", {"scales": {"tiny": {}}})


def test_rankings_are_interleaved_and_each_row_stands_once() -> None:
    assert groups.interleaved([1, 2, 3, 4], [3, 1, 9]) == [1, 3, 2, 9, 4]
    assert groups.interleaved([], [7]) == [7]


@pytest.mark.parametrize(("size", "near", "far"), [(20, 3, 2), (7, 4, 1), (6, 5, 0), (3, 3, 0)])
def test_negatives_come_in_their_shares_and_one_side_helps_out(size: int, near: int, far: int) -> None:
    drawn = groups.negatives(list(range(size)), RECIPE, np.random.default_rng(1))
    assert len(set(drawn)) == len(drawn) == near + far
    assert Counter(row < RECIPE.first for row in drawn) == Counter({True: near, False: far})


def test_no_group_holds_a_second_gold_passage_or_one_of_a_closed_page() -> None:
    pool = _pool()
    closed = groups.held_out(pool, RECIPE)
    row_of, query_of = {text: row for row, text in enumerate(pool.texts)}, {q: i for i, q in enumerate(pool.queries)}
    mined = list(groups.mine(pool, RECIPE))
    assert len(mined) == RECIPE.groups and len(closed) == RECIPE.held_out
    for group in mined:
        query = query_of[group.query]
        gold, *others = (row_of[text] for text in group.passages)
        assert pool.pages[query] not in closed and gold in pool.gold[query]
        assert len(others) == 5 and not set(others) & pool.gold[query]
        assert all(pool.page_of_row[row] and pool.page_of_row[row] not in closed for row in others)
        ranked = groups.candidates(pool, query, set(pool.pages) - closed)
        assert sum(ranked.index(row) < RECIPE.first for row in others) == RECIPE.near


def test_every_claim_comes_once_before_any_comes_twice() -> None:
    pool = _pool()
    open_claims = sum(page not in groups.held_out(pool, RECIPE) for page in pool.pages)
    mined = list(groups.mine(pool, RECIPE))
    assert len({group.query for group in mined[:open_claims]}) == open_claims
    assert [g.query for g in mined[:open_claims]] != [g.query for g in mined[open_claims : 2 * open_claims]]


def test_mining_is_a_function_of_rankings_and_seed() -> None:
    pool = _pool()
    found = [groups.sha256(list(groups.mine(pool, RECIPE))) for _ in range(2)]
    other = groups.sha256(list(groups.mine(pool, dataclasses.replace(RECIPE, seed=14))))
    assert found[0] == found[1] != other


def test_too_many_held_out_pages_are_refused() -> None:
    with pytest.raises(LossmapError, match="more pages are held out than there are"):
        groups.held_out(_pool(), dataclasses.replace(RECIPE, held_out=PAGES))


def test_batches_hold_every_group_once_and_groups_of_like_length() -> None:
    loop = tune.Loop(**{**LOOP, "steps": 4, "megabatch": 4})
    made = [Group("q", ("x" * size,)) for size in np.random.default_rng(2).permutation(32) + 1]
    found = list(tune.batches(made, loop))
    assert sorted(id(group) for part in found for group in part) == sorted(map(id, made))
    spans = sorted((min(lengths), max(lengths)) for part in found if (lengths := [len(g.passages[0]) for g in part]))
    assert spans == [(1, 8), (9, 16), (17, 24), (25, 32)]


def test_the_rate_climbs_and_falls_to_nothing() -> None:
    loop = tune.Loop(**{**LOOP, "steps": 10, "warmup": 4})
    found = [tune._share(step, loop) for step in range(11)]
    assert found[:4] == [0.25, 0.5, 0.75, 1.0] and found[4] == 1.0 and found[10] == 0.0
    assert found[4:] == sorted(found[4:], reverse=True)


class _Weights:
    """A model that is its step."""

    def __init__(self) -> None:
        self.step, self.restored = 0, -1

    def state_dict(self) -> dict[str, Any]:
        step = self.step
        return {"step": type("Value", (), {"clone": lambda self: step})()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.restored = state["step"]


def test_the_checkpoint_that_orders_held_out_lists_best_is_kept() -> None:
    pool = _pool()
    held = checkpoints.held_out(pool, RECIPE)
    gold = {(pool.queries[i], pool.texts[row]) for i, rows in enumerate(pool.gold) for row in rows}
    perfect = np.array([float(pair in gold) for pair in held.pairs])
    model = _Weights()
    given = {1: -perfect, 2: perfect, 3: perfect}
    choice = checkpoints.Choice(model, held, lambda _: given[model.step])  # type: ignore[arg-type]
    for model.step in given:
        choice.check(model.step)
    choice.restore()
    assert choice.best == model.restored == 2
    assert [row["nDCG@10"] for row in choice.curve][1] == max(row["nDCG@10"] for row in choice.curve)
    assert held.quality(None) == held.quality(-np.arange(len(held.pairs)))


def test_a_model_in_the_cache_is_taken_without_torch(at: layout.Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    work = _task(_pool())
    monkeypatch.setattr(train, "task", lambda name: work)
    monkeypatch.setattr(train, "torch_is_there", lambda: False)
    assert not train.ready(work.name)
    with pytest.raises(LossmapError, match=r"needs the group hub[\s\S]*\./run hub"):
        train.run(at, "stage5", work.name)
    canon.write_json(work.folder / rerankers.CARD, {"name": work.name})
    assert train.ready(work.name) and train.run(at, "stage5", work.name) == work.folder
    assert canon.read_json(at.stage("stage5") / "trained.json") == {"name": work.name}


def test_other_groups_or_another_recipe_lie_in_another_folder(at: layout.Layout) -> None:
    work = _task(_pool())
    assert dataclasses.replace(work, mined=work.mined[1:]).folder != work.folder
    assert dataclasses.replace(work, stanza={**STANZA, "max_length": 32}).folder != work.folder
    assert dataclasses.replace(work, stanza={**STANZA, "note": "prose"}).folder == work.folder


def test_only_a_recipe_can_be_trained() -> None:
    with pytest.raises(LossmapError, match=r"no recipe trains[\s\S]*minilm-foolmetwice"):
        train.task("bge-small-cosine")


def test_a_training_run_is_repeatable_described_and_equal_to_its_export(at: layout.Layout, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs the requirement group hub")
    pytest.importorskip("onnx", reason="needs the requirement group hub")
    work = _task(_pool())
    cards = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        train.make(work, tmp_path / name)
        cards.append((tmp_path / name / rerankers.CARD).read_bytes())
    assert cards[0] == cards[1], "the weights' hashes stand in the card"
    card = canon.read_json(tmp_path / "one" / rerankers.CARD)
    assert float(card["parity"]["largest_difference"]) <= float(card["parity"]["limit"])
    assert [row["step"] for row in card["held_out"]["checkpoints"]] == LOOP["checkpoints"]
    assert card["chosen"] in LOOP["checkpoints"] and "seconds" not in str(card)
    assert canon.read_json(tmp_path / "one" / "runinfo.json")["seconds"] > 0


def test_an_export_that_is_not_its_source_is_refused(at: layout.Layout, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="needs the requirement group hub")
    pytest.importorskip("onnx", reason="needs the requirement group hub")
    from lossmap.studies import bases, export

    work = _task(_pool())
    tune.seeded(13)
    base = bases.load(work.stanza["base"], 0.0, [text for group in work.mined for text in group.passages])
    base.model.eval()
    base.tokenizer.save(str(tmp_path / rerankers.TOKENIZER))
    export.write(base.model, base.tokenizer, 64, tmp_path / rerankers.WEIGHTS)
    assert export.parity(base.model, tmp_path, 64, work.held.pairs[:20]) < export.PARITY
    with torch.no_grad():
        base.model.classifier.bias += 0.01
    with pytest.raises(LossmapError, match="not the one that was trained"):
        export.parity(base.model, tmp_path, 64, work.held.pairs[:20])


@pytest.mark.parametrize(("ready", "code"), [(True, 0), (False, 10)])
def test_only_a_missing_torch_has_the_exit_code_that_installs_it(
    ready: bool, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train, "ready", lambda name: ready)
    options = argparse.Namespace(ready=True, name="any", scale="smoke")
    assert rerank._train(options) == code
    rule = (Path(rerank.__file__).parents[3] / "workflow/rules/rerank.smk").read_text()
    assert f"--ready {{SCALED}} || {{{{ [ $? -eq {rerank.NEEDS_TORCH} ] && ./run hub; }}}})" in rule
