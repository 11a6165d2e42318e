"""The rendering rules: claims, paper and page of one scale."""

from __future__ import annotations

from collections.abc import Callable

from lossmap.layout import Layout
from lossmap.report import claims, collect, ledger, render, site


def _claims(at: Layout) -> None:
    stages = ledger.stages(at.results)
    claims.build(at.results, stages, at.results / claims.NAME)
    ledger.merge([at.results / stage for stage in stages], at.results / "LEDGER.json")


def _paper(at: Layout) -> None:
    render.paper(at.scale, at.results, at.build, collect.digests(at))


def _site(at: Layout) -> None:
    site.page(at.scale, at.results, at.build / "site", collect.digests(at))


PRODUCTS: dict[str, Callable[[Layout], None]] = {"claims": _claims, "paper": _paper, "site": _site}


def render_product(at: Layout, name: str) -> None:
    PRODUCTS[name](at)
