"""`lossmap corpora verify` finds one altered byte in every corpus at hand: ours always, the others where held."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from lossmap import settings
from lossmap.corpora import fetch, lock, registry, sources
from lossmap.corpora.registry import Stanza

OBTAINABLE = {key: stanza for key, stanza in registry.load().items() if stanza.obtain}


def linked(source: Path, target: Path) -> None:
    """``source`` as hard links: nothing here writes into a file, an altered one replaces its link."""
    for path in sources.listed(source):
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source / path, target / path)
        except OSError:
            shutil.copyfile(source / path, target / path)


def at_hand(stanza: Stanza, folder: Path) -> bool:
    """Put the corpus below ``folder``: from the repository, from this checkout's build, or from the mirror."""
    built, mirror = registry.raw_folder() / stanza.key, settings.load().mirror
    assert stanza.obtain
    if "folder" in stanza.obtain:
        fetch.fetch_one(stanza, folder)
    elif built.is_dir():
        linked(built, folder / stanza.key)
    else:
        if mirror is None or not (mirror / stanza.obtain["mirror"]).is_file():
            return False
        fetch.fetch_one(stanza, folder, mirror)
    return True


@pytest.mark.parametrize("key", OBTAINABLE)
def test_one_altered_byte_is_found(key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not at_hand(OBTAINABLE[key], tmp_path):
        pytest.skip("neither fetched in this checkout nor in a mirror (LOSSMAP_MIRROR)")
    assert lock.verify(tmp_path, [key]) == {key: []}
    files = sorted(lock.load()[key])
    name = files[len(files) // 2]
    body = bytearray((tmp_path / key / name).read_bytes())
    body[len(body) // 2] ^= 1
    (tmp_path / key / name).unlink()
    (tmp_path / key / name).write_bytes(body)
    capsys.readouterr()
    assert lock.verify_main([key], tmp_path) == 1
    said = capsys.readouterr().out
    assert f"{key}: {name}: observed " in said and f"{key}: {len(files) - 1} files right, 1 wrong" in said
    shutil.rmtree(tmp_path / key)


def test_our_own_corpora_are_always_tried() -> None:
    ours = {key for key, stanza in OBTAINABLE.items() if "folder" in (stanza.obtain or {})}
    assert ours == {"fixture", "fixture-ami", "fixture-evidence", "fixture-lmeb"} and len(OBTAINABLE) > len(ours)
