"""ReMe's task memories: what an agent wrote down after a task, and the queries it came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from lossmap.corpora.readers import Reading
from lossmap.corpora.readers.collection import Collection, fields_of, load_jsonl
from lossmap.corpora.registry import Stanza

VERSION = "1"


def read(stanza: Stanza, folder: Path, selection: Mapping[str, int] | None = None) -> Reading:
    """All memories of all groups as documents (a group is a domain), the groups that the set asks as queries.

    ``document`` lists the fields that make the text, ``query`` names the metadata field that asks. The documents of
    one variant are the same whichever field asks, so that one index serves both query sets.
    """
    options, collection = stanza.options, Collection(stanza.language)
    texts: Counter[str] = Counter()
    for path in sorted(folder.glob(options["memories"])):
        rows, group = load_jsonl(path), path.stem
        with fields_of(path, "ReMe's fields"):
            for position, row in enumerate(rows):
                memory = row["memory_id"]
                collection.add(memory, "", "\n".join(row[name] for name in options["document"]), group)
                if group.startswith(tuple(options["asked"])):
                    text = row["metadata"][options["query"]]
                    texts[text] += 1
                    collection.ask(f"{stanza.key}:{memory}:{position:04d}", text, {memory: 1}, group)
    repeated = sum(count for count in texts.values() if count > 1)
    return collection.finish(selection, distinct_queries=len(texts), queries_with_a_repeated_text=repeated)
