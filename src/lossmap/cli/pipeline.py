"""Verbs of the pipeline: engines and models, then corpus to index to legs to numbers."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from lossmap.cli.verbs import layout_of, scaled, show, verb_of


def declare_engines(verbs: Any) -> None:
    """Engines, models, and whether all that a run needs is there."""
    verb_of(verbs, "models", _models, "fetch the pinned encoders").add_argument("action", choices=["fetch"])
    verb_of(verbs, "doctor", _doctor, "what is there, what is missing, and the command that mends it")
    actions = verbs.add_parser("engine", help="OpenSearch and PostgreSQL on loopback").add_subparsers(required=True)
    for name, text in (
        ("up", "start both servers, or reuse those that run"),
        ("down", "stop what we started, by recorded pid"),
        ("status", "endpoints, pids, versions, memory"),
        ("fetch", "assemble the engines without starting them"),
    ):
        verb_of(actions, name, _engine_call, text).set_defaults(call=name)


def _engine_call(o: argparse.Namespace) -> None:
    from lossmap import engine

    if (found := getattr(engine, o.call)()) is not None:
        show(found)


def _models(o: argparse.Namespace) -> None:
    from lossmap.encode import models

    for name, model in models.registry().items():
        print(name, *model.files())


def _doctor(o: argparse.Namespace) -> int:
    from lossmap import doctor

    return doctor.main()


def _timings(o: argparse.Namespace) -> None:
    from lossmap.corpora import timings

    show(timings.run(layout_of(o), o.rule))


def declare(verbs: Any) -> None:
    scaled(verbs, "timings", _timings, "measured times of meetings from another corpus's words").add_argument("rule")
    inject = scaled(verbs, "inject", _inject, "a normalised corpus into PostgreSQL")
    inject.add_argument("key")
    scaled(verbs, "chunk", _chunk, "segments to speaker-turn chunks")
    scaled(verbs, "digest", _digest, "segments to the sections of the digest plane")
    encode = scaled(verbs, "encode", _encode, "texts to vectors, through the content-addressed cache")
    encode.add_argument("what", choices=["passages", "digests", "queries"])
    index = scaled(verbs, "index", _index, "chunks and vectors into OpenSearch, settled and merged")
    for verb in (inject, index):
        verb.add_argument("--force", action="store_true", help="rewrite what is unchanged too")
    scaled(verbs, "sweep", _sweep, "delete what the live index holds of files that were not injected")
    scaled(verbs, "freeze", _freeze, "freeze one leg").add_argument("leg")
    pin = scaled(verbs, "pin", _pin, "hold an arm's offline order against the live engine")
    pin.add_argument("arm")
    pin.add_argument("--chapter", default="stage1")
    latency = scaled(verbs, "latency", _latency, "what fusions cost the live engine, interleaved with their control")
    latency.add_argument("--arms", nargs="*", default=[])
    latency.add_argument("--every", type=int, default=1, help="every n-th query (default: all)")
    scaled(verbs, "judge", _judge, "gold turns to graded chunk judgements").add_argument("key")
    _measure_options(scaled(verbs, "measure", _measure, "score one arm from its frozen legs"))
    scaled(verbs, "rescore", _rescore, "freeze what a re-ranker says of a bench's candidates").add_argument("by")
    score = scaled(verbs, "score", _score, "score one arm of a chapter over several benches")
    score.add_argument("arm")
    score.add_argument("--chapter", required=True)
    score.add_argument("--benches", nargs="+", required=True)
    compare = scaled(verbs, "compare", _compare, "paired deltas of two arm folders, with intervals")
    compare.add_argument("a", type=Path)
    compare.add_argument("b", type=Path)
    compare.add_argument("--factor", action="append", default=[], help="a hash that may differ, being under test")


def _inject(o: argparse.Namespace) -> None:
    from lossmap.index import inject

    show(inject.run(layout_of(o), o.key, o.force))


def _chunk(o: argparse.Namespace) -> None:
    from lossmap.index import table

    show(table.run(layout_of(o)))


def _digest(o: argparse.Namespace) -> None:
    from lossmap.index import plane

    show(plane.run(layout_of(o)))


def _encode(o: argparse.Namespace) -> None:
    from lossmap.index import vectors

    write = {"passages": vectors.run_passages, "digests": vectors.run_digests, "queries": vectors.run_queries}
    show(write[o.what](layout_of(o)))


def _index(o: argparse.Namespace) -> None:
    from lossmap.index import build

    show(build.run(layout_of(o), o.force))


def _sweep(o: argparse.Namespace) -> None:
    from lossmap.index import sweep

    show(sweep.run(layout_of(o)))


def _freeze(o: argparse.Namespace) -> None:
    from lossmap.search import freeze

    freeze.freeze(layout_of(o), o.leg)


def _pin(o: argparse.Namespace) -> None:
    from lossmap import canon
    from lossmap.search import pins

    at = layout_of(o)
    report = pins.pin_arm(at, o.chapter, o.arm)
    canon.write_json(at.stage(o.chapter) / "pins" / f"{o.arm}.json", report)
    pins.require_pinned(report)


def _rescore(o: argparse.Namespace) -> None:
    from lossmap.search import rescore

    show(rescore.run(layout_of(o), o.by))


def _score(o: argparse.Namespace) -> None:
    from lossmap import layout
    from lossmap.search import arms
    from lossmap.studies import measure

    at = layout_of(o)
    measure.score(at.scale, o.chapter, o.arm, layout.pick(arms.of(at, o.chapter), o.arm, "arm"), o.benches)


def _latency(o: argparse.Namespace) -> None:
    from lossmap import canon
    from lossmap.search import latency

    at = layout_of(o)
    canon.write_json(at.build / "bench" / "latency.json", latency.run(at, "stage5", names=o.arms, every=o.every))


def _judge(o: argparse.Namespace) -> None:
    from lossmap.studies import judging

    judging.judge(layout_of(o), o.key)


def _measure_options(verb: argparse.ArgumentParser) -> None:
    from lossmap.search import choose

    choose.add_options(verb)
    verb.add_argument("--relevance-high", type=float, default=0.5)
    verb.add_argument("--relevance-low", type=float, default=0.0)
    verb.add_argument("--binary-relevance", action="store_true")
    verb.add_argument("--limit-queries", type=int, default=0, metavar="N", help="the first N by id (0: all)")
    verb.add_argument("--expect-files", type=int, default=0, help="0: as injected; N; -1: do not check")
    verb.add_argument("--out", type=Path)


def _measure(o: argparse.Namespace) -> None:
    from lossmap.judge.qrels import RelevancePolicy
    from lossmap.search import choose
    from lossmap.studies import measure

    at = layout_of(o)
    name, arm = choose.arm(at, o)
    policy = RelevancePolicy(o.relevance_high, o.relevance_low, o.binary_relevance)
    options = measure.Options(policy, o.limit_queries, o.expect_files)
    out = o.out or at.build / "hand" / at.bench / name
    print(measure.markdown(measure.measure(at, name, arm, out, options)), end="")
    print(f"written to {out}", file=sys.stderr)


def _compare(o: argparse.Namespace) -> None:
    from lossmap.studies import compare, stage

    classes = stage.classes(layout_of(o))
    print(compare.markdown(compare.compare(o.a, o.b, classes, o.factor)), end="")
