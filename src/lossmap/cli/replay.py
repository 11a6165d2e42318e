"""Verbs of the memory pipeline: its lexical side frozen, and one model's replay of a task."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from lossmap.cli.verbs import layout_of, scaled


def declare(verbs: Any) -> None:
    scaled(verbs, "lexical", _lexical, "freeze the lexical lists of a task, once for all models").add_argument("task")
    replay = scaled(verbs, "replay", _replay, "one model over one task: every stage from frozen scores, and witnesses")
    replay.add_argument("--model", required=True, help="a stanza of workflow/config/models.yaml")
    replay.add_argument("--task", required=True, help="a stanza of workflow/config/tasks.yaml")
    replay.add_argument(
        "--pin-from", type=Path, metavar="DIR", help="take the thresholds of the cards in a folder (default: calibrate)"
    )
    replay.add_argument(
        "--max-queries-per-subtask", type=int, metavar="N", help="replay every k-th query (default: the task's own cap)"
    )
    replay.add_argument("--out", type=Path, metavar="DIR", help="default: the folder of this scale's rule")


def _lexical(o: argparse.Namespace) -> None:
    from lossmap.memory import lexical

    print(lexical.run(layout_of(o), o.task))


def _replay(o: argparse.Namespace) -> None:
    from lossmap.studies.replay import record

    print(record.record(layout_of(o), o.model, o.task, o.pin_from, o.max_queries_per_subtask, o.out))
