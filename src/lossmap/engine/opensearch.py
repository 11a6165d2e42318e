"""OpenSearch: an external URL, the binary on PATH, or 3.6.0 assembled from pinned artefacts."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
from pathlib import Path
from typing import Any

import yaml
from opensearchpy import OpenSearch, OpenSearchException

from lossmap import settings
from lossmap.engine import distribution, process
from lossmap.engine.capability import check_capabilities, check_rank_constant_alive
from lossmap.engine.process import Record
from lossmap.errors import LossmapError

NAME = "opensearch"
START_SECONDS = 120.0
MAX_CLAUSES = 65_536
# Full JIT by default: slower to start, faster under load; c1 suits short runs.
JIT = {"full": [], "c1": ["-XX:TieredStopAtLevel=1"]}

# Lucene merges the equal terms of a fuzzy query and keeps the statistics of whichever its hash tables list first. Their
# order follows a seed and identity hashes of the process, so that one index ranked differently after every restart
# (measured: 2 to 5 of 78 queries). Both are fixed here; Lucene reads the seed as a hexadecimal number.
TERM_ORDER = ("-Dtests.seed=0", "-XX:+UnlockExperimentalVMOptions", "-XX:hashCode=2")
JVM = (
    *TERM_ORDER,
    "-Xss1m",
    "-XX:+UseSerialGC",
    "-Djava.awt.headless=true",
    "-Dfile.encoding=UTF-8",
    "-Djna.nosys=true",
    "-XX:-OmitStackTraceInFastThrow",
    "-Dio.netty.noUnsafe=true",
    "-Dio.netty.noKeySetOptimization=true",
    "-Dio.netty.recycler.maxCapacityPerThread=0",
    "-Dio.netty.allocator.numDirectArenas=0",
    "-Dlog4j.shutdownHookEnabled=false",
    "-Dlog4j2.disable.jmx=true",
    "-Djava.locale.providers=SPI,CLDR",
    "-Dorg.apache.lucene.store.MMapDirectory.sharedArenaMaxPermits=1",
    "--add-opens=java.base/java.nio=org.apache.arrow.memory.core,ALL-UNNAMED",
    # Any other type is taken for a package install, which the launcher refuses.
    "-Dopensearch.distribution.type=zip",
    "-Dopensearch.bundled_jdk=false",
)


def up() -> str:
    """The URL of an engine that answers and passed its checks; starts one when none is running."""
    config = settings.load()
    if config.opensearch_url:
        _check(_connect(config.opensearch_url))
        return config.opensearch_url
    with process.lock(NAME):
        record = process.live(NAME)
        _refuse_other_port(config.opensearch_port, record)
        fresh = record is None
        record = record or _start(_free_port(config.opensearch_port))
        process.wait_ready(NAME, record, lambda: _answers(record.endpoint), _log(record.version), START_SECONDS)
        if fresh:
            _check_or_stop(record)
        return record.endpoint


def down() -> bool:
    """Stop our own server; True when one was running. An external engine is left alone."""
    with process.lock(NAME):
        return process.stop(NAME)


def client() -> OpenSearch:
    """A client of the external or the running engine; raises when none is up."""
    return _connect(url())


def url() -> str:
    external = settings.load().opensearch_url
    record = process.live(NAME)
    if not external and not record:
        raise LossmapError(
            "OpenSearch is not up", where=settings.load().runtime, next_command="./run lossmap engine up"
        )
    return external or record.endpoint


def version(client: OpenSearch) -> str:
    return client.info()["version"]["number"]


def describe(client: OpenSearch) -> dict[str, Any]:
    """What a result names of its engine; ``term_order_fixed``: scores of fuzzy terms survive a restart (TERM_ORDER)."""
    nodes = client.nodes.info(metric="jvm")["nodes"].values()
    fixed = all(set(TERM_ORDER) <= set(node["jvm"].get("input_arguments", [])) for node in nodes)
    return {"name": "opensearch", "version": version(client), "term_order_fixed": fixed}


def _connect(endpoint: str) -> OpenSearch:
    # A bulk request or a force-merge on two cores may take minutes.
    return OpenSearch(endpoint, timeout=300, maxsize=16)


def _check_or_stop(record: Record) -> None:
    """A server of ours that fails its checks must not be found, and taken for good, by the next call."""
    try:
        _check(_connect(record.endpoint))
    except LossmapError:
        process.stop(NAME)
        raise


def _check(engine: OpenSearch) -> None:
    try:
        check_capabilities(engine)
        check_rank_constant_alive(engine)
    except OpenSearchException as error:
        raise LossmapError(
            "OpenSearch does not answer as it must",
            observed=error,
            next_command="check LOSSMAP_OPENSEARCH_URL and its credentials; `./run lossmap engine status`",
        ) from error


def _answers(endpoint: str) -> bool:
    probe = OpenSearch(endpoint, timeout=5, max_retries=0)
    with contextlib.suppress(OpenSearchException), contextlib.closing(probe):
        return probe.cluster.health()["status"] in ("yellow", "green")
    return False


def _refuse_other_port(wanted: int, record: Record | None) -> None:
    if wanted and record and not record.endpoint.endswith(f":{wanted}"):
        raise LossmapError(
            "OpenSearch runs already, on another port than the one asked for",
            observed=record.endpoint,
            expected=f"port {wanted}",
            next_command="./run lossmap engine down, or unset LOSSMAP_OPENSEARCH_PORT",
            exit_code=2,
        )


def _free_port(wanted: int) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError as error:
            raise LossmapError(
                f"port {wanted} is occupied by another program",
                where="LOSSMAP_OPENSEARCH_PORT",
                observed=error.strerror,
                expected="a free loopback port",
                next_command="LOSSMAP_OPENSEARCH_PORT=0 lossmap engine up (takes any free port)",
                exit_code=2,
            ) from error
        return probe.getsockname()[1]


def _start(port: int) -> Record:
    binary = path_binary()
    home = distribution.assemble() if binary is None else binary.parents[1]
    number = home_version(home)
    process.require_reachable(home)
    base = _folder(number)
    for name in ("data", "logs", "tmp"):
        (base / name).mkdir(parents=True, exist_ok=True)
    _configure(home, base, port)
    argv, env = _from_path(binary, home, base) if binary else _from_artifacts(home, base)
    process.server_folder(base)
    endpoint = f"http://127.0.0.1:{port}"
    environment = {"HOME": str(base), "LANG": "C.UTF-8", "PATH": os.environ.get("PATH", os.defpath), **env}
    return process.spawn(NAME, argv, endpoint=endpoint, version=number, log=_log(number), env=environment, cwd=base)


def path_binary() -> Path | None:
    """The launcher on PATH, links resolved; None when absent or engines=embedded."""
    found = None if settings.load().engines == "embedded" else shutil.which("opensearch")
    return Path(found).resolve() if found else None


def home_version(home: Path) -> str:
    """Version by the name of the core jar, which costs no JVM start."""
    jars = sorted((home / "lib").glob("opensearch-[0-9]*.jar"))
    if not jars:
        raise LossmapError("no OpenSearch core jar", where=home / "lib", next_command="./run lossmap doctor")
    return jars[0].stem.removeprefix("opensearch-")


def _folder(number: str) -> Path:
    """One data folder per version: an older engine refuses what a newer one wrote."""
    return process.runtime() / f"{NAME}-{number}"


def _log(number: str) -> Path:
    return process.runtime() / f"{NAME}-{number}.log"


def _configure(home: Path, base: Path, port: int) -> None:
    """A writable copy of the configuration: a Nix store path is read-only."""
    config = base / "config"
    shutil.rmtree(config, ignore_errors=True)
    shutil.copytree(home / "config", config, copy_function=shutil.copyfile)
    distribution.open_to_read(config)
    values: dict[str, object] = {
        "cluster.name": "lossmap",
        "node.name": "lossmap-0",
        "discovery.type": "single-node",
        "network.host": "127.0.0.1",
        "http.port": port,
        "transport.port": 0,
        "path.data": str(base / "data"),
        "path.logs": str(base / "logs"),
        # The watermark would turn a small index read-only on a disk that others have filled.
        "cluster.routing.allocation.disk.threshold_enabled": False,
        # An index that nobody marked must never come into being.
        "action.auto_create_index": False,
        # A long question has one clause a word, field and fuzzy expansion: the default of 1,024 refuses it.
        "indices.query.bool.max_clause_count": MAX_CLAUSES,
    }
    if (home / "plugins" / "opensearch-security").exists():
        values["plugins.security.disabled"] = True
    (config / "opensearch.yml").write_text(yaml.safe_dump(values, sort_keys=False))


def _memory() -> list[str]:
    heap = os.environ.get("LOSSMAP_HEAP", "2g")
    jit = os.environ.get("LOSSMAP_JIT", "full")
    if jit not in JIT:
        raise LossmapError("unknown LOSSMAP_JIT", observed=jit, expected=" or ".join(JIT), exit_code=2)
    return [f"-Xms{heap}", f"-Xmx{heap}", *JIT[jit]]


def _from_artifacts(home: Path, base: Path) -> tuple[list[str], dict[str, str]]:
    java = distribution.java()
    module = "jdk.incubator.vector"
    vector = [f"--add-modules={module}"] if distribution.java_has_module(java, module) else []
    argv = [
        str(java),
        *_memory(),
        *JVM,
        *vector,
        f"-Djna.tmpdir={base / 'tmp'}",
        f"-Djava.io.tmpdir={base / 'tmp'}",
        f"-javaagent:{home / 'agent' / 'opensearch-agent.jar'}",
        f"-Dopensearch.path.home={home}",
        f"-Dopensearch.path.conf={base / 'config'}",
        "-cp",
        f"{home}/lib/*:{home}/icu/*",
        "org.opensearch.bootstrap.OpenSearch",
    ]
    return argv, {}


def _from_path(binary: Path, home: Path, base: Path) -> tuple[list[str], dict[str, str]]:
    """The distribution's own launcher (it replaces itself by Java, so the pid stays) on a writable home of links."""
    linked = base / "home"
    shutil.rmtree(linked, ignore_errors=True)
    (linked / "logs").mkdir(parents=True)
    for name in ("lib", "modules", "plugins", "agent", "bin"):
        if (home / name).exists():
            (linked / name).symlink_to(home / name)
    # Plugins of the full bundle look for their configuration below the home.
    (linked / "config").symlink_to(base / "config")
    env = {
        "OPENSEARCH_HOME": str(linked),
        "OPENSEARCH_PATH_CONF": str(base / "config"),
        "OPENSEARCH_TMPDIR": str(base / "tmp"),
        "OPENSEARCH_JAVA_OPTS": " ".join([*_memory(), *TERM_ORDER]),
    }
    return [str(binary)], env | {name: os.environ[name] for name in ("JAVA_HOME",) if name in os.environ}
