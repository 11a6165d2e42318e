"""lossmap: corpora -> transcripts -> index -> legs -> rankings -> numbers -> claims -> paper."""

import sys
import uuid
from pathlib import Path

from snakemake.utils import min_version

min_version("9.14")

configfile: "workflow/config/config.yaml"
configfile: "workflow/config/arms.yaml"
configfile: "workflow/config/code.yaml"

sys.path.insert(0, str(Path(workflow.basedir) / "src"))
from lossmap import layout
from lossmap.canon import digest, read_json
from lossmap.report import ledger

AT = layout.load(config["scale"])
BUILD = f"build/{AT.scale}"
RESULTS = AT.results.relative_to(AT.root).as_posix()
LOSSMAP = f"PYTHONPATH=src {sys.executable} -m lossmap"
LIVE = f"{LOSSMAP} engine up > /dev/null && {LOSSMAP}"
SCALED = f"--scale {AT.scale}"

# Committed outputs would satisfy Snakemake on a fresh clone: this file is young there, and everything runs once.
STAMP = Path("build/checkout.stamp")
if not STAMP.exists():
    STAMP.parent.mkdir(exist_ok=True)
    STAMP.write_text(uuid.uuid4().hex + "\n")


# What could not be had the last time is tried again: such a record is no result that a second run may rely on.
for record in [*Path("build/corpora").glob("*.json"), *Path("build").glob("*/corpora/*/corpus.json")]:
    if read_json(record).get("obtained") is False:
        record.unlink()


def code(rule):
    """The content hash of what a rule runs: changed code reruns it."""
    return ledger.code_digest(config["code"][rule])


def get_final_output():
    return [f"{BUILD}/paper.pdf", f"{BUILD}/site/index.html"]


rule all:
    input:
        get_final_output(),


if AT.scale != "shipped":

    include: "workflow/rules/corpora.smk"
    include: "workflow/rules/inject.smk"
    include: "workflow/rules/stage1.smk"
    include: "workflow/rules/scores.smk"
    include: "workflow/rules/bench.smk"


include: "workflow/rules/paper.smk"


onsuccess:
    # What could not be had is named last, where it is read.
    for key in AT.documents:
        record = Path(f"build/corpora/{key}.json")
        if record.exists() and (found := read_json(record)).get("obtained") is False:
            print(f"not obtained: {key}: {found['reason']}", file=sys.stderr)
