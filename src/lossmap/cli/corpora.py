"""Verbs on corpora: fetching, licences, normalising, export."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from lossmap import layout
from lossmap.cli.verbs import layout_of, scaled, show, verb_of


def declare(verbs: Any) -> None:
    fetch = verb_of(verbs, "fetch", _corpora_fetch, "fetch corpora whose licences you accept")
    fetch.add_argument("--accept-licenses", action="store_true")
    fetch.add_argument("--accept-noncommercial", action="store_true")
    fetch.add_argument("--mirror", type=Path)
    verify = verb_of(verbs, "verify", _corpora_verify, "check every fetched file against corpora.lock, offline")
    lock = verb_of(verbs, "lock", _corpora_lock, "write corpora.lock from a mirror or from upstream")
    lock.add_argument("--mirror", type=Path)
    verb_of(verbs, "list", _corpora_list, "registered corpora, tiers and licences")
    for verb in (fetch, verify, lock):
        verb.add_argument("--only", action="append", metavar="KEY")
    obtain = verb_of(verbs, "obtain", _corpora_obtain, "fetch one corpus for a rule; what cannot be had is recorded")
    obtain.add_argument("key")
    obtain.add_argument("--strict", action="store_true")
    obtain.add_argument("--accept-noncommercial", action="store_true")
    obtain.add_argument("--out", type=Path, required=True)
    verb_of(verbs, "licences", _corpora_licences, "the licence trail: what is claimed, what the evidence says")
    scaled(verbs, "stats", _corpora_stats, "counts of every normalised corpus")
    export = scaled(verbs, "export", _corpora_export, "one normalised corpus as BEIR JSONL and TREC qrels")
    export.add_argument("key")
    export.add_argument("--out", type=Path, required=True)
    normal = scaled(verbs, "normalise", _corpora_normalise, "upstream files to meetings, queries and gold")
    normal.add_argument("key")
    normal.add_argument(
        "--limit", type=int, metavar="N", help="a generated corpus: its first N meetings by key, to --out"
    )
    normal.add_argument("--out", type=Path, help="with --limit: the folder to write (default: build/SCALE/hand/KEY)")


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

    show(licence.licence_rows())


def _corpora_stats(o: argparse.Namespace) -> None:
    from lossmap.corpora import stats

    show(stats.stats(layout_of(o).build / "corpora"))


def _corpora_export(o: argparse.Namespace) -> None:
    from lossmap.corpora import export

    show(export.write(layout_of(o), o.key, o.out))


def _corpora_normalise(o: argparse.Namespace) -> None:
    from lossmap.corpora import normalise

    at = layout_of(o)
    if o.limit is None:
        normalise.run(at, o.key)
    else:
        normalise.first(at, o.key, o.limit, o.out or at.build / "hand" / o.key)
