"""A root of its own: workflow/, the fixture meetings, a mirror, and a loopback upstream that can misbehave."""

from __future__ import annotations

import io
import random
import shutil
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from lossmap.corpora import fetch

HERE = Path(__file__).resolve().parents[2]
FIXTURE = HERE / "tests" / "fixtures" / "qmsum"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Upstream:
    """What the loopback server answers and what it was asked."""

    body: bytes = b""
    content_type: str = "application/x-gzip"
    ranges: bool = True
    break_after: int | None = None
    asked: list[str | None] = field(default_factory=list)
    url: str = ""


def _handler(state: Upstream) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # noqa: N802 (the name http.server looks for)
            asked = self.headers.get("Range")
            state.asked.append(asked)
            first = int(asked.removeprefix("bytes=").rstrip("-")) if asked and state.ranges else 0
            body = state.body[first:]
            self.send_response(206 if first else 200)
            self.send_header("Content-Type", state.content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: state.break_after])
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    state = Upstream()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(state))
    state.url = f"http://127.0.0.1:{server.server_port}/tiny.tar.gz"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield state
    server.shutdown()
    server.server_close()


@dataclass
class World:
    """``root`` of a checkout whose registry also has `tiny` (A), `private` (B) and `absent` (not to be had)."""

    root: Path
    mirror: Path
    empty: Path
    raw: Path
    tarball: Path

    def edit(self, key: str, **fields: object) -> None:
        path = self.root / "workflow" / "config" / "corpora.yaml"
        document = yaml.safe_load(path.read_text())
        document["corpora"][key].update(fields)
        path.write_text(yaml.safe_dump(document))


@pytest.fixture
def world(tmp_path: Path, upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> World:
    root, mirror = tmp_path / "checkout", tmp_path / "mirror"
    shutil.copytree(HERE / "workflow" / "config", root / "workflow" / "config")
    shutil.copytree(HERE / "workflow" / "schemas", root / "workflow" / "schemas")
    shutil.copytree(FIXTURE, root / "tests" / "fixtures" / "qmsum")
    mirror.mkdir()
    (tmp_path / "empty").mkdir()
    made = World(root, mirror, tmp_path / "empty", tmp_path / "raw", mirror / "tiny-01234567.tar.gz")
    with tarfile.open(made.tarball, "w:gz") as archive:
        # Nothing locks this file; it only makes the download longer than one block.
        padding = tarfile.TarInfo("tiny-01234567/model.bin")
        padding.size = 60_000
        archive.addfile(padding, io.BytesIO(random.Random(0).randbytes(padding.size)))
        archive.add(FIXTURE, arcname="tiny-01234567")
    upstream.body = made.tarball.read_bytes()
    _register(made, upstream)
    for name in ("LOSSMAP_ACCEPT_LICENSES", "LOSSMAP_OFFLINE", "LOSSMAP_MIRROR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LOSSMAP_ROOT", str(root))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert fetch.lock_main(["tiny", "private"], mirror, tmp_path / "scratch") == 0
    return made


def _register(made: World, upstream: Upstream) -> None:
    path = made.root / "workflow" / "config" / "corpora.yaml"
    document = yaml.safe_load(path.read_text())
    corpora = document["corpora"] = {key: document["corpora"][key] for key in ("fixture", "qmsum")}
    source = {
        "upstream": "loopback",
        "commit": COMMIT,
        "archive": upstream.url,
        "mirror": made.tarball.name,
        "files": corpora["fixture"]["obtain"]["files"],
    }
    corpora["tiny"] = {**corpora["fixture"], "role": "scored", "obtain": source}
    corpora["private"] = {**corpora["tiny"], "tier": "B", "spdx": "CC-BY-NC-4.0"}
    corpora["absent"] = {**corpora["tiny"], "obtain": None, "reason": "on a hub that no source of ours reaches"}
    path.write_text(yaml.safe_dump(document))
