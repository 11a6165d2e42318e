"""The sweep of orphans after a reindex. It fails closed: stale documents go with the next one, deleted ones are lost.

A coordinator that held 22 of 432 files once took the other 410 for orphans and deleted most of an index (seed 000).
"""

from __future__ import annotations

from dataclasses import dataclass

from opensearchpy import OpenSearch, OpenSearchException

from lossmap import canon
from lossmap.engine import marker, opensearch
from lossmap.errors import LossmapError
from lossmap.index import mapping, settle
from lossmap.layout import Layout

AT_ONCE = 1_000
"""Files a request, far below the engine's limit of 65,536 terms."""


@dataclass(frozen=True)
class Tally:
    """Files by what became of them: the ``snapshot`` taken at the start is ``indexed`` and ``failed``, none twice."""

    snapshot: frozenset[str]
    indexed: frozenset[str]
    failed: frozenset[str]

    def gap(self) -> str | None:
        """Why nothing may be deleted by this tally; None where it accounts for every file of its snapshot."""
        done = self.indexed | self.failed
        counts = {
            "neither indexed nor failed": len(self.snapshot - done),
            "outside the snapshot": len(done - self.snapshot),
            "both indexed and failed": len(self.indexed & self.failed),
        }
        wrong = [f"{count} {what}" for what, count in counts.items() if count]
        # An empty snapshot adds up, and every file of the index would be an orphan of it.
        return f"of {len(self.snapshot)} files: {', '.join(wrong)}" if wrong or not self.snapshot else None


def run(at: Layout) -> dict[str, int]:
    """Sweep the live index of a bench by its injections: each injected file must carry chunks there.

    A build never needs this, since it refuses an index that holds more than was meant; an index that something else
    writes to does.
    """
    folders = [at.injection(key) for key in at.documents]
    files = frozenset(row["file_uuid"] for folder in folders for row in canon.read_jsonl(folder / "files.jsonl"))
    client = opensearch.client()
    marker.require_index(client, at.index_name)
    indexed = files & settle.chunk_counts(client, at.index_name).keys()
    return {"deleted": sweep(client, at.index_name, Tally(files, indexed, frozenset()))}


def sweep(client: OpenSearch, index: str, tally: Tally) -> int:
    """Delete the documents, of every plane, of files that are not in the snapshot; how many documents went.

    A file that failed is in the snapshot, so that its old documents stay. Raises (exit 3) where ``tally`` does not
    account for every file or the index is absent, (exit 2) where it is not ours; nothing is deleted then.
    """
    marker.require_index(client, index)
    _require_whole(index, tally)
    if not client.indices.exists(index=index):
        raise LossmapError(
            "there is no index to sweep", where=index, observed="absent", next_command=mapping.REBUILD, exit_code=3
        )
    client.indices.refresh(index=index)
    orphans = sorted(settle.file_counts(client, index, {"match_all": {}}).keys() - tally.snapshot)
    return sum(_delete(client, index, orphans[at : at + AT_ONCE]) for at in range(0, len(orphans), AT_ONCE))


def _require_whole(index: str, tally: Tally) -> None:
    if (gap := tally.gap()) is not None:
        raise LossmapError(
            "the reindex does not account for every file, and nothing is swept",
            where=index,
            observed=gap,
            expected="a snapshot of at least one file, each of them indexed or failed, and no other",
            next_command=mapping.REBUILD,
            exit_code=3,
        )


def _delete(client: OpenSearch, index: str, files: list[str]) -> int:
    body = {"query": {"terms": {"file_uuid": files}}}
    try:
        reply = client.delete_by_query(index=index, body=body, refresh=True, request_timeout=300)
    except OpenSearchException as error:
        raise LossmapError(
            "the sweep was interrupted: some orphans are still there",
            where=index,
            observed=str(error)[:300],
            next_command="run the reindex again when nothing else writes to this index",
            exit_code=3,
        ) from error
    return reply["deleted"]
