"""Figures: the same bytes from the same results, as PDF for the paper and SVG for the page."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from lossmap import canon  # noqa: E402
from lossmap.report import documents  # noqa: E402
from lossmap.report.canvas import SERIES, draw_series, legend, placeholder  # noqa: E402
from lossmap.report.claims import Book, unknown  # noqa: E402
from lossmap.report.stagewise import draw_deltas, draw_weights  # noqa: E402

# DejaVu ships with matplotlib, so no machine's fonts enter; the salt fixes ids that SVG output would draw at random.
STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "x",
    "grid.color": "#d9d9d9",
    "grid.linewidth": 0.6,
    "svg.hashsalt": "lossmap",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}
NO_DATES = {"pdf": {"CreationDate": None, "Creator": None, "Producer": None}, "svg": {"Date": None, "Creator": None}}


def specifications() -> dict[str, Any]:
    return documents.data("figures.yaml")


def _draw_scopes(book: Book, spec: Mapping[str, Any]) -> Figure:
    """One panel per class: every arm at both scopes, with the interval that resamples meetings."""
    rows = {
        (arm, row["query_class"]): row
        for arm, file, document in book.results.arms(spec["stage"])
        for row in document["rows"]
        if row["corpus"] == book.corpus and book.allow(file, row["tier"])
    }
    if not rows:
        return placeholder(book)
    present = [c for c in spec["classes"] if any(query_class == c for _, query_class in rows)]
    figure, panels = pyplot.subplots(1, len(present), figsize=(6.4, 2.75), sharey=True, squeeze=False)
    for axes, query_class in zip(panels[0], present, strict=True):
        for place, line in enumerate(spec["lines"]):
            for series, shift in (("corpus", -0.17), ("gold", 0.0), ("beside", 0.2)):
                if row := rows.get((line.get(series), query_class)):
                    draw_series(axes, place + shift, row, spec["measure"], series)
        axes.set_title(query_class, fontsize=8.5, loc="left")
        axes.set_xlabel(spec["measure"])
        axes.set_xlim(left=0)
        axes.tick_params(axis="y", length=0)
    panels[0][0].set_yticks(range(len(spec["lines"])), [line["label"] for line in spec["lines"]])
    panels[0][0].invert_yaxis()
    legend(figure, spec["series"])
    return figure


def _draw_deciles(book: Book, spec: Mapping[str, Any]) -> Figure:
    """One curve a graph leg: the recall that the lowest tenths of the queries do not exceed."""
    file = book.allow(f"{spec['stage']}/index.json")
    rows = [row for row in book.results.json(file)["ann"] if row["depth"] == spec["depth"] and row["recall_deciles"]]
    if not rows:
        return placeholder(book)
    figure, axes = pyplot.subplots(figsize=(6.4, 2.3))
    for row in rows:
        line = spec["lines"][row["leg"]]
        colour, marker, filled = SERIES[line["series"]]
        axes.plot(range(0, 101, 10), row["recall_deciles"], color=colour, marker=marker, ms=4.5, lw=1.2,
                  mfc=colour if filled else "white", label=line["label"], clip_on=False)  # fmt: skip
    axes.set_xlabel("share of queries, percent")
    axes.set_ylabel("recall")
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 1)
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.tight_layout()
    return figure


def _draw_growth(book: Book, spec: Mapping[str, Any]) -> Figure:
    """One panel per measure and query set: a curve for each kind of meeting added, its interval and its band."""
    file = f"{spec['stage']}/composition.json"
    if book.not_obtained:
        return placeholder(book)
    points = book.results.json(file)["curves"]["points"]
    sets, measures = spec["sets"], spec["measures"]
    figure, panels = pyplot.subplots(len(measures), len(sets), figsize=(6.4, 4.1), sharex="col", squeeze=False)
    for line, measure in zip(panels, measures, strict=True):
        for axes, (name, title) in zip(line, sets.items(), strict=True):
            for kind, series in spec["kinds"].items():
                rows = [row for row in points if (row["set"], row["kind"]) == (name, kind) and row["queries"]]
                for row in rows:
                    book.allow(file, row["tier"])
                _draw_curve(axes, rows, measure, series)
            axes.set_ylabel(measure)
            axes.set_ylim(bottom=0)
            if measure == measures[0]:
                axes.set_title(title, fontsize=8.5, loc="left")
            if measure == measures[-1]:
                axes.set_xlabel("meetings in the index")
    legend(figure, {series: spec["labels"][kind] for kind, series in spec["kinds"].items()})
    return figure


def _draw_curve(axes: Axes, rows: list[Mapping[str, Any]], measure: str, series: str) -> None:
    colour, marker, filled = SERIES[series]
    sizes, values = ([row[key] for row in rows] for key in ("documents", measure))
    spread = [[max(0.0, sign * (row[f"{measure}_meetings"][end] - row[measure])) for row in rows]
              for end, sign in ((0, -1), (1, 1))]  # fmt: skip
    face = colour if filled else "white"
    axes.errorbar(sizes, values, yerr=spread, color=colour, marker=marker, mfc=face, ms=4, lw=1.1, elinewidth=0.7)
    low, high = ([row[f"{measure}_{end}"] for row in rows] for end in ("low", "high"))
    axes.fill_between(sizes, low, high, color=colour, alpha=0.25, lw=0)


def _draw_realism(book: Book, spec: Mapping[str, Any]) -> Figure:
    """One line a class and wording of the generated corpus, then one a domain of the real one."""
    file = book.allow(f"{spec['stage']}/realism.json")
    document, measure = book.results.json(file), spec["measure"]
    made = [(f"{row['query_class']}, {row['surface']}", row, "gold") for row in document["rows"] if not row["rule"]]
    lines = [*made, *((f"real: {row['domain']}", row, "corpus") for row in document["real"])]
    figure, axes = pyplot.subplots(figsize=(6.4, 0.19 * len(lines) + 0.8))
    for place, (_, row, series) in enumerate(lines):
        book.allow(file, row["tier"])
        drawn = {"metrics": {measure: row[measure]}, "intervals": {measure: {"meetings": row[f"{measure}_meetings"]}}}
        draw_series(axes, place, drawn, measure, series)
    axes.set_yticks(range(len(lines)), [label for label, _, _ in lines])
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.set_xlabel(measure)
    axes.tick_params(axis="y", length=0)
    legend(figure, spec["series"])
    return figure


def _draw_builds(book: Book, spec: Mapping[str, Any]) -> Figure:
    """One line for the exact legs of Stage 1, then one a build of the graph: each arm with its interval."""
    if book.not_obtained:
        return placeholder(book)
    lines = [(spec["exact"]["label"], _stage1_rows(book, spec["exact"]["arms"]))]
    file = book.allow(f"{spec['stage']}/graph.json")
    for build in book.results.json(file)["builds"]:
        lines.append((build["index"], {row["arm"]: row for row in build["arms"] if _overall(book, row)}))
    figure, axes = pyplot.subplots(figsize=(6.4, 0.3 * len(lines) + 0.9))
    for place, (_, rows) in enumerate(lines):
        for series, arms in spec["arms"].items():
            for row in (rows[arm] for arm in arms if arm in rows):
                book.allow(file, row["tier"])
                draw_series(axes, place, row, spec["measure"], series)
    axes.set_yticks(range(len(lines)), [label for label, _ in lines])
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.set_xlabel(spec["measure"])
    axes.tick_params(axis="y", length=0)
    legend(figure, spec["series"])
    return figure


def _draw_waterfall(book: Book, spec: Mapping[str, Any]) -> Figure:
    """One panel a corpus: the measure that each stage hands on, in points, and what the stage gained and lost."""
    file = book.allow(f"{spec['stage']}/stages.json")
    rows = [row for row in book.results.json(file)["rows"] if row["query_class"] == "all"]
    corpora = list(dict.fromkeys(row["corpus"] for row in rows))
    if not rows:
        return placeholder(book)
    figure, panels = pyplot.subplots(1, len(corpora), figsize=(6.4, 2.6), squeeze=False, sharey=True)
    for axes, corpus in zip(panels[0], corpora, strict=True):
        lines = [row for row in rows if row["corpus"] == corpus and book.allow(file, row["tier"])]
        for place, row in enumerate(lines):
            _draw_step(axes, place, row)
        axes.set_title(corpus, fontsize=8.5, loc="left")
        axes.set_xlabel(spec["axis"])
        axes.set_xlim(left=0)
        axes.set_yticks(range(len(lines)), [row["stage"] for row in lines])
        axes.set_ylim(len(lines) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
    legend(figure, spec["series"])
    return figure


def _draw_step(axes: Axes, place: float, row: Mapping[str, Any]) -> None:
    """A bar from what a stage was handed: right what it gains, left what it harms; then what it hands on."""
    value, interval = row["ndcg"], row["intervals"]["ndcg"]["meetings"]
    if row["delta"] is not None:
        before, options = value - row["delta"], {"height": 0.5, "alpha": 0.45}
        for width, series in ((row["gain"], "beside"), (-row["harm"], "gold")):
            axes.barh(place, 100 * width, left=100 * before, color=SERIES[series][0], **options)
    drawn = {"metrics": {"points": 100 * value}, "intervals": {"points": {"meetings": [100 * end for end in interval]}}}
    draw_series(axes, place, drawn, "points", "corpus")


def _overall(book: Book, row: Mapping[str, Any]) -> bool:
    return bool((row["corpus"], row["query_class"]) == (book.corpus, "all"))


def _stage1_rows(book: Book, arms: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Rows over all queries of the real corpus, by arm of Stage 1."""
    found = {arm: (file, document) for arm, file, document in book.results.arms("stage1") if arm in arms}
    return {
        arm: row
        for arm, (file, document) in found.items()
        for row in document["rows"]
        if _overall(book, row) and book.allow(file, row["tier"])
    }


DRAWINGS: dict[str, Callable[[Book, Mapping[str, Any]], Figure]] = {
    "scopes": _draw_scopes,
    "deciles": _draw_deciles,
    "growth": _draw_growth,
    "realism": _draw_realism,
    "builds": _draw_builds,
    "waterfall": _draw_waterfall,
    "deltas": draw_deltas,
    "weights": draw_weights,
}


def write(book: Book, name: str, path: Path) -> Path:
    """Draw the figure ``name`` to ``path``, whose suffix (.pdf or .svg) chooses the format."""
    every = specifications()
    if name not in every:
        unknown("figure", name, every, "use a known id, or add one to paper/figures.yaml")
    kind = path.suffix[1:]
    with pyplot.rc_context(STYLE):
        figure = DRAWINGS[every[name]["draw"]](book, every[name])
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind, metadata=NO_DATES[kind])
        pyplot.close(figure)
    with canon.atomic(path) as handle:
        handle.write(buffer.getvalue())
    return path
