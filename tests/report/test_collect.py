"""Only what a rule wrote, and signed, enters results."""

from __future__ import annotations

from pathlib import Path

import pytest

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.layout import Layout
from lossmap.report import collect, ledger


@pytest.fixture
def at(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path, "smoke", {"scales": {}})
    canon.write_json(layout.stage("s") / "index.json", {"chunks": 3})
    canon.write_json(layout.stage("s") / "arms/a/metrics.json", {"rows": [{"tier": "A"}]})
    canon.write_text(tmp_path / "build/source.txt", "x\n")
    for rule, part in (("study", "index.json"), ("measure", "arms/a/metrics.json")):
        collect.sign(layout, rule, "c" * 64, [layout.stage("s") / part], [tmp_path / "build/source.txt"])
    return layout


def parts(at: Layout) -> list[Path]:
    return [at.stage("s") / "index.json", at.stage("s") / "arms/a/metrics.json"]


def test_signed_parts_are_copied_and_their_ledger_names_rule_code_and_sources(at: Layout) -> None:
    folder = collect.collect(at, "s", parts(at))
    entries = ledger.check(folder)["entries"]
    assert {name: entry["rule"] for name, entry in entries.items()} == {
        "index.json": "study",
        "arms/a/metrics.json": "measure",
    }
    assert entries["index.json"]["code"] == "c" * 64
    assert list(entries["index.json"]["inputs"]) == ["build/source.txt"]


def test_a_part_that_a_hand_overwrote_is_refused_and_the_old_results_stay(at: Layout) -> None:
    folder = collect.collect(at, "s", parts(at))
    canon.write_json(parts(at)[0], {"chunks": 4})
    with pytest.raises(LossmapError, match=r"not what its rule wrote[\s\S]*--forcerun study"):
        collect.collect(at, "s", parts(at))
    assert canon.read_json(folder / "index.json") == {"chunks": 3}


def test_an_unsigned_part_is_refused(at: Layout) -> None:
    canon.write_json(at.stage("s") / "new.json", {})
    with pytest.raises(LossmapError, match="no signature"):
        collect.collect(at, "s", [*parts(at), at.stage("s") / "new.json"])


def test_a_row_of_tier_b_does_not_enter_results(at: Layout) -> None:
    canon.write_json(parts(at)[1], {"rows": [{"tier": "A"}, {"tier": "B"}]})
    collect.sign(at, "measure", "c" * 64, [parts(at)[1]], [])
    with pytest.raises(LossmapError, match="may not be published"):
        collect.collect(at, "s", parts(at))
