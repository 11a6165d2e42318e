"""XQuAD (Artetxe et al. 2020): SQuAD paragraphs and questions, translated into each language by people."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lossmap.corpora.readers import Reading, load_json
from lossmap.corpora.readers.collection import Collection, fields_of
from lossmap.corpora.registry import Stanza

VERSION = "1"


def read(stanza: Stanza, folder: Path, selection: Mapping[str, int] | None = None) -> Reading:
    """Paragraphs of one language as documents ``a{article}-p{paragraph}``, each question's own one as its gold."""
    language = stanza.options["language"]
    path, collection = folder / stanza.options["articles"].format(language=language), Collection(language)
    document, position = load_json(path), 0
    with fields_of(path, "SQuAD's fields"):
        for number, article in enumerate(document["data"]):
            for place, paragraph in enumerate(article["paragraphs"]):
                name = f"a{number:02d}-p{place:02d}"
                collection.add(name, article["title"].replace("_", " "), paragraph["context"], group=f"a{number:02d}")
                for question in paragraph["qas"]:
                    collection.ask(f"{stanza.key}:{name}:{position:04d}", question["question"].strip(), {name: 1})
                    position += 1
    return collection.finish(selection, articles=len(document["data"]), query_language=language)
