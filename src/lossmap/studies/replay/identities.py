"""The identities of the replay: how many queries were held against a witness, and how many differed."""

from __future__ import annotations

from typing import Any

from lossmap.errors import LossmapError
from lossmap.judge import decompose
from lossmap.layout import Layout
from lossmap.memory import tasks as registry
from lossmap.studies.replay import run
from lossmap.studies.replay.run import Replayed

ZERO = ("mismatches", "s2_mismatches", "s3_mismatches")


def study(at: Layout) -> dict[str, Any]:
    """The document: ``rows``, one a task and model, and ``total``. Raises where any order or score differs."""
    rows = [{**run.head(found), "dense": found.card["identity"]["dense"], "live": found.card["identity"]["live"]}
            for found in run.replayed(at)]  # fmt: skip
    for row in rows:
        require(row)
    return {"rows": rows, "total": _total(rows)}


def require(row: dict[str, Any]) -> None:
    """Raise on one mismatch: a replay that is not the pipeline is no measurement of it."""
    counts = {**row["dense"], **row["live"]}
    wrong = {name: counts[name] for name in ZERO if counts[name]}
    wrong |= {name: 0 for name in ("queries", "checked") if not counts[name]}
    if wrong or row["dense"]["largest_difference"] or row["live"]["largest_difference"]:
        raise LossmapError(
            "the replay and its witnesses differ",
            where=f"{row['task']} under {row['model']}",
            observed={**wrong, "first": row["live"]["first"]},
            expected="queries that were held against a witness, and no mismatch",
            next_command=f"./run lossmap replay --model {row['model']} --task {row['task']}",
        )


def _total(rows: list[dict[str, Any]]) -> dict[str, Any]:
    sides = [(name, key) for name, keys in (("dense", ("queries", "mismatches")), ("live", ("queries", "checked")))
             for key in keys]  # fmt: skip
    counts = {f"{name}_{key}": sum(row[name][key] for row in rows) for name, key in sides}
    orders = {key: sum(row["live"][key] for row in rows) for key in ("s2_mismatches", "s3_mismatches")}
    every = [row for row in rows if row["live"]["every"] == 1]
    return {
        "tasks": len({row["task"] for row in rows}),
        "models": len({row["model"] for row in rows}),
        **counts,
        **orders,
        "mismatches": sum(orders.values()) + counts["dense_mismatches"],
        "share": decompose.share(counts["live_checked"], counts["live_queries"]),
        "whole_tasks": len({row["task"] for row in every}),
        "whole_queries": sum(row["live"]["checked"] for row in every),
        "largest_difference": max(
            (side["largest_difference"] for row in rows for side in (row["dense"], row["live"])), default=0.0
        ),
    }


def tasks(at: Layout) -> dict[str, Any]:
    """tasks.json: every task of the scale: what it stands for, how large it is, or why it could not be had."""
    models = run.models(at)
    return {"models": models, "rows": [_task(at, each) for each in run.of_model(at, models[0])]}


def _task(at: Layout, found: Replayed) -> dict[str, Any]:
    head = {name: found.card[name] for name in (*run.NAMED, "obtained", "reason")}
    head |= {name: registry.stanza(at, found.task)[name] for name in ("name", "relation")}
    groups, had = found.card["groups"], found.card["obtained"]
    # A task that could not be had has no rows, and so no row of its corpus's tier: what keeps it out is not a result.
    head["standing"] = head["tier"] if had else head.pop("tier")
    return {
        **head,
        "groups": len(groups),
        "lines": sum(group["lines"] for group in groups),
        "stored": sum(group["stored"] for group in groups),
        "queries": len(found.frozen.query_ids) if had else 0,
        "subtasks": len(set(found.frozen.subtasks)) if had else 0,
    }
