"""Real engines for the suite: started once, in a runtime folder of the session, never the user's own."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from opensearchpy import OpenSearch

from lossmap.engine import opensearch as search_server
from lossmap.engine import postgres as database_server

EXTERNAL = ("LOSSMAP_OPENSEARCH_URL", "LOSSMAP_POSTGRES_DSN", "LOSSMAP_OPENSEARCH_PORT")


@pytest.fixture(scope="session", autouse=True)
def session_runtime() -> Iterator[Path]:
    """A short path (socket names end at 107 bytes) outside any home, so that the server account reaches it."""
    folder = Path(tempfile.mkdtemp(prefix="lossmap-test-", dir="/var/tmp"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOSSMAP_RUNTIME", str(folder))
        patch.setenv("LOSSMAP_HEAP", "512m")
        patch.setenv("LOSSMAP_JIT", "c1")
        for name in EXTERNAL:
            patch.delenv(name, raising=False)
        yield folder
        # Again: a test that left the variable changed must not make these servers outlive their session.
        patch.setenv("LOSSMAP_RUNTIME", str(folder))
        search_server.down()
        database_server.down()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def opensearch(session_runtime: Path) -> OpenSearch:
    """A client of the session's OpenSearch."""
    search_server.up()
    return search_server.client()


@pytest.fixture(scope="session")
def postgres(session_runtime: Path) -> Callable[[], psycopg.Connection]:
    """A factory of connections to the session's PostgreSQL; the caller closes them."""
    endpoint = database_server.up()
    return lambda: psycopg.connect(endpoint)


@pytest.fixture
def unique_name() -> Callable[[str], str]:
    """Names that no other test uses, valid for an index and for a schema."""
    return lambda label: f"lossmap_test_{label}_{uuid.uuid4().hex[:10]}"
