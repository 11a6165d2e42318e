"""Cross-encoders on the committed fixture: real ONNX, scored once, cut at their length, never absent in silence."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from lossmap import canon, settings
from lossmap.encode import cache, cross, hub, pairs, rerankers, store
from lossmap.encode.cross import CrossEncoder, Pair
from lossmap.errors import LossmapError

QUERIES = ["what did the team decide about the budget", "who raised the question of noise"]
PASSAGES = [
    "we keep the budget as it is",
    "i think the noise comes from the microphones , and we should ask again next week",
    "yes",
    "the remote control needs a smaller battery , otherwise the case is too heavy for one hand , and nobody wants that",
]
PAIRS: list[Pair] = [(query, passage) for query in QUERIES for passage in PASSAGES]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOSSMAP_CACHE", str(tmp_path))
    monkeypatch.setenv("LOSSMAP_OFFLINE", "1")
    return tmp_path


@pytest.fixture
def fixture() -> rerankers.Reranker:
    return rerankers.get("fixture-qmsum")


@pytest.fixture
def encoder(fixture: rerankers.Reranker) -> CrossEncoder:
    return CrossEncoder(*fixture.files(), fixture.max_length, threads=1)


@pytest.fixture
def own_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A root whose rerankers.yaml a test writes."""
    monkeypatch.setenv("LOSSMAP_ROOT", str(tmp_path))
    (tmp_path / "workflow/config").mkdir(parents=True)
    rerankers.registry.cache_clear()
    yield tmp_path / rerankers.CONFIG
    rerankers.registry.cache_clear()


def test_a_pair_is_scored_once_and_kept_bit_for_bit(fixture: rerankers.Reranker) -> None:
    first, scored = pairs.pair_scores(fixture, [*PAIRS[:3], PAIRS[0]])
    assert scored == 3 and first.dtype == np.float32 and first[0] == first[3]
    again, scored = pairs.pair_scores(fixture, PAIRS[::-1])
    assert scored == len(PAIRS) - 3
    np.testing.assert_array_equal(again[::-1][:3], first[:3])
    assert pairs.pair_scores(fixture, PAIRS)[1] == 0


@pytest.mark.timeout(60)
def test_known_pairs_are_read_while_another_process_scores(fixture: rerankers.Reranker) -> None:
    first, _ = pairs.pair_scores(fixture, PAIRS)
    with pairs.PairCache(fixture).writing():
        again, scored = pairs.pair_scores(fixture, PAIRS)
    assert scored == 0
    np.testing.assert_array_equal(again, first)


def test_no_pairs_are_no_scores(fixture: rerankers.Reranker) -> None:
    scores, scored = pairs.pair_scores(fixture, [])
    assert scores.shape == (0,) and scored == 0


def test_a_score_does_not_depend_on_its_batch(encoder: CrossEncoder) -> None:
    together = encoder.scores(PAIRS)
    alone = np.array([encoder.scores([pair])[0] for pair in PAIRS])
    beside_long = encoder.scores([*PAIRS, ("a question", " ".join(PASSAGES * 9))])[: len(PAIRS)]
    np.testing.assert_allclose(alone, together, atol=1e-5)
    np.testing.assert_allclose(beside_long, together, atol=1e-5)
    assert np.ptp(together) > 1e-3


def test_a_score_does_not_depend_on_the_order_of_pairs(encoder: CrossEncoder) -> None:
    order = np.random.default_rng(3).permutation(len(PAIRS))
    np.testing.assert_allclose(encoder.scores([PAIRS[i] for i in order]), encoder.scores(PAIRS)[order], atol=1e-5)


def test_query_and_passage_are_two_sides(fixture: rerankers.Reranker, encoder: CrossEncoder) -> None:
    tokenizer = cross.paired(Tokenizer.from_file(str(fixture.files()[1])), fixture.max_length)
    fed = cross.feed(tokenizer, PAIRS[:1])
    query = tokenizer.encode(PAIRS[0][0])
    assert fed["token_type_ids"][0].tolist() == [0] * len(query.ids) + [1] * (
        fed["input_ids"].shape[1] - len(query.ids)
    )
    swapped = [(passage, query) for query, passage in PAIRS]
    assert np.abs(encoder.scores(swapped) - encoder.scores(PAIRS)).max() > 1e-4


def test_a_long_pair_is_cut_on_its_longer_side(fixture: rerankers.Reranker, encoder: CrossEncoder) -> None:
    long = " ".join(PASSAGES * 9)
    found = cross.paired(Tokenizer.from_file(str(fixture.files()[1])), fixture.max_length).encode(QUERIES[0], long)
    query = Tokenizer.from_file(str(fixture.files()[1])).encode(QUERIES[0], add_special_tokens=False)
    assert len(found.ids) == fixture.max_length and found.ids[1 : 1 + len(query.ids)] == query.ids
    one, other = encoder.scores([(QUERIES[0], long), (QUERIES[0], long + " and more that nobody reads")])
    assert one == pytest.approx(other, abs=1e-6)


def test_batches_run_over_all_pairs_from_the_shortest_on() -> None:
    found = list(cross.by_length(PAIRS, batch=3))
    lengths = [len(PAIRS[i][0]) + len(PAIRS[i][1]) for part in found for i in part]
    assert lengths == sorted(lengths) and [len(part) for part in found] == [3, 3, 2]


def test_an_interrupted_run_keeps_what_it_scored(fixture: rerankers.Reranker, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = CrossEncoder.batches

    def stops(self: CrossEncoder, some: list[Pair]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for positions, logits in whole(self, some):
            yield positions[:5], logits[:5]
            raise KeyboardInterrupt

    monkeypatch.setattr(store, "FLUSH", 5)
    monkeypatch.setattr(CrossEncoder, "batches", stops)
    with pytest.raises(KeyboardInterrupt):
        pairs.pair_scores(fixture, PAIRS)
    monkeypatch.setattr(CrossEncoder, "batches", whole)
    assert pairs.pair_scores(fixture, PAIRS)[1] == len(PAIRS) - 5


def test_pairs_that_only_join_alike_are_not_one() -> None:
    assert pairs.pair_key(("a b", "c")) != pairs.pair_key(("a", "b c"))


def test_other_weights_have_another_cache(fixture: rerankers.Reranker, monkeypatch: pytest.MonkeyPatch) -> None:
    one = pairs.PairCache(fixture).folder
    card = {**fixture.provenance(), "weights_sha256": "0" * 64}
    monkeypatch.setattr(rerankers.Reranker, "provenance", lambda self: card)
    assert pairs.PairCache(fixture).folder != one


@pytest.mark.parametrize(
    ("name", "mend"),
    [("minilm-foolmetwice", "build/full/stages/stage5/trained.json"), ("ms-marco-MiniLM-L-6-v2", "hub; ./run lossmap")],
)
def test_absent_weights_raise_and_say_what_brings_them(name: str, mend: str) -> None:
    absent = rerankers.get(name)
    with pytest.raises(LossmapError, match=rf"absent[\s\S]*next: \./run {mend}"):
        pairs.pair_scores(absent, PAIRS)
    assert not rerankers.state(absent).obtained


def test_weights_that_changed_raise_even_where_every_pair_is_known(
    fixture: rerankers.Reranker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs.pair_scores(fixture, PAIRS)
    copy = tmp_path / "copy"
    shutil.copytree(settings.load().root / fixture.stanza["folder"], copy)
    with open(copy / rerankers.WEIGHTS, "r+b") as handle:
        handle.write(b"\0")
    changed = replace(fixture, stanza={**fixture.stanza, "folder": str(copy)})
    with pytest.raises(LossmapError, match="absent or changed"):
        pairs.pair_scores(changed, PAIRS)


def test_a_recipe_trained_on_two_sets_of_groups_is_not_guessed_at(own_cache: Path) -> None:
    trained = rerankers.get("minilm-foolmetwice")
    recipe = rerankers.recipe(trained.stanza)
    folders = [rerankers.folder(trained.name, {"recipe": recipe, "groups_sha256": data}) for data in ("one", "other")]
    canon.write_json(folders[0] / rerankers.CARD, {"recipe": recipe, "files": {}})
    assert rerankers.trained(trained) == folders[0]
    canon.write_json(folders[1] / rerankers.CARD, {"recipe": recipe, "files": {}})
    with pytest.raises(LossmapError, match="more than one set of groups"):
        rerankers.trained(trained)


def test_a_model_of_another_recipe_does_not_answer(own_cache: Path) -> None:
    trained = rerankers.get("minilm-foolmetwice")
    recipe = {**rerankers.recipe(trained.stanza), "max_length": 8}
    folder = rerankers.folder(trained.name, {"recipe": recipe, "groups_sha256": ""})
    canon.write_json(folder / rerankers.CARD, {"recipe": recipe, "files": {}})
    with pytest.raises(LossmapError, match="a trained re-ranker is absent"):
        rerankers.trained(trained)


def test_a_hub_that_is_not_reached_is_a_reason(own_cache: Path) -> None:
    found = rerankers.state(rerankers.get("ms-marco-MiniLM-L-6-v2"), obtain=True)
    assert found == rerankers.State(False, hub.UNREACHABLE)


def test_a_bi_encoder_gives_cosines_and_its_label(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def vectors(model: object, texts: list[str], prompt: str) -> tuple[np.ndarray, int]:
        asked.append((len(texts), prompt))
        angles = np.array([len(text) for text in texts], np.float32)
        return np.column_stack((np.cos(angles), np.sin(angles))), len(texts)

    monkeypatch.setattr(cache, "encode_distinct", vectors)
    monkeypatch.setattr(pairs, "BLOCK", 3)
    bi = rerankers.get("bge-small-cosine")
    scores, computed = pairs.pair_scores(bi, PAIRS)
    expected = [np.cos(len(query) - len(passage)) for query, passage in PAIRS]
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    assert computed == len(QUERIES) + len(PASSAGES)
    assert asked == [(len(QUERIES), bi.encoder.query_prompt), (len(PASSAGES), bi.encoder.passage_prompt)]
    assert bi.label == "second-stage bi-encoder" and rerankers.get("fixture-qmsum").label == "fixture cross-encoder"


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(LossmapError, match=r"unknown re-ranker[\s\S]*fixture-qmsum") as caught:
        rerankers.get("nothing")
    assert caught.value.exit_code == 2


def test_an_unknown_kind_is_refused(own_registry: Path) -> None:
    canon.write_json(own_registry, {"odd": {"kind": "oracle", "max_length": 8, "licence": "", "note": ""}})
    with pytest.raises(LossmapError, match=r"unknown kind[\s\S]*oracle"):
        rerankers.registry()


def test_provenance_names_what_served() -> None:
    found = rerankers.get("fixture-qmsum").provenance()
    wanted = rerankers.get("fixture-qmsum").stanza["files"]
    assert found["weights_sha256"] == wanted["weights"]["sha256"]
    assert found["tokenizer_sha256"] == wanted["tokenizer"]["sha256"]


def test_the_fixture_is_what_its_card_says_and_small() -> None:
    stanza = rerankers.get("fixture-qmsum").stanza
    folder = settings.load().root / stanza["folder"]
    card = canon.read_json(folder / rerankers.CARD)
    assert card["files"] == {one["path"]: one["sha256"] for one in stanza["files"].values()}
    assert card["recipe"] == stanza["made_by"]
    assert float(card["parity"]["largest_difference"]) <= float(card["parity"]["limit"])
    assert sum((folder / name).stat().st_size for name in card["files"]) <= 200_000
