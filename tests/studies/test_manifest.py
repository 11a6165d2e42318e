"""The published script's manifest: reading it, and every reason to refuse."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import bakeoff
import pytest

from lossmap import canon
from lossmap.cli import agreement as verb
from lossmap.errors import LossmapError
from lossmap.layout import Layout
from lossmap.studies import manifest

BENCHES = ["v6/real", "v6/made"]
REAL = dict(zip(bakeoff.ARMS, (0.0, 0.01, -0.2, 0.02)))
MADE = dict(zip(bakeoff.ARMS, (0.0, 0.03, -0.3, -0.1)))


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    made = bakeoff.root(tmp_path, monkeypatch, BENCHES)
    for bench, arms in zip(BENCHES, (REAL, MADE)):
        bakeoff.score(made, bench, arms)
    return made


def call(*arguments: str) -> int | None:
    top = argparse.ArgumentParser()
    verb.declare(top.add_subparsers())
    options = top.parse_args(["agreement", *arguments])
    return options.run(options)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    call(*arguments)
    return json.loads(capsys.readouterr().out)


def test_the_default_manifest_is_emitted_and_read_back(
    at: Layout, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked = printed(capsys, "--emit-manifest")
    assert asked["measure"] == "nDCG@10" and [family["name"] for family in asked["families"]] == ["fusion"]
    assert asked["families"][0]["control"] == {
        "name": bakeoff.CONTROL,
        "run": [f"{b}/{bakeoff.CONTROL}" for b in BENCHES],
    }
    assert [arm["axis"] for arm in asked["families"][0]["arms"]] == [
        "inert",
        "rank_constant",
        "combination",
        "weighting",
    ]
    own = printed(capsys, "--json")
    (tmp_path / "m.json").write_text(json.dumps(asked))
    root = str(at.root / asked["runs_root"])
    read = printed(capsys, "--json", "--manifest", str(tmp_path / "m.json"), "--runs-root", root)
    assert {**read, "runs_root": own["runs_root"]} == own and len(own["arms"]) == 4


def test_the_keys_of_the_published_script_are_there(at: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "--json", "--class", "lookup", "--measure", "RR")
    assert (found["measure"], found["query_class"], found["dropped"]) == ("RR", "lookup", [])
    assert {"runs_root", "arms", "sign_agreement", "rank_agreement", "by_axis", "winner"} <= found.keys()
    assert found["rank_agreement"]["fusion"]["n"] == 4


def test_arms_are_dropped_and_inert_ones_left_out(at: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "--json", "--drop", bakeoff.ARMS[1], "--drop", bakeoff.ARMS[2], "--exclude-inert")
    assert [row["arm"] for row in found["arms"]] == [bakeoff.ARMS[3]] and found["inert_excluded"] == 1
    assert found["rank_agreement"]["fusion"]["note"] and found["dropped"] == sorted(bakeoff.ARMS[1:3])


def test_without_json_two_tables_are_printed(at: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    call()
    text = capsys.readouterr().out
    assert f"| fusion | {bakeoff.ARMS[3]} | weighting | +0.0200 | -0.1000 | disagree |" in text
    assert "| fusion | 4 | 0.3333 |" in text and "| pooled | 4 |" in text


def refused(asked: dict[str, Any], at: Layout, **options: Any) -> str:
    with pytest.raises(LossmapError) as no:
        manifest.study(asked, at.root / asked["runs_root"], **options)
    assert no.value.exit_code == 2
    return str(no.value)


def test_a_missing_file_row_measure_or_arm_is_misuse(at: Layout) -> None:
    asked = manifest.emitted(at)
    assert "no such row" in refused(asked, at, query_class="multi_file")
    assert "no such row" in refused(asked, at, measure="nDCG@11")
    assert "no such arm to drop" in refused(asked, at, dropped=["rrf-61"])
    asked["families"][0]["arms"].append({"name": "rrf-61", "run": "v6/real/rrf-61", "axis": "rank_constant"})
    assert "has not been scored" in refused(asked, at)


def test_one_corpus_or_three_are_no_pair_until_two_are_named(at: Layout) -> None:
    asked = manifest.emitted(at)
    bakeoff.score(at, "v6/third", REAL)
    for family in asked["families"]:
        for entry in (family["control"], *family["arms"]):
            entry["run"] = [*entry["run"], f"v6/third/{entry['name']}"]
    assert "two corpora" in refused(asked, at)
    found = manifest.study({**asked, "corpora": ["third", "made"]}, at.root / asked["runs_root"])
    assert found["corpora"] == ["third", "made"] and found["arms"][1]["deltas"] == {"third": 0.01, "made": 0.03}


@pytest.mark.parametrize(("text", "said"), [("{", "no JSON"), ("{}", "lacks its parts"), (None, "no such manifest")])
def test_what_is_no_manifest_is_misuse(tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "m.json").write_text(text)
    with pytest.raises(LossmapError, match=said) as no:
        manifest.load(tmp_path / "m.json")
    assert no.value.exit_code == 2


def test_our_own_runs_carry_hashes_and_those_of_others_need_not(at: Layout) -> None:
    asked = manifest.emitted(at)
    for path in (at.root / asked["runs_root"]).rglob("metrics.json"):
        document = canon.read_json(path)
        canon.write_json(path, {**document, "hashes": {}})
    assert "does not carry the hash query_ids" in refused(asked, at)
    foreign = {key: value for key, value in asked.items() if key != "hashed"}
    assert len(manifest.study(foreign, at.root / asked["runs_root"])["arms"]) == 4
