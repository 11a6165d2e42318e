"""The doctor: every missing thing comes with its mend, and only needed things fail it."""

from __future__ import annotations

import pytest

from lossmap import doctor
from lossmap.doctor import Row


def _run(monkeypatch: pytest.MonkeyPatch, rows: list[Row]) -> tuple[int, str]:
    lines: list[str] = []
    monkeypatch.setattr(doctor, "report", lambda: rows)
    return doctor.main(out=lines.append), "\n".join(lines)


def test_a_missing_need_fails_and_names_the_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    code, text = _run(monkeypatch, [Row("java", False, mend="./run setup"), Row("python", True, "3.11")])
    assert code == 1
    assert "MISSING java" in text and "mend: ./run setup" in text


def test_an_absent_extra_does_not_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    code, text = _run(monkeypatch, [Row("sentence-transformers", False, mend="pip", needed=False)])
    assert code == 0 and "absent" in text


def test_an_empty_cache_is_reported_with_commands(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOSSMAP_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setenv("LOSSMAP_ENGINES", "embedded")
    monkeypatch.setattr(doctor, "_java", lambda: Row("java", True))
    monkeypatch.setattr(doctor, "_postgres", lambda: Row("postgres", True))
    rows = {row.part: row for row in doctor.report()}
    assert not rows["opensearch"].there and "engine fetch" in rows["opensearch"].mend
    assert not rows["model all-MiniLM-L6-v2"].there and "models fetch" in rows["model all-MiniLM-L6-v2"].mend
    assert all(row.mend for row in rows.values() if not row.there)


def test_a_password_is_never_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOSSMAP_OPENSEARCH_URL", "https://admin:S3-Cret@search.example:9200")
    monkeypatch.setenv("LOSSMAP_POSTGRES_DSN", "host=db.example password='S3 Cret!' dbname=x")
    lines: list[str] = []
    doctor.main(out=lines.append)
    text = "\n".join(lines)
    assert "search.example" in text and "db.example" in text
    assert "S3" not in text and "Cret" not in text
