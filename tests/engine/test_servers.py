"""Both servers for real: reuse, a killed parent, an occupied port, other people's data, the checks."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import psycopg
import pytest
from opensearchpy import OpenSearch

from lossmap import engine
from lossmap.engine import capability, marker, process
from lossmap.engine import opensearch as search_server
from lossmap.engine import postgres as database_server
from lossmap.errors import LossmapError

Connect = Callable[[], psycopg.Connection]
Names = Callable[[str], str]


@pytest.fixture
def own_runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A second runtime folder, for tests that start and stop servers of their own."""
    folder = Path(tempfile.mkdtemp(prefix="lossmap-test-", dir="/var/tmp"))
    monkeypatch.setenv("LOSSMAP_RUNTIME", str(folder))
    yield folder
    monkeypatch.setenv("LOSSMAP_RUNTIME", str(folder))
    engine.down()
    shutil.rmtree(folder)


def test_up_twice_is_one_pair_of_servers(opensearch: OpenSearch, postgres: Connect) -> None:
    before = engine.status()
    endpoints = engine.up()
    after = engine.status()
    assert {name: row["pid"] for name, row in after.items()} == {name: row["pid"] for name, row in before.items()}
    assert endpoints == {name: row["endpoint"] for name, row in after.items()}
    assert all(row["state"] == "up" and row["rss_bytes"] > 1 << 20 for row in after.values())


def test_versions_are_reported(opensearch: OpenSearch, postgres: Connect) -> None:
    status = engine.status()
    assert search_server.version(opensearch) == status["opensearch"]["version"]
    with postgres() as conn:
        assert database_server.version(conn) == status["postgres"]["version"]
        assert int(database_server.version(conn).split(".")[0]) >= database_server.MINIMUM


@pytest.mark.parametrize("name", ["postgres", "opensearch"])
def test_a_server_survives_its_killed_parent_and_is_reused(own_runtime: Path, name: str) -> None:
    script = f"from lossmap.engine import {name}; import time; {name}.up(); print('up', flush=True); time.sleep(60)"
    env = os.environ | {"PYTHONPATH": str(Path(engine.__file__).parents[2])}
    parent = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=env, start_new_session=True
    )
    assert parent.stdout.readline() == "up\n"
    os.killpg(parent.pid, signal.SIGKILL)
    parent.communicate()
    record = process.live(name)
    assert record is not None
    server = {"postgres": database_server, "opensearch": search_server}[name]
    assert server.up() == record.endpoint and process.live(name) == record
    assert server.down() is True and not process.alive(record)


def test_a_server_killed_outright_is_started_again_with_its_data(own_runtime: Path) -> None:
    database_server.up()
    with database_server.connect() as conn:
        conn.execute("create table kept (id int)")
    first = process.live("postgres")
    os.kill(first.pid, signal.SIGKILL)
    while process.alive(first):
        time.sleep(0.02)
    with pytest.raises(LossmapError, match="(?s)not up.*lossmap engine up"):
        database_server.connect()
    database_server.up()
    assert process.live("postgres").pid != first.pid
    with database_server.connect() as conn:
        assert conn.execute("select count(*) from kept").fetchone() == (0,)


def test_the_pid_file_of_a_dead_postmaster_does_not_block_a_start(own_runtime: Path) -> None:
    database_server.up()
    pid_file = next(own_runtime.glob("postgres-*/data/postmaster.pid"))
    text = pid_file.read_text()
    database_server.down()
    pid_file.write_text(text.replace(text.split("\n", 1)[0], str(os.getpid()), 1))
    database_server.up()


def test_the_pinned_wheel_serves_when_path_is_ruled_out(own_runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOSSMAP_ENGINES", "embedded")
    database_server.up()
    with database_server.connect() as conn:
        assert database_server.version(conn) == "18.6"
        assert conn.execute("show listen_addresses").fetchone() == ("",)
    if os.geteuid() == 0:
        pid = process.live("postgres").pid
        assert Path(f"/proc/{pid}").stat().st_uid == process.SERVER_ID


def test_permissions_outside_the_runtime_folder_are_untouched(own_runtime: Path) -> None:
    watched = [own_runtime.parent, Path(sys.prefix), Path.home(), Path("/root")]
    before = [path.stat().st_mode for path in watched if path.exists()]
    database_server.up()
    assert [path.stat().st_mode for path in watched if path.exists()] == before


def test_a_runtime_path_too_long_for_a_socket_is_refused(own_runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_runtime.chmod(0o755)
    monkeypatch.setenv("LOSSMAP_RUNTIME", str(own_runtime / ("x" * 90)))
    with pytest.raises(LossmapError, match="too long for a Unix socket") as raised:
        database_server.up()
    assert raised.value.exit_code == 2


def test_an_occupied_port_is_named(own_runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setenv("LOSSMAP_OPENSEARCH_PORT", str(port))
        with pytest.raises(LossmapError, match=f"(?s)port {port} is occupied.*next: ") as raised:
            search_server.up()
    assert raised.value.exit_code == 2
    assert process.live("opensearch") is None


def test_another_port_than_the_running_one_is_refused(opensearch: OpenSearch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOSSMAP_OPENSEARCH_PORT", "1")
    with pytest.raises(LossmapError, match="on another port") as raised:
        search_server.up()
    assert raised.value.exit_code == 2


def test_a_client_without_an_engine_says_what_to_do(own_runtime: Path) -> None:
    with pytest.raises(LossmapError, match="(?s)not up.*lossmap engine up"):
        search_server.client()


def test_external_endpoints_are_used_and_never_stopped(
    opensearch: OpenSearch, postgres: Connect, own_runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "http://{host}:{port}".format(**opensearch.transport.hosts[0])
    with postgres() as conn:
        dsn = conn.info.dsn
    monkeypatch.setenv("LOSSMAP_OPENSEARCH_URL", url)
    monkeypatch.setenv("LOSSMAP_POSTGRES_DSN", dsn)
    assert engine.up() == {"opensearch": url, "postgres": dsn}
    assert {row["state"] for row in engine.status().values()} == {"external"}
    assert engine.down() == {"opensearch": False, "postgres": False}
    assert search_server.client().ping()


def test_a_foreign_index_is_refused_and_kept(opensearch: OpenSearch, unique_name: Names) -> None:
    name = unique_name("foreign")
    opensearch.indices.create(index=name)
    for touch in (marker.require_index, marker.delete_index):
        with pytest.raises(LossmapError, match=name) as raised:
            touch(opensearch, name)
        assert raised.value.exit_code == 2
    assert opensearch.indices.exists(index=name)
    opensearch.indices.delete(index=name)


def test_our_index_is_ours_and_goes(opensearch: OpenSearch, unique_name: Names) -> None:
    name = unique_name("ours")
    marker.require_index(opensearch, name)
    opensearch.indices.create(index=name, body={"mappings": {"_meta": marker.META}})
    marker.require_index(opensearch, name)
    assert marker.index_is_ours(opensearch, name)
    marker.delete_index(opensearch, name)
    assert not opensearch.indices.exists(index=name)
    marker.delete_index(opensearch, name)


@pytest.mark.parametrize("pattern", ["lossmap*", "_all", "a,b"])
def test_a_pattern_never_deletes(opensearch: OpenSearch, pattern: str) -> None:
    with pytest.raises(LossmapError, match="pattern"):
        marker.delete_index(opensearch, pattern)


def test_an_alias_to_a_foreign_index_is_refused(opensearch: OpenSearch, unique_name: Names) -> None:
    foreign, alias = unique_name("foreign"), unique_name("alias")
    opensearch.indices.create(index=foreign, body={"aliases": {alias: {}}})
    with pytest.raises(LossmapError, match=alias):
        marker.require_index(opensearch, alias)
    opensearch.indices.delete(index=foreign)


def test_an_unmarked_index_never_comes_into_being(opensearch: OpenSearch, unique_name: Names) -> None:
    name = unique_name("auto")
    with pytest.raises(Exception, match="index_not_found"):
        opensearch.index(index=name, body={"a": 1})
    assert not opensearch.indices.exists(index=name)


def test_a_foreign_schema_is_refused_and_kept(postgres: Connect, unique_name: Names) -> None:
    name = unique_name("foreign")
    with postgres() as conn:
        conn.execute(f"create schema {name}")
        conn.execute(f"create table {name}.precious (id int)")
        for touch in (marker.create_schema, marker.require_schema, marker.drop_schema):
            with pytest.raises(LossmapError, match=name) as raised:
                touch(conn, name)
            assert raised.value.exit_code == 2
        assert conn.execute(f"select count(*) from {name}.precious").fetchone() == (0,)
        conn.execute(f"drop schema {name} cascade")


def test_our_schema_is_ours_and_goes(postgres: Connect, unique_name: Names) -> None:
    name = unique_name("ours")
    with postgres() as conn:
        assert marker.require_schema(conn, name) is False
        marker.create_schema(conn, name)
        marker.create_schema(conn, name)
        assert marker.require_schema(conn, name) is True
        marker.drop_schema(conn, name)
        assert marker.require_schema(conn, name) is False


def test_the_engine_has_what_it_needs(opensearch: OpenSearch) -> None:
    capability.check_capabilities(opensearch)
    capability.check_rank_constant_alive(opensearch)
    assert opensearch.cat.indices(index="lossmap-probe-*", format="json") == []


class _Altered:
    """An engine whose answers differ from the real one's in one way."""

    def __init__(self, real: Any, **overrides: Any) -> None:
        self._real = real
        self.__dict__.update(overrides)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def test_a_dead_rank_constant_is_refused(opensearch: OpenSearch) -> None:
    def search(index: str, body: dict[str, Any]) -> Any:
        body = deepcopy(body)
        fusion = body["search_pipeline"]["phase_results_processors"][0]["score-ranker-processor"]
        fusion["combination"]["rank_constant"] = 60
        return opensearch.search(index=index, body=body)

    with pytest.raises(LossmapError, match="rank_constant is dead") as raised:
        capability.check_rank_constant_alive(_Altered(opensearch, search=search))
    assert raised.value.exit_code == 2
    assert opensearch.cat.indices(index="lossmap-probe-*", format="json") == []


@pytest.mark.parametrize("missing", ["score-ranker-processor", "normalization-processor", "opensearch-knn"])
def test_a_missing_capability_is_named(opensearch: OpenSearch, missing: str) -> None:
    def perform_request(method: str, path: str) -> Any:
        answer = opensearch.transport.perform_request(method, path)
        for node in answer["nodes"].values():
            pipelines = node["search_pipelines"]
            pipelines["phase_results_processors"] = [
                row for row in pipelines["phase_results_processors"] if row["type"] != missing
            ]
            node["plugins"] = [row for row in node["plugins"] if row["name"] != missing]
        return answer

    altered = _Altered(opensearch, transport=_Altered(None, perform_request=perform_request))
    with pytest.raises(LossmapError, match=missing) as raised:
        capability.check_capabilities(altered)
    assert raised.value.exit_code == 2
