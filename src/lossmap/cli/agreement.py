"""The verb ``agreement``: what two corpora say of the arms of a manifest."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from lossmap.cli.verbs import show, verb_of


def declare(verbs: Any) -> None:
    verb = verb_of(verbs, "agreement", _agreement, "whether two corpora rank the arms of a manifest alike")
    verb.add_argument("--scale", default=None, help="whose own manifest is the default (default: the default scale)")
    verb.add_argument(
        "--manifest", type=Path, metavar="FILE", help="families of arms as JSON (default: this scale's own)"
    )
    verb.add_argument(
        "--runs-root", type=Path, metavar="DIR", help="where the runs of the manifest lie (default: its own)"
    )
    verb.add_argument("--class", dest="query_class", default="all", metavar="CLASS")
    verb.add_argument("--measure", help="default: the manifest's")
    verb.add_argument("--drop", action="append", default=[], metavar="ARM", help="leave an arm out; may be repeated")
    verb.add_argument("--exclude-inert", action="store_true", help="leave out arms that move nothing on any corpus")
    verb.add_argument("--emit-manifest", action="store_true", help="print the manifest instead, to add arms to")
    verb.add_argument("--json", action="store_true")


def _agreement(o: argparse.Namespace) -> None:
    from lossmap import canon, layout
    from lossmap.studies import manifest

    at = layout.load(o.scale)
    asked = manifest.load(o.manifest) if o.manifest else manifest.emitted(at)
    if o.runs_root:
        asked = {**asked, "runs_root": o.runs_root.as_posix()}
    if o.emit_manifest:
        show(asked)
        return
    root = Path(asked["runs_root"]) if o.manifest or o.runs_root else at.root / asked["runs_root"]
    found = manifest.study(asked, root, o.query_class, o.measure, o.drop, o.exclude_inert)
    print(canon.dumps(found) if o.json else manifest.markdown(found), end="")
