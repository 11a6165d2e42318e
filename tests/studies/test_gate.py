"""Two verdicts over one contrast, and no verdict without evidence."""

from __future__ import annotations

from typing import Any

import pytest

from lossmap.errors import LossmapError
from lossmap.judge.measures import NAMES
from lossmap.studies import gate

SPEC = {"treatment": "new", "control": "old", "arm": "rrf", "up": {"class": "multi_file", "measure": "nDCG@10"}}
SPEC |= {"protected": ["lookup", "verbatim"]}
WIDE = 0.05


def row(corpus: str, query_class: str, delta: float, wide: float = WIDE, **others: float) -> dict[str, Any]:
    deltas = dict.fromkeys(NAMES, delta) | {name.replace("_at_", "@"): value for name, value in others.items()}
    ends = {name: {"meetings": [value - wide, value + wide]} for name, value in deltas.items()}
    head = {"corpus": corpus, "tier": "A", "judged_by": "human", "query_class": query_class, "queries": 9}
    return {**head, "meetings": 3, "deltas": deltas, "intervals": ends, "band": 0.0}


def verdicts(*rows: dict[str, Any], counted: tuple[str, ...] = ("real", "made")) -> dict[str, bool]:
    found = gate.judge("g", SPEC, rows, counted)
    return {name: found[name]["accepted"] for name in gate.RISES}


def test_a_clear_rise_and_no_fall_pass_both() -> None:
    rows = row("made", "multi_file", 0.2), row("made", "lookup", 0.0), row("real", "lookup", 0.1)
    assert verdicts(*rows) == {"strict": True, "with_intervals": True}


def test_a_rise_within_its_interval_passes_the_strict_rule_alone() -> None:
    assert verdicts(row("made", "multi_file", 0.01), row("made", "lookup", 0.1)) == {
        "strict": True, "with_intervals": False,
    }  # fmt: skip


def test_no_rise_at_all_passes_neither() -> None:
    assert verdicts(row("made", "multi_file", 0.0, 0.0), row("made", "lookup", 0.1)) == {
        "strict": False, "with_intervals": False,
    }  # fmt: skip


def test_any_measure_that_falls_on_any_corpus_rejects_by_the_strict_rule() -> None:
    rows = row("made", "multi_file", 0.2), row("made", "lookup", 0.1), row("real", "lookup", 0.1, R_at_20=-0.001)
    assert verdicts(*rows) == {"strict": False, "with_intervals": True}


def test_a_fall_below_its_interval_rejects_by_both() -> None:
    rows = row("made", "multi_file", 0.2), row("made", "lookup", -0.1)
    assert verdicts(*rows) == {"strict": False, "with_intervals": False}


def test_every_protected_class_can_reject() -> None:
    rows = row("made", "multi_file", 0.2), row("made", "lookup", 0.1), row("made", "verbatim", -0.1)
    assert verdicts(*rows) == {"strict": False, "with_intervals": False}


def test_the_class_must_rise_on_every_corpus_that_has_it() -> None:
    rows = row("made", "multi_file", 0.2), row("real", "multi_file", -0.2), row("made", "lookup", 0.1)
    assert verdicts(*rows) == {"strict": False, "with_intervals": False}


def test_other_wordings_stand_beside_the_verdict() -> None:
    rows = row("made", "multi_file", 0.2), row("made", "lookup", 0.1), row("made.again", "lookup", -0.3)
    found = gate.judge("g", SPEC, rows, ["made", "real"])
    assert found["strict"] == {"up": True, "protected": True, "accepted": True}
    beside = [r for r in found["rows"] if r["corpus"] == "made.again"]
    assert len(beside) == len(NAMES) and not any(r["counted"] or r["strict"] for r in beside)
    assert found["corpora"] == ["made", "real"] and found["name"] == "g"


def test_the_rows_that_decide_say_what_they_decided_and_carry_the_band() -> None:
    found = gate.judge("g", SPEC, [row("made", "multi_file", 0.01), row("made", "lookup", 0.1)], ["made"])
    up = [r for r in found["rows"] if r["role"] == "up"]
    assert [(r["measure"], r["strict"], r["with_intervals"], r["band"]) for r in up] == [("nDCG@10", True, False, 0.0)]
    assert [r["measure"] for r in found["rows"] if r["role"] == "protected"] == list(NAMES)


@pytest.mark.parametrize("query_class", ["multi_file", "lookup"])
def test_a_side_without_a_row_is_no_verdict(query_class: str) -> None:
    with pytest.raises(LossmapError, match="no row to decide on") as refused:
        gate.judge("g", SPEC, [row("made", query_class, 0.1), row("far", "lookup", 0.1)], ["made"])
    assert refused.value.exit_code == 2


def test_a_row_without_intervals_decides_by_the_strict_rule_alone() -> None:
    bare = {name: value for name, value in row("made", "lookup", -0.1).items() if name != "intervals"}
    (first, *_) = gate.decisions(SPEC, [bare], ["made"])
    assert (first["strict"], first["interval"]) == (False, None) and "with_intervals" not in first
