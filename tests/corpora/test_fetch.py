"""Every source ends in the same check, and whatever is wrong with one leaves nothing behind."""

from __future__ import annotations

import errno
import io
import shutil
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from lossmap import canon
from lossmap.corpora import fetch, lock, registry, sources
from lossmap.errors import LossmapError

if TYPE_CHECKING:
    from conftest import Upstream, World

FIXTURE = Path(__file__).parents[1] / "fixtures" / "qmsum"

FILES = 10


def get(world: World, mirror: Path | None = None, key: str = "tiny") -> dict:
    return fetch.fetch_one(registry.select([key])[0], world.raw, mirror or world.empty)


def refused(world: World, mirror: Path | None = None) -> str:
    with pytest.raises(LossmapError) as caught:
        get(world, mirror)
    assert caught.value.exit_code == 1
    assert not (world.raw / "tiny").exists() and not (world.raw / "tiny.fetched.json").exists()
    assert [p.name for p in world.raw.iterdir() if p.name != ".tiny.lock" and not p.name.endswith(".part")] == []
    return str(caught.value)


def parts(world: World) -> list[Path]:
    return list(world.raw.glob("*.part"))


def repack(world: World, change: dict[str, bytes]) -> bytes:
    """The tarball with the contents of some files replaced."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for path in sources.listed(FIXTURE):
            body = change.get(path, (FIXTURE / path).read_bytes())
            info = tarfile.TarInfo(f"tiny-01234567/{path}")
            info.size = len(body)
            archive.addfile(info, io.BytesIO(body))
    return out.getvalue()


@pytest.mark.parametrize("kind", ["tarball", "folder", "bare folder", "upstream"])
def test_every_source_gives_the_same_files(world: World, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    mirrors = {"tarball": world.mirror, "folder": world.empty, "bare folder": FIXTURE, "upstream": world.empty}
    if kind == "folder":
        shutil.copytree(FIXTURE, world.empty / "tiny-01234567")
    record = get(world, mirrors[kind])
    assert f"from {kind.split()[-1]}" in capsys.readouterr().err and record["files"] == FILES
    assert lock.verify(world.raw, ["tiny"]) == {"tiny": []}
    assert sources.listed(world.raw / "tiny") == sorted(lock.load()["tiny"])
    assert not [p for p in world.raw.iterdir() if p.suffix == ".gz" or p.name.startswith(".tiny.") and p.is_dir()]


@pytest.mark.parametrize("kind", ["tarball", "upstream"])
def test_an_archive_with_the_corpus_one_folder_deeper_gives_the_same_files(
    world: World, upstream: Upstream, kind: str
) -> None:
    expected = get(world, world.mirror)
    wanted = {path: (world.raw / "tiny" / path).read_bytes() for path in sources.listed(world.raw / "tiny")}
    shutil.rmtree(world.raw)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, body in (("tiny-01234567/README.md", b"of the copy\n"), ("tiny-01234567/release/sub/x.txt", b"x\n")):
            info = tarfile.TarInfo(name)
            info.size = len(body)
            archive.addfile(info, io.BytesIO(body))
        archive.add(FIXTURE, arcname="tiny-01234567/release")
    if kind == "tarball":
        world.tarball.write_bytes(out.getvalue())
    else:
        upstream.body = out.getvalue()
    with pytest.raises(LossmapError, match="has not been fetched"):
        get(world, world.mirror if kind == "tarball" else None)
    world.edit("tiny", obtain={**(registry.load()["tiny"].obtain or {}), "inner": "release"})
    assert get(world, world.mirror if kind == "tarball" else None) == expected
    assert {path: (world.raw / "tiny" / path).read_bytes() for path in sources.listed(world.raw / "tiny")} == wanted


def test_inner_is_a_folder_and_no_prefix_of_a_name() -> None:
    assert sources.inside("top/release/LICENSE", "release") == "LICENSE"
    assert sources.inside("top/LICENSE", "release") is None and sources.inside("top/LICENSE") == "LICENSE"
    assert sources.inside("top/release-notes/x", "release") is None
    assert sources.inside("top/release/../../x", "release") is None


def test_the_fixture_comes_out_of_the_repository(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert get(world, key="fixture")["files"] == FILES
    assert "from repository" in capsys.readouterr().err


def test_right_files_are_not_fetched_again_and_a_damaged_one_is(world: World, upstream: Upstream) -> None:
    first = get(world)
    asked = len(upstream.asked)
    assert get(world) == first and len(upstream.asked) == asked
    (world.raw / "tiny" / "LICENSE").unlink()
    assert [p.observed for p in lock.verify(world.raw, ["tiny"])["tiny"]] == ["missing"]
    get(world)
    assert len(upstream.asked) == asked + 1 and lock.verify(world.raw, ["tiny"]) == {"tiny": []}


def test_truncated_tarball(world: World) -> None:
    world.tarball.write_bytes(world.tarball.read_bytes()[:-3000])
    assert "truncated or damaged" in refused(world, world.mirror)


def test_truncated_download_with_a_true_length(world: World, upstream: Upstream) -> None:
    upstream.body = upstream.body[:-3000]
    assert "truncated or damaged" in refused(world)
    assert parts(world) == []


def test_one_altered_byte(world: World) -> None:
    path = "data/ALL/train/ES9001a.json"
    body = (FIXTURE / path).read_bytes()
    world.tarball.write_bytes(repack(world, {path: body.replace(b"feeder", b"feedar", 1)}))
    message = refused(world, world.mirror)
    assert "1 of 10 files of a corpus are wrong (0 missing, 1 altered)" in message and path in message


def test_a_wrong_source_leaves_the_old_folder_as_it_was(world: World) -> None:
    get(world, world.mirror)
    changed = world.raw / "tiny" / "data/ALL/train/ES9001a.json"
    changed.write_bytes(b"mine")
    world.tarball.write_bytes(world.tarball.read_bytes()[:-3000])
    with pytest.raises(LossmapError):
        get(world, world.mirror)
    assert changed.read_bytes() == b"mine"


def test_html_page(world: World, upstream: Upstream) -> None:
    upstream.body, upstream.content_type = b"<!DOCTYPE html><p>Please sign in", "text/html; charset=utf-8"
    message = refused(world)
    assert "an HTML page instead of a gzip archive" in message and "text/html" in message
    assert parts(world) == []


def test_a_broken_download_resumes_where_it_broke(world: World, upstream: Upstream) -> None:
    upstream.break_after = sources.NETWORK_BLOCK + 100
    assert f"broke off after {sources.NETWORK_BLOCK} bytes" in refused(world)
    assert [p.stat().st_size for p in parts(world)] == [sources.NETWORK_BLOCK]
    upstream.break_after = None
    assert get(world)["files"] == FILES
    assert upstream.asked == [None, f"bytes={sources.NETWORK_BLOCK}-"] and parts(world) == []


def test_a_server_without_ranges_starts_over(world: World, upstream: Upstream) -> None:
    upstream.break_after, upstream.ranges = sources.NETWORK_BLOCK + 100, False
    refused(world)
    upstream.break_after = None
    assert get(world)["files"] == FILES


def test_changed_licence_evidence(world: World) -> None:
    world.tarball.write_bytes(repack(world, {"LICENSE": b"All rights reserved.\n"}))
    message = refused(world, world.mirror)
    assert "the licence evidence changed: read it again, then update" in message and "tiny: LICENSE" in message
    with pytest.raises(LossmapError, match="licence evidence changed"):
        fetch.lock_main(["tiny"], world.mirror, world.raw)


def test_a_stanza_whose_evidence_hash_moved_is_noticed_on_right_files(world: World) -> None:
    get(world, world.mirror)
    world.edit("tiny", evidence=[{"file": "LICENSE", "sha256": "0" * 64, "says": "something else"}])
    with pytest.raises(LossmapError, match="licence evidence changed"):
        get(world, world.mirror)


@pytest.mark.parametrize("offline", [True, False])
def test_no_network_and_no_mirror_names_both_ways(world: World, monkeypatch: pytest.MonkeyPatch, offline: bool) -> None:
    if offline:
        monkeypatch.setenv("LOSSMAP_OFFLINE", "1")
    else:
        obtain = dict(registry.load()["tiny"].obtain or {})
        world.edit("tiny", obtain={**obtain, "archive": "http://127.0.0.1:9/tiny.tar.gz"})
    message = refused(world)
    assert "go online" in message and "--mirror DIR" in message and "LOSSMAP_MIRROR" in message


@pytest.mark.parametrize("source", ["mirror", "upstream"])
def test_full_disk(world: World, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sources, "_copy" if source == "mirror" else "_stream", full)
    if source == "upstream":
        world.raw.mkdir()
        sources.part_of(registry.load()["tiny"], world.raw).write_bytes(b"\x1f\x8b half")
    message = refused(world, world.mirror if source == "mirror" else None)
    assert "the disk is full" in message and "free space" in message
    assert parts(world) == []


def test_exit_codes(world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert fetch.main(["tiny"], True, False, world.mirror, world.raw) == 0
    assert fetch.main(["nonesuch"], True, False, world.mirror, world.raw) == 2
    assert "no corpus has this key" in capsys.readouterr().err
    assert fetch.main(["tiny"], False, False, world.mirror, world.raw) == 3
    out = capsys.readouterr()
    assert "tier A, CC0-1.0" in out.out and "not accepted" in out.err
    assert fetch.main(["private"], True, False, world.mirror, world.raw) == 3
    assert fetch.main(["private"], True, True, world.mirror, world.raw) == 0
    assert fetch.main(["absent"], True, False, world.mirror, world.raw) == 1
    monkeypatch.setenv("LOSSMAP_ACCEPT_LICENSES", "1")
    assert fetch.main(["tiny"], False, False, world.mirror, world.raw) == 0
    world.tarball.unlink()
    monkeypatch.setenv("LOSSMAP_OFFLINE", "1")
    assert fetch.main(["tiny"], False, False, world.mirror, world.empty) == 1


def test_without_names_tier_b_and_the_absent_are_skipped_not_failed(world: World) -> None:
    path = registry.config_path("corpora.yaml")
    text = path.read_text()
    path.write_text(text[: text.index("  qmsum:")] + text[text.index("  tiny:") :])
    outcomes = fetch.fetch(None, accept_licenses=True, mirror=world.mirror, destination=world.raw)
    rows = {row["key"]: row for row in outcomes}
    assert {key: row["obtained"] for key, row in rows.items()} == {
        "absent": False,
        "fixture": True,
        "private": False,
        "tiny": True,
    }
    assert not any(row["failed"] for row in rows.values())


def test_obtain_records_what_cannot_be_had_and_raises_what_is_wrong(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOSSMAP_OFFLINE", "1")
    for key in ("tiny", "private", "absent"):
        record = fetch.obtain(key, world.raw, mirror=world.empty)
        assert record["obtained"] is False and record["reason"] and str(world.root.parent) not in record["reason"]
        with pytest.raises(LossmapError):
            fetch.obtain(key, world.raw, strict=True, mirror=world.empty)
    world.tarball.write_bytes(b"\x1f\x8b")
    with pytest.raises(LossmapError, match="truncated"):
        fetch.obtain("tiny", world.raw, mirror=world.mirror)


def test_the_record_holds_no_time_no_path_and_no_source(world: World) -> None:
    note, texts = world.raw / "tiny.fetched.json", []
    for mirror in (world.mirror, None, FIXTURE):
        get(world, mirror)
        texts.append(note.read_text())
        note.unlink()
        if mirror is None:
            shutil.rmtree(world.raw / "tiny")
    assert len(set(texts)) == 1 and str(world.raw.parent) not in texts[0]


def test_verify_names_each_wrong_file(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    get(world, world.mirror)
    assert lock.verify_main(None, world.raw) == 0
    (world.raw / "tiny" / "data/ALL/train/ES9001a.json").write_bytes(b"{}")
    (world.raw / "tiny" / "data/ALL/val/ES9001b.json").unlink()
    assert lock.verify_main(None, world.raw) == 1
    out = capsys.readouterr().out
    assert "train/ES9001a.json: observed" in out and "val/ES9001b.json: observed missing" in out


def test_verify_of_a_named_corpus_that_was_never_fetched_fails(world: World) -> None:
    assert lock.verify_main(["tiny"], world.raw) == 1
    assert lock.verify_main(None, world.raw) == 0


NAMES = st.lists(
    st.sampled_from(["..", ".", "", "/", "a", "tiny", "data", "LICENSE", "..\\x", "C:", "~", "-", "x" * 40]), max_size=6
).map("/".join)


@given(names=st.lists(NAMES, max_size=8))
@hypothesis_settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_extraction_never_leaves_its_folder(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    base = tmp_path_factory.mktemp("tar")
    archive, staging = base / "a.tar.gz", base / "in" / "staging"
    staging.mkdir(parents=True)
    with tarfile.open(archive, "w:gz") as out:
        for name in names:
            info = tarfile.TarInfo(name or "x")
            info.size = 3
            out.addfile(info, io.BytesIO(b"abc"))
    try:
        sources.unpack(sources.Source("tarball", archive), lambda path: True, staging)
    except OSError:
        pass  # a file where another member needs a folder
    assert {p for p in base.rglob("*") if p.is_file() and staging not in p.parents} == {archive}


def test_links_in_an_archive_are_not_followed(tmp_path: Path) -> None:
    archive = tmp_path / "a.tar.gz"
    with tarfile.open(archive, "w:gz") as out:
        link = tarfile.TarInfo("top/LICENSE")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        out.addfile(link)
    staging = tmp_path / "staging"
    staging.mkdir()
    sources.unpack(sources.Source("tarball", archive), lambda path: True, staging)
    assert list(staging.iterdir()) == []


def test_the_lock_of_the_repository_is_canonical_and_agrees_with_the_stanzas() -> None:
    path = registry.config_path("corpora.lock")
    assert path.read_text() == canon.dumps(canon.read_json(path))
    for stanza in registry.load().values():
        for item in stanza.evidence if stanza.obtain else ():
            assert lock.entry(stanza)[item["file"]].split()[0] == item["sha256"]


def test_a_broken_stanza_names_its_field(world: World) -> None:
    world.edit("tiny", tier="D")
    with pytest.raises(LossmapError, match="corpora/tiny/tier") as caught:
        registry.load()
    assert caught.value.exit_code == 2
