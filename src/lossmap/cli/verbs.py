"""How a verb is declared: its parser, the scale and bench that most of them take, and how a result is printed."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

from lossmap import layout
from lossmap.errors import LossmapError

Handler = Callable[[argparse.Namespace], int | None]


def verb_of(verbs: Any, name: str, run: Handler, text: str) -> argparse.ArgumentParser:
    verb = verbs.add_parser(name, help=text, description=text)
    verb.set_defaults(run=run)
    return verb


def scaled(verbs: Any, name: str, run: Handler, text: str) -> argparse.ArgumentParser:
    verb = verb_of(verbs, name, run, text)
    verb.add_argument("--scale", default=None, help="a scale of workflow/config/config.yaml (default: its own default)")
    verb.add_argument("--bench", default=layout.MAIN, help="INDEX or INDEX/CORPUS of workflow/config (default: main)")
    return verb


def layout_of(o: argparse.Namespace) -> layout.Layout:
    """The scale and bench that a verb was given. Raises (exit 2) on an index that the scale does not have."""
    found = layout.load(o.scale, o.bench)
    indexes = found.config["scales"].get(found.scale, {}).get("indexes", {})
    if found.scale != "shipped" and found.index not in indexes:
        raise LossmapError(
            "unknown bench",
            where=f"scale {found.scale}",
            observed=o.bench,
            expected=f"an index, or INDEX/CORPUS; indexes: {', '.join(indexes)}",
            next_command="give --scale the scale that holds it; benches stand in workflow/config/config.yaml",
            exit_code=2,
        )
    return found


def show(value: Any) -> None:
    print(json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False))
