"""The command line: one verb a rule, no logic."""

from __future__ import annotations

import argparse
import errno
import sys
from collections.abc import Sequence

import psycopg
from opensearchpy import OpenSearchException

from lossmap.cli import agreement, corpora, pipeline, replay, report, rerank, synthetic
from lossmap.errors import LossmapError


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
    corpora.declare(verbs.add_parser("corpora", help="corpora under their licences").add_subparsers(required=True))
    synthetic.declare(verbs.add_parser("synth", help="the generated corpus").add_subparsers(required=True))
    pipeline.declare_engines(verbs)
    pipeline.declare(verbs)
    rerank.declare(verbs)
    agreement.declare(verbs)
    replay.declare(verbs)
    report.declare(verbs)
    return top
