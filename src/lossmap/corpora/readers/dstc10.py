"""DSTC10 track 2, task 2: a spoken user turn (recognised speech) and the FAQ snippet that answers it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from lossmap.corpora.readers import Reading, load_json
from lossmap.corpora.readers.collection import Collection, fields_of
from lossmap.corpora.registry import Stanza
from lossmap.errors import LossmapError

VERSION = "1"
FORM = "DSTC10's fields"
WHOLE_DOMAIN = {"*": "any"}  # an entity id that no document id may hold


def read(stanza: Stanza, folder: Path, selection: Mapping[str, int] | None = None) -> Reading:
    """Snippets ``{domain}.{entity}.{snippet}`` titled by entity; the last turn of each knowledge-seeking instance.

    Only that turn is the query: the entity it means often stands earlier in the dialogue, which bounds what is found.
    """
    collection, entities = Collection(stanza.language), Counter()
    path = folder / stanza.options["knowledge"]
    knowledge = load_json(path)
    with fields_of(path, FORM):
        for domain, known in knowledge.items():
            entities[domain] = len(known)
            for entity, about in known.items():
                for number, snippet in about["docs"].items():
                    name, text = _name(domain, entity, number), f"{snippet['title']}\n{snippet['body']}"
                    collection.add(name, about.get("name") or "", text, domain, f"{domain}.{entity}")
    labels, logs = (load_json(folder / stanza.options[name]) for name in ("labels", "logs"))
    path = folder / stanza.options["labels"]
    with fields_of(path, FORM):
        for position, (label, turns) in enumerate(zip(labels, logs, strict=True)):
            if label["target"]:
                gold = {_name(k["domain"], k["entity_id"], k["doc_id"]): 1 for k in label["knowledge"]}
                domain = label["knowledge"][0]["domain"]
                collection.ask(f"{stanza.key}:{position:04d}", _spoken(turns[-1]), gold, domain)
    seeking = sum(label["target"] for label in labels)
    skipped = {"not_knowledge_seeking": len(labels) - seeking}
    return collection.finish(selection, instances=len(labels), entities=dict(entities), skipped=skipped)


def _name(domain: str, entity: object, number: object) -> str:
    return f"{domain}.{WHOLE_DOMAIN.get(str(entity), entity)}.{number}"


def _spoken(turn: Mapping[str, str]) -> str:
    if turn["speaker"] != "U":
        raise LossmapError("an instance does not end with a user turn", observed=turn["speaker"], expected="U")
    return turn["text"].strip()
