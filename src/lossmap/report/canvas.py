"""What every figure draws with: series told apart by colour and marker, a point with its interval, a legend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from lossmap.report import documents  # noqa: E402
from lossmap.report.claims import Book  # noqa: E402

# Okabe-Ito colours, told apart without colour by marker as well: (colour, marker, filled).
SERIES = {
    "corpus": ("#0072B2", "o", True),
    "gold": ("#D55E00", "D", True),
    "beside": ("#009E73", "s", False),
}


def draw_series(axes: Axes, place: float, row: Mapping[str, Any], measure: str, series: str) -> None:
    colour, marker, filled = SERIES[series]
    value = row["metrics"][measure]
    low, high = row["intervals"][measure]["meetings"]
    # A percentile interval of a tiny sample may miss its own point estimate; an error bar cannot be negative.
    spread = [[max(0.0, value - low)], [max(0.0, high - value)]]
    face = colour if filled else "white"
    axes.errorbar(
        value, place, xerr=spread, fmt=marker, color=colour, mfc=face, ms=4.5, mew=1.1, elinewidth=1.1, capsize=2
    )


def placeholder(book: Book) -> Figure:
    """A figure whose corpus could not be had says so in its place."""
    figure = pyplot.figure(figsize=(6.4, 0.8))
    figure.text(0.5, 0.5, f"{documents.NOT_OBTAINED}: {book.not_obtained}", ha="center", va="center", wrap=True)
    return figure


def legend(figure: Figure, labels: Mapping[str, str]) -> None:
    marks = [
        pyplot.Line2D([], [], color=SERIES[name][0], marker=SERIES[name][1], ls="", ms=5, mew=1.1,
                      mfc=SERIES[name][0] if SERIES[name][2] else "white", label=label)
        for name, label in labels.items()
    ]  # fmt: skip
    figure.legend(handles=marks, loc="upper center", ncol=len(marks), frameon=False, fontsize=8)
    figure.tight_layout(rect=(0, 0, 1, 0.91), w_pad=1.2)
