"""Exit codes and messages of the command line: no traceback for what a user can mend."""

from __future__ import annotations

import errno

import psycopg
import pytest
from opensearchpy import ConnectionError as LostConnection

from lossmap import cli, layout
from lossmap.errors import LossmapError


@pytest.mark.parametrize(
    ("error", "words", "code"),
    [
        (LossmapError("mine", exit_code=3), "mine", 3),
        (OSError(errno.ENOSPC, "No space left on device", "/x"), "free space", 1),
        (psycopg.OperationalError("server closed"), "PostgreSQL did not do its part", 1),
        (LostConnection("N/A", "refused", Exception()), "OpenSearch did not do its part", 1),
    ],
)
def test_what_went_wrong_is_said_without_a_traceback(
    error: Exception, words: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> layout.Layout:
        raise error

    monkeypatch.setattr(layout, "load", fail)
    assert cli.main(["chunk", "--scale", "smoke"]) == code
    assert words in capsys.readouterr().err


def test_an_unknown_scale_is_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["chunk", "--scale", "huge"]) == 2
    assert "unknown scale" in capsys.readouterr().err
