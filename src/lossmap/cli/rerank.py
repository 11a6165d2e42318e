"""Verbs of re-rankers: which there are, and the one that is trained."""

from __future__ import annotations

import argparse
from typing import Any

from lossmap.cli.verbs import layout_of, scaled, show, verb_of

NEEDS_TORCH = 10
"""Exit code of ``train --ready`` that no failure has: only this one is mended by an installation."""


def declare(verbs: Any) -> None:
    listed = verb_of(verbs, "rerankers", _rerankers, "the re-rankers, whether each can score here, and the reason")
    listed.add_argument("names", nargs="*", metavar="NAME", help="these alone (default: all)")
    listed.add_argument("--obtain", action="store_true", help="try to fetch what is fetched")
    train = scaled(verbs, "train", _train, "a cross-encoder by its recipe, where the cache has none; its card")
    train.add_argument("name")
    train.add_argument("--chapter", default="stage5")
    train.add_argument(
        "--ready", action="store_true", help=f"train nothing; exit {NEEDS_TORCH} where torch is missing and needed"
    )


def _rerankers(o: argparse.Namespace) -> None:
    from lossmap.encode import rerankers

    for reranker in map(rerankers.get, o.names or rerankers.registry()):
        found = rerankers.state(reranker, o.obtain)
        print(f"{reranker.name}: {reranker.label}, {'obtained' if found.obtained else f'not obtained: {found.reason}'}")


def _train(o: argparse.Namespace) -> int:
    from lossmap.studies import train

    if o.ready:
        return 0 if train.ready(o.name) else NEEDS_TORCH
    show({"folder": str(train.run(layout_of(o), o.chapter, o.name))})
    return 0
