"""lossmap: corpora -> transcripts -> index -> legs -> rankings -> numbers -> claims -> paper."""

import os
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
from lossmap.corpora import registry
from lossmap.report import ledger

# Rows of tier B have a scale, a folder and a paper of their own.
AT = layout.load(layout.INTERNAL if config["accept_noncommercial"] else config["scale"])
CHAPTERS = config["scales"].get(AT.scale, {}).get("chapters", {})
BUILD = f"build/{AT.scale}"
RESULTS = AT.results.relative_to(AT.root).as_posix()
LOSSMAP = f"PYTHONPATH=src {sys.executable} -m lossmap"
LIVE = f"{LOSSMAP} engine up > /dev/null && {LOSSMAP}"
SCALED = f"--scale {AT.scale}"
# Thirty indexes of 130,000 to 225,000 chunks: with two gigabytes the engine refuses bulks now and then.
if AT.scale == "full":
    os.environ.setdefault("LOSSMAP_HEAP", "5g")

# Committed outputs would satisfy Snakemake on a fresh clone: this file is young there, and everything runs once.
STAMP = Path("build/checkout.stamp")
if not STAMP.exists():
    STAMP.parent.mkdir(exist_ok=True)
    STAMP.write_text(uuid.uuid4().hex + "\n")


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
    if "synthetic" in CHAPTERS:
        include: "workflow/rules/synthetic.smk"
    if "stage3" in CHAPTERS:
        include: "workflow/rules/stability.smk"
        include: "workflow/rules/stage3.smk"
        include: "workflow/rules/stage4.smk"
    if "stage5" in CHAPTERS:
        include: "workflow/rules/rerank.smk"
        include: "workflow/rules/stage5.smk"
        include: "workflow/rules/agreement.smk"
    if "replay" in CHAPTERS:
        include: "workflow/rules/replay.smk"
    include: "workflow/rules/score.smk"
    include: "workflow/rules/bench.smk"


include: "workflow/rules/paper.smk"


onsuccess:
    # What could not be had is named last, where it is read.
    if AT.scale != "shipped":
        for record in sorted({Path(f"build/corpora/{key.partition('.')[0]}.json") for key in READ}):
            if record.exists() and (found := read_json(record)).get("obtained") is False:
                print(f"not obtained: {found['key']}: {found['reason']}; another run tries again", file=sys.stderr)
