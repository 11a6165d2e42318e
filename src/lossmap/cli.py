"""The command line: one verb a rule, no logic."""

from __future__ import annotations

import argparse
import errno
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psycopg
from opensearchpy import OpenSearchException

from lossmap import layout
from lossmap.errors import LossmapError

Handler = Callable[[argparse.Namespace], int | None]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; a LossmapError is printed without a traceback and its exit code returned."""
    options = parser().parse_args(argv)
    try:
        return options.run(options) or 0
    except LossmapError as error:
        print(f"lossmap: {error}", file=sys.stderr)
        return error.exit_code
    except (OSError, OpenSearchException, psycopg.Error) as error:
        print(f"lossmap: {foreign(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("lossmap: interrupted; finished files are kept, run again to go on", file=sys.stderr)
        return 130


def foreign(error: Exception) -> LossmapError:
    """What the system or a server said, with the way on; nothing half-written is left behind it."""
    if isinstance(error, OSError):
        mend = "free space, then run again" if error.errno == errno.ENOSPC else "mend it, then run again"
        return LossmapError("the system refused", where=error.filename, observed=error, next_command=mend)
    server = "PostgreSQL" if isinstance(error, psycopg.Error) else "OpenSearch"
    mend = "./run lossmap engine status; ./run lossmap engine up; then run again: what is written is kept"
    return LossmapError(f"{server} did not do its part", observed=str(error)[:400], next_command=mend)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="lossmap", description="Where does a hybrid retriever lose, and how do we know?")
    verbs = top.add_subparsers(required=True, metavar="VERB")
    _corpora(verbs.add_parser("corpora", help="corpora under their licences").add_subparsers(required=True))
    _engine(verbs.add_parser("engine", help="OpenSearch and PostgreSQL on loopback").add_subparsers(required=True))
    _verb(verbs, "models", _models, "fetch the pinned encoders").add_argument("action", choices=["fetch"])
    _verb(verbs, "doctor", _doctor, "what is there, what is missing, and the command that mends it")
    _pipeline(verbs)
    _report(verbs)
    return top


def _verb(verbs: Any, name: str, run: Handler, text: str) -> argparse.ArgumentParser:
    verb = verbs.add_parser(name, help=text, description=text)
    verb.set_defaults(run=run)
    return verb


def _scaled(verbs: Any, name: str, run: Handler, text: str) -> argparse.ArgumentParser:
    verb = _verb(verbs, name, run, text)
    verb.add_argument("--scale", default=None, help="smoke, small or full (default: workflow/config/config.yaml)")
    verb.add_argument("--bench", default=layout.MAIN, help="INDEX or INDEX/CORPUS of workflow/config (default: main)")
    return verb


def _print(value: Any) -> None:
    print(json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False))


def _corpora(verbs: Any) -> None:
    fetch = _verb(verbs, "fetch", _corpora_fetch, "fetch corpora whose licences you accept")
    fetch.add_argument("--accept-licenses", action="store_true")
    fetch.add_argument("--accept-noncommercial", action="store_true")
    fetch.add_argument("--mirror", type=Path)
    verify = _verb(verbs, "verify", _corpora_verify, "check every fetched file against corpora.lock, offline")
    lock = _verb(verbs, "lock", _corpora_lock, "write corpora.lock from a mirror or from upstream")
    lock.add_argument("--mirror", type=Path)
    _verb(verbs, "list", _corpora_list, "registered corpora, tiers and licences")
    for verb in (fetch, verify, lock):
        verb.add_argument("--only", action="append", metavar="KEY")
    obtain = _verb(verbs, "obtain", _corpora_obtain, "fetch one corpus for a rule; what cannot be had is recorded")
    obtain.add_argument("key")
    obtain.add_argument("--strict", action="store_true")
    obtain.add_argument("--accept-noncommercial", action="store_true")
    obtain.add_argument("--out", type=Path, required=True)
    _verb(verbs, "licences", _corpora_licences, "the licence trail: what is claimed, what the evidence says")
    _scaled(verbs, "stats", _corpora_stats, "counts of every normalised corpus")
    export = _scaled(verbs, "export", _corpora_export, "one normalised corpus as BEIR JSONL and TREC qrels")
    export.add_argument("key")
    export.add_argument("--out", type=Path, required=True)
    normal = _scaled(verbs, "normalise", _corpora_normalise, "upstream files to meetings, queries and gold")
    normal.add_argument("key")


def _corpora_fetch(o: argparse.Namespace) -> int:
    from lossmap.corpora import fetch

    return fetch.main(o.only, o.accept_licenses, o.accept_noncommercial, o.mirror)


def _corpora_verify(o: argparse.Namespace) -> int:
    from lossmap.corpora import lock

    return lock.verify_main(o.only)


def _corpora_lock(o: argparse.Namespace) -> int:
    from lossmap.corpora import fetch

    return fetch.lock_main(o.only, o.mirror)


def _corpora_list(o: argparse.Namespace) -> int:
    from lossmap.corpora import registry

    return registry.list_main()


def _corpora_obtain(o: argparse.Namespace) -> None:
    from lossmap import canon
    from lossmap.corpora import fetch

    record = fetch.obtain(o.key, layout.load().raw, o.strict, accept_noncommercial=o.accept_noncommercial)
    canon.write_json(o.out, record)


def _corpora_licences(o: argparse.Namespace) -> None:
    from lossmap.corpora import licence

    _print(licence.licence_rows())


def _corpora_stats(o: argparse.Namespace) -> None:
    from lossmap.corpora import stats

    _print(stats.stats(layout.load(o.scale, o.bench).build / "corpora"))


def _corpora_export(o: argparse.Namespace) -> None:
    from lossmap.corpora import export

    _print(export.write(layout.load(o.scale, o.bench), o.key, o.out))


def _corpora_normalise(o: argparse.Namespace) -> None:
    from lossmap.corpora import normalise

    normalise.run(layout.load(o.scale, o.bench), o.key)


def _engine(verbs: Any) -> None:
    for name, text in (
        ("up", "start both servers, or reuse those that run"),
        ("down", "stop what we started, by recorded pid"),
        ("status", "endpoints, pids, versions, memory"),
        ("fetch", "assemble the engines without starting them"),
    ):
        _verb(verbs, name, _engine_call, text).set_defaults(call=name)


def _engine_call(o: argparse.Namespace) -> None:
    from lossmap import engine

    if (found := getattr(engine, o.call)()) is not None:
        _print(found)


def _models(o: argparse.Namespace) -> None:
    from lossmap.encode import models

    for name, model in models.registry().items():
        print(name, *model.files())


def _doctor(o: argparse.Namespace) -> int:
    from lossmap import doctor

    return doctor.main()


def _timings(o: argparse.Namespace) -> None:
    from lossmap.corpora import timings

    _print(timings.run(layout.load(o.scale, o.bench), o.rule))


def _pipeline(verbs: Any) -> None:
    _scaled(verbs, "timings", _timings, "measured times of meetings from another corpus's words").add_argument("rule")
    inject = _scaled(verbs, "inject", _inject, "a normalised corpus into PostgreSQL")
    inject.add_argument("key")
    _scaled(verbs, "chunk", _chunk, "segments to speaker-turn chunks")
    encode = _scaled(verbs, "encode", _encode, "texts to vectors, through the content-addressed cache")
    encode.add_argument("what", choices=["passages", "queries"])
    index = _scaled(verbs, "index", _index, "chunks and vectors into OpenSearch, settled and merged")
    for verb in (inject, index):
        verb.add_argument("--force", action="store_true", help="rewrite what is unchanged too")
    _scaled(verbs, "freeze", _freeze, "freeze one leg").add_argument("leg")
    pin = _scaled(verbs, "pin", _pin, "hold an arm's offline order against the live engine")
    pin.add_argument("arm")
    pin.add_argument("--chapter", default="stage1")
    _scaled(verbs, "judge", _judge, "gold turns to graded chunk judgements").add_argument("key")
    _measure_options(_scaled(verbs, "measure", _measure, "score one arm from its frozen legs"))
    compare = _scaled(verbs, "compare", _compare, "paired deltas of two arm folders, with intervals")
    compare.add_argument("a", type=Path)
    compare.add_argument("b", type=Path)
    compare.add_argument("--factor", action="append", default=[], help="a hash that may differ, being under test")


def _inject(o: argparse.Namespace) -> None:
    from lossmap.index import inject

    _print(inject.run(layout.load(o.scale, o.bench), o.key, o.force))


def _chunk(o: argparse.Namespace) -> None:
    from lossmap.index import table

    _print(table.run(layout.load(o.scale, o.bench)))


def _encode(o: argparse.Namespace) -> None:
    from lossmap.index import vectors

    at = layout.load(o.scale, o.bench)
    if o.what == "queries":
        _print(vectors.run_queries(at, at.config["model"]))
    else:
        _print(vectors.run_passages(at, at.config["model"], at.config["header"]))


def _index(o: argparse.Namespace) -> None:
    from lossmap.index import build

    at = layout.load(o.scale, o.bench)
    _print(build.run(at, at.config["model"], at.config["header"], o.force))


def _freeze(o: argparse.Namespace) -> None:
    from lossmap.search import freeze

    freeze.freeze(layout.load(o.scale, o.bench), o.leg)


def _pin(o: argparse.Namespace) -> None:
    from lossmap import canon
    from lossmap.search import freeze

    at = layout.load(o.scale, o.bench)
    report = freeze.pin_arm(at, o.chapter, o.arm)
    canon.write_json(at.stage(o.chapter) / "pins" / f"{o.arm}.json", report)
    freeze.require_pinned(report)


def _judge(o: argparse.Namespace) -> None:
    from lossmap.studies import judging

    judging.judge(layout.load(o.scale, o.bench), o.key)


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

    at = layout.load(o.scale, o.bench)
    name, arm = choose.arm(at, o)
    policy = RelevancePolicy(o.relevance_high, o.relevance_low, o.binary_relevance)
    options = measure.Options(policy, o.limit_queries, o.expect_files)
    out = o.out or at.build / "hand" / name
    print(measure.markdown(measure.measure(at, name, arm, out, options)), end="")


def _compare(o: argparse.Namespace) -> None:
    from lossmap.studies import compare, stage

    classes = stage.classes(layout.load(o.scale, o.bench))
    print(compare.markdown(compare.compare(o.a, o.b, classes, o.factor)), end="")


def _report(verbs: Any) -> None:
    study = _scaled(verbs, "study", _study, "a study over the arms of a stage")
    study.add_argument("name", help="a study of that chapter (studies/chapter.py)")
    study.add_argument("--chapter", default="stage1")
    collect = _scaled(verbs, "collect", _collect, "copy a stage's parts into its results folder, with the ledger")
    collect.add_argument("stage")
    collect.add_argument("--parts", type=Path, nargs="+", required=True, help="the files to copy")
    sign = _scaled(verbs, "sign", _sign, "record which rule and code wrote these parts, and from what")
    sign.add_argument("rule")
    sign.add_argument("--code", required=True, help="content hash of what the rule runs")
    sign.add_argument("--outputs", type=Path, nargs="+", required=True)
    sign.add_argument("--inputs", type=Path, nargs="+", default=[])
    _scaled(verbs, "bench", _bench, "times and memory of the rules that ran")
    for name, text in (
        ("claims", "claims.json and LEDGER.json"),
        ("paper", "the PDF"),
        ("site", "the methodology page"),
    ):
        _scaled(verbs, name, _render, text).set_defaults(product=name)


def _study(o: argparse.Namespace) -> None:
    from lossmap.studies import chapter

    chapter.study(layout.load(o.scale, o.bench), o.chapter, o.name)


def _collect(o: argparse.Namespace) -> None:
    from lossmap.report import collect

    collect.collect(layout.load(o.scale, o.bench), o.stage, o.parts)


def _sign(o: argparse.Namespace) -> None:
    from lossmap.report import collect

    collect.sign(layout.load(o.scale, o.bench), o.rule, o.code, o.outputs, o.inputs)


def _bench(o: argparse.Namespace) -> None:
    from lossmap.report import bench

    bench.run(layout.load(o.scale, o.bench))


def _render(o: argparse.Namespace) -> None:
    from lossmap.report import products

    products.render_product(layout.load(o.scale, o.bench), o.product)
