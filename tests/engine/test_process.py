"""Recorded pids: stale ones are seen through, strangers are never touched, daemons end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from lossmap import canon
from lossmap.engine import process
from lossmap.errors import LossmapError

NAME = "sleeper"


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOSSMAP_RUNTIME", str(tmp_path / "runtime"))
    return process.runtime()


def _spawn(script: str, log: Path) -> process.Record:
    return process.spawn(
        NAME, ["/bin/sh", "-c", script], endpoint="none", version="1", log=log, env=dict(os.environ), cwd=Path("/")
    )


def test_a_running_daemon_is_found_and_stopped(runtime: Path) -> None:
    record = _spawn("exec sleep 60", runtime / "log")
    assert process.live(NAME) == record
    assert process.stop(NAME) is True
    assert process.live(NAME) is None and not (runtime / f"{NAME}.json").exists()
    assert process.stop(NAME) is False


def test_a_dead_pid_is_stale_and_its_record_goes(runtime: Path) -> None:
    record = _spawn("exec sleep 60", runtime / "log")
    os.kill(record.pid, signal.SIGKILL)
    time.sleep(0.1)
    assert process.live(NAME) is None
    assert process.stop(NAME) is False
    assert not (runtime / f"{NAME}.json").exists()


def test_a_reused_pid_is_somebody_else_and_stays_alive(runtime: Path) -> None:
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        record = process.Record(stranger.pid, started=1, argv0="sleep", endpoint="none", version="1")
        canon.write_json(runtime / f"{NAME}.json", asdict(record))
        assert process.live(NAME) is None
        assert process.stop(NAME) is False
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}'])
def test_a_damaged_record_counts_as_none(runtime: Path, text: str) -> None:
    (runtime / f"{NAME}.json").write_text(text)
    assert process.live(NAME) is None


def test_a_daemon_deaf_to_term_is_killed(runtime: Path) -> None:
    record = _spawn("trap '' TERM; echo ready; while :; do sleep 0.1; done", runtime / "log")
    while "ready" not in process.tail(runtime / "log"):
        time.sleep(0.02)
    assert process.stop(NAME, timeout=0.3) is True
    assert not process.alive(record)


def test_a_daemon_that_dies_shows_the_end_of_its_log(runtime: Path) -> None:
    log = runtime / "log"
    record = _spawn("echo the disk is on fire; exit 3", log)
    with pytest.raises(LossmapError, match="(?s)died while starting.*the disk is on fire"):
        process.wait_ready(NAME, record, lambda: False, log, timeout=5)
    assert not (runtime / f"{NAME}.json").exists()


def test_a_daemon_that_never_answers_is_stopped(runtime: Path) -> None:
    log = runtime / "log"
    record = _spawn("exec sleep 60", log)
    with pytest.raises(LossmapError, match="did not answer within"):
        process.wait_ready(NAME, record, lambda: False, log, timeout=0.3)
    assert not process.alive(record)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root drops privileges")
class TestAsRoot:
    def test_a_daemon_runs_as_the_server_account(self, runtime: Path) -> None:
        _spawn("id -u; id -G", runtime / "log")
        time.sleep(0.2)
        assert process.tail(runtime / "log").split() == [str(process.SERVER_ID)] * 2

    def test_a_closed_parent_is_refused_and_stays_closed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        home = tmp_path / "home"
        home.mkdir(mode=0o700)
        monkeypatch.setenv("LOSSMAP_RUNTIME", str(home / "runtime"))
        with pytest.raises(LossmapError, match="no parent is opened") as raised:
            process.server_folder(process.runtime() / "data")
        assert raised.value.exit_code == 2
        assert home.stat().st_mode & 0o777 == 0o700

    def test_a_runtime_of_another_account_is_refused(self, runtime: Path) -> None:
        os.chown(runtime, 12345, 12345)
        with pytest.raises(LossmapError, match="belongs to somebody else") as raised:
            process.runtime()
        assert raised.value.exit_code == 2

    def test_ownership_goes_no_further_than_the_folder(self, runtime: Path) -> None:
        outside = runtime.parent / "outside"
        outside.write_text("mine")
        inside = runtime / "data"
        inside.mkdir()
        (inside / "link").symlink_to(outside)
        with pytest.raises(LossmapError):
            # The session's temporary folder is closed to the account: ownership was changed before that was seen.
            process.server_folder(inside)
        assert outside.stat().st_uid == 0 and runtime.stat().st_uid == 0
        assert inside.stat().st_uid == process.SERVER_ID


def test_two_at_once_give_one_server(runtime: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path; from lossmap.engine import process\n"
        "with process.lock('sleeper'):\n"
        "    record = process.live('sleeper') or process.spawn('sleeper', ['/bin/sleep', '60'], endpoint='none',"
        " version='1', log=Path(sys.argv[1]), env={}, cwd=Path('/'))\n"
        "print(record.pid)\n"
    )
    command = [sys.executable, "-c", script, str(runtime / "log")]
    env = os.environ | {"PYTHONPATH": str(Path(process.__file__).parents[2])}
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) for _ in range(2)]
    pids = {child.communicate()[0].strip() for child in both}
    try:
        assert len(pids) == 1 and pids != {""}
    finally:
        process.stop(NAME)
