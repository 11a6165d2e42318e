from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lossmap.errors import LossmapError
from lossmap.report import figures, lint, render, tables


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.md.j2", "It reaches {{ claim('x.1') }} and\nthen 0.33 again.\n"),
        ("a.tex.j2", "It reaches << claim('x.1') >> and\nthen 0.33 again.\n"),
    ],
)
def test_a_typed_number_is_named_with_file_and_line(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(LossmapError, match=rf"{name}:2: '0\.33' in: then 0\.33 again\."):
        lint.check_numerals([tmp_path / name])


@pytest.mark.parametrize(
    "text",
    [
        "nDCG@10 and R@20 at Stage 3 by BM25, F1 and all-MiniLM-L6-v2, licence CC BY 4.0",
        r"\cref{tab:stage1.index} \citep{zhong2021qmsum} \includegraphics[width=0.3\textwidth]{x} \hspace{1em}",
        r"\documentclass[11pt]{article} p{0.25\linewidth} % a comment of 12 words",
        r"\frac{1}{K + r}",
    ],
)
def test_names_references_and_lengths_are_no_quantities(text: str) -> None:
    assert lint.numerals(text, latex=True) == []


def test_markdown_enumeration_is_no_quantity_but_its_text_is() -> None:
    assert [hit[:2] for hit in lint.numerals("1. first\n2. holds 17 words\n", latex=False)] == [(2, "17")]


def test_a_count_in_brackets_is_a_quantity() -> None:
    assert [hit[1] for hit in lint.numerals("few (2 chunks)", latex=True)] == ["2"]


@pytest.mark.parametrize(
    "text", ["0.1052 in the corpus", "12 in all", "as stage.0.1052 shows", "1052. is high", "5 cm"]
)
def test_a_number_before_a_word_that_could_be_a_unit_is_a_quantity(text: str) -> None:
    assert lint.numerals(text, latex=True) and lint.numerals(text, latex=False)


def test_a_percent_sign_does_not_hide_a_number() -> None:
    assert [hit[1] for hit in lint.numerals(r"a rise of 5\% here", latex=True)] == ["5"]


def test_our_own_templates_and_captions_are_clean() -> None:
    lint.check_numerals([*render.templates("md"), *render.templates("tex")])
    lint.check_texts({**tables.specifications(), **figures.specifications()})


def test_a_number_in_a_caption_is_refused() -> None:
    with pytest.raises(LossmapError, match="holds 42 rows"):
        lint.check_texts({"t": {"caption": "It holds 42 rows."}})


def test_a_number_in_the_label_of_a_fact_is_refused() -> None:
    with pytest.raises(LossmapError, match="all 232 meetings"):
        lint.check_texts({"t": {"caption": "Counts.", "facts": [{"label": "all 232 meetings"}]}})


def test_orphans_are_named_and_companions_are_not() -> None:
    listed = ["s/arms/a/metrics.json", "s/arms/a/metrics.md", "s/arms/b/metrics.md", "s/new.json"]
    assert lint.orphans(listed, {"s/arms/a/metrics.json"}) == ["s/arms/b/metrics.md", "s/new.json"]
    with pytest.raises(LossmapError, match=r"s/new\.json"):
        lint.check_orphans(listed, {"s/arms/a/metrics.json"})


def _columns(*keys: tuple[str, str]) -> dict[str, dict[str, Any]]:
    return {"t": {"columns": [{"title": key, "key": key, "format": form} for key, form in keys]}}


@pytest.mark.parametrize(
    "keys",
    [
        [("deltas.RR", "signed4")],
        [("deltas.RR", "signed4"), ("intervals.nDCG@10.meetings", "signed_interval")],
        [("real.delta", "signed4"), ("synthetic.interval", "signed_interval")],
        [("percent", "percent"), ("interval", "signed_interval")],
        [("worst_percent", "percent"), ("worst.intervals.meetings", "signed_interval")],
    ],
)
def test_a_delta_without_the_interval_of_its_measure_is_refused(keys: list[tuple[str, str]]) -> None:
    with pytest.raises(LossmapError, match=f"t: {keys[0][0]}"):
        lint.check_intervals(_columns(*keys))


@pytest.mark.parametrize(
    "keys",
    [
        [("deltas.RR", "signed4"), ("intervals.RR.queries", "signed_interval")],
        [("percent.RR", "percent"), ("intervals.RR.meetings", "signed_interval")],
        [("real.delta", "signed4"), ("real.intervals.delta.meetings", "signed_interval")],
        [("nDCG@10.delta", "signed2"), ("nDCG@10.intervals.meetings", "signed_interval2")],
        [("percent", "percent"), ("percent_intervals.meetings", "percent_interval")],
        [("cited.delta", "text"), ("tau_b", "signed4")],
    ],
)
def test_a_delta_beside_its_interval_is_shown(keys: list[tuple[str, str]]) -> None:
    lint.check_intervals(_columns(*keys))


def test_a_delta_may_say_why_it_has_no_interval() -> None:
    table = _columns(("deltas.RR", "signed4"))["t"]
    lint.check_intervals({"t": {**table, "bare": "none is printed"}})
    table["columns"][0]["bare"] = "the page has it"
    lint.check_intervals({"t": table})


def test_no_table_of_ours_shows_a_bare_delta() -> None:
    lint.check_intervals(tables.specifications())
