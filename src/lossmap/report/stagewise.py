"""Drawings of the replay: what each stage adds under each model, and the weight of the lexical arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lossmap.report.canvas import SERIES, draw_series, legend, placeholder
from lossmap.report.claims import Book

COLUMNS = 3
Row = Mapping[str, Any]


def draw_deltas(book: Book, spec: Mapping[str, Any]) -> Figure:
    """One panel a model, one line a task: what each of ``series`` (a delta of the row) adds, in points."""
    rows = _rows(book, spec)
    if not rows:
        return placeholder(book)
    models, tasks = (list(dict.fromkeys(row[key] for row in rows)) for key in ("model", "task"))
    figure, panels = pyplot.subplots(
        1, len(models), figsize=(6.4, 0.27 * len(tasks) + 1.1), squeeze=False, sharex=True, sharey=True
    )
    for axes, model in zip(panels[0], models, strict=True):
        for row in (row for row in rows if row["model"] == model):
            for shift, (delta, series) in zip((-0.24, 0.0, 0.24), spec["deltas"].items()):
                ends = [100 * end for end in row["intervals"][delta]["meetings"]]
                drawn = {"metrics": {"points": 100 * row["deltas"][delta]}, "intervals": {"points": {"meetings": ends}}}
                draw_series(axes, tasks.index(row["task"]) + shift, drawn, "points", series)
        axes.axvline(0, color="#555555", lw=0.7)
        axes.set_title(model, fontsize=8.5, loc="left")
        axes.set_xlabel(spec["axis"])
        axes.tick_params(axis="y", length=0)
    panels[0][0].set_yticks(range(len(tasks)), tasks)
    panels[0][0].set_ylim(len(tasks) - 0.5, -0.5)
    legend(figure, spec["series"])
    return figure


def draw_weights(book: Book, spec: Mapping[str, Any]) -> Figure:
    """One panel a task, one curve a model: nDCG@10 of the fusion under each lexical weight, in points."""
    rows = _rows(book, spec)
    if not rows:
        return placeholder(book)
    models, tasks = (list(dict.fromkeys(row[key] for row in rows)) for key in ("model", "task"))
    lines = -(-len(tasks) // COLUMNS)
    figure, panels = pyplot.subplots(lines, COLUMNS, figsize=(6.4, 1.35 * lines + 0.6), sharex=True, squeeze=False)
    for place, axes in enumerate(panels.flat):
        axes.set_visible(place < len(tasks))
        if place < len(tasks):
            mine = [row for row in rows if row["task"] == tasks[place]]
            _draw_curves(axes, mine, models)
            axes.set_title(tasks[place], fontsize=8, loc="left")
            if place >= len(tasks) - COLUMNS:
                axes.set_xlabel(spec["axis"])
                axes.tick_params(labelbottom=True)
    legend(figure, dict(zip(SERIES, models)))
    return figure


def _draw_curves(axes: Axes, rows: Sequence[Row], models: Sequence[str]) -> None:
    for model, (colour, marker, filled) in zip(models, SERIES.values()):
        mine = sorted((row for row in rows if row["model"] == model), key=lambda row: row["weight"])
        points = [100 * row["s2"] for row in mine]
        face = colour if filled else "white"
        axes.plot([row["weight"] for row in mine], points, color=colour, marker=marker, ms=3, lw=1, mfc=face)
    axes.grid(axis="y", lw=0.4)


def _rows(book: Book, spec: Mapping[str, Any]) -> list[Row]:
    """The rows of a file that ``where`` keeps, of tiers that this target may show."""
    file = book.allow(spec["file"])
    rows = [row for row in book.results.json(file)["rows"] if spec["where"].items() <= row.items()]
    return [row for row in rows if book.allow(file, row["tier"])]
