"""What a cross-encoder starts from: a published encoder with a new linear layer, or a small random one for fixtures."""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenizers import Tokenizer

from lossmap import canon
from lossmap.errors import LossmapError

if TYPE_CHECKING:
    import torch

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@dataclass(frozen=True)
class Base:
    """A model with one label (first piece, pooler, a new linear layer), its tokenizer, and the hash of its weights."""

    model: torch.nn.Module
    tokenizer: Tokenizer
    weights_sha256: str | None


def load(stanza: Mapping[str, Any], dropout: float, texts: Sequence[str]) -> Base:
    """The base of a recipe; ``texts`` teach the tokenizer of a random one."""
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return _random(stanza["random"], dropout, texts) if "random" in stanza else _published(stanza, dropout)


def folder(stanza: Mapping[str, Any]) -> Path:
    """Where the package of a published base lies, its weights checked by hash."""
    name = stanza["package"].replace("-", "_")
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise LossmapError("the base of a recipe is not installed", where=stanza["package"], next_command="./run hub")
    found = Path(spec.origin).parent / "model"
    observed = canon.file_sha256(found / "model.safetensors")
    if observed != stanza["weights_sha256"]:
        raise LossmapError(
            "the base of a recipe has the wrong hash", where=found, observed=observed,
            expected=stanza["weights_sha256"], next_command="./run hub",
        )  # fmt: skip
    return found


def _common(dropout: float) -> dict[str, Any]:
    """Eager attention: what is exported, and on one core faster than the fused kernel, whose dropout is slow."""
    return {
        "hidden_dropout_prob": dropout,
        "attention_probs_dropout_prob": dropout,
        "attn_implementation": "eager",
    }


def _published(stanza: Mapping[str, Any], dropout: float) -> Base:
    """Word embeddings stay as they are: a thousand claims would only move the words that they happen to hold."""
    from transformers import BertForSequenceClassification

    path = folder(stanza)
    model = BertForSequenceClassification.from_pretrained(str(path), num_labels=1, **_common(dropout))
    model.bert.embeddings.word_embeddings.weight.requires_grad_(False)
    return Base(model, Tokenizer.from_file(str(path / "tokenizer.json")), stanza["weights_sha256"])


def _random(shape: Mapping[str, Any], dropout: float, texts: Sequence[str]) -> Base:
    from transformers import BertConfig, BertForSequenceClassification

    tokenizer = word_pieces(texts, shape["vocab_size"])
    config = BertConfig(**{**shape, "vocab_size": tokenizer.get_vocab_size()}, **_common(dropout), num_labels=1)
    return Base(BertForSequenceClassification(config), tokenizer, None)


def word_pieces(texts: Sequence[str], size: int) -> Tokenizer:
    """A lower-casing WordPiece tokenizer for single texts and pairs: every letter, then the commonest words.

    The library's trainer breaks ties by the order of a hash map, and two runs would learn two vocabularies.
    """
    from tokenizers import models, normalizers, pre_tokenizers, processors

    shape, cut = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    words = Counter(word for text in texts for word, _ in cut.pre_tokenize_str(shape.normalize_str(text)))
    letters = sorted({letter for word in words for letter in word})
    common = sorted((word for word in words if len(word) > 1), key=lambda word: (-words[word], word))
    pieces = [*SPECIAL, *letters, *(f"##{letter}" for letter in letters), *common][:size]
    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = shape, cut
    ends = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
    )
    return tokenizer
