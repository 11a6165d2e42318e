# Stage 5: the bake-off. An arm is a stanza (arms.yaml, families), scored from frozen legs.
from lossmap.search import arms, plan

STAGE5 = CHAPTERS["stage5"]
BY = config["scales"][AT.scale]["rerankers"]
FAMILIES = list(STAGE5["families"])
STAGED = ["parts", "pool", "budget"]
PINS = STAGE5["pins"]


def of_family(family, files, chapter="stage5"):
    """What studies read of the arms of a family."""
    return scored("stage5", plan.benches(AT, chapter, family), plan.chosen(AT, family), files)


rule rescore:
    input:
        lambda w: expand(
            BUILD + "/legs/{bench}/{leg}.npz",
            bench=w.bench,
            leg=sorted({leg for stanza in plan.shown_to(AT, w.bench, w.by) for leg in stanza["legs"]}),
        ),
        lambda w: f"{BUILD}/index/{bench(w.bench).index}/chunks.jsonl",
        lambda w: f"{BUILD}/index/{bench(w.bench).index}/manifest.json",
        lambda w: [BUILD + "/stages/stage5/trained.json"] * (BY[w.by] in TRAINED),
    output:
        BUILD + "/legs/{bench}/{by}.npz",
    wildcard_constraints:
        by="cross|bi",
    params:
        stanzas=lambda w: list(plan.shown_to(AT, w.bench, w.by)),
        reranker=lambda w: layout.stanza(AT, "rerankers.yaml", BY[w.by]),
        code=code("rescore"),
    threads: workflow.cores
    benchmark:
        BUILD + "/bench/rescore-{bench}-{by}.tsv"
    shell:
        "{LOSSMAP} rescore {wildcards.by} {SCALED} --bench {wildcards.bench}"


# What the studies read that take the pipeline apart.
APART = [
    *of_family("parts", ["metrics.json", "per_query.csv.gz", "run.txt.gz"]),
    *of_family("budget", ["metrics.json", "run.txt.gz"]),
    *expand(BUILD + "/legs/{bench}/{leg}.npz", bench=plan.benches(AT, "stage5", "parts"), leg=["bm25", "exact", *BY]),
]

# What each study reads: a study runs again when one of these does.
STUDIED = {
    "scores": [path for family in FAMILIES for path in of_family(family, ["metrics.json"])],
    "deltas": [path for family in FAMILIES for path in of_family(family, ["metrics.json", "per_query.csv.gz"])],
    "subsets": [path for family in ["fusion", *STAGED] for path in of_family(family, ["metrics.json", "per_query.csv.gz"])],
    "beir": of_family("fusion", ["metrics.json", "per_query.csv.gz"]),
    "encoders": of_family("encoders", ["metrics.json", "per_query.csv.gz"]),
    "single_leg": of_family("fusion", ["metrics.json", "run.txt.gz"])
    + expand(BUILD + "/legs/{bench}/{leg}.npz", bench=plan.benches(AT, "stage5", "fusion"), leg=["bm25", "exact"]),
    **{study: APART for study in ("parts", "stages", "resort")},
    "reruns": [
        *of_family("fusion", ["metrics.json", "per_query.csv.gz", "run.txt.gz"]),
        *scored("stage4", ROUTED, "rrf30-again"),
        *expand(BUILD + "/legs/{bench}/cross.npz", bench=plan.benches(AT, "stage5", "pool")),
    ],
    "licences": ["workflow/config/reranker_licences.yaml", "workflow/config/rerankers.yaml"],
}


# Two threads of the matrix library on two busy cores wait for each other: a study takes one.
rule stage5_study:
    input:
        lambda w: STUDIED[w.study],
    output:
        BUILD + "/stages/stage5/{study}.json",
    wildcard_constraints:
        study="|".join(STUDIED),
    params:
        chapter=STAGE5,
        families={name: plan.family(AT, name) for name in FAMILIES},
        code=code("stage5_study"),
    benchmark:
        BUILD + "/bench/stage5-{study}.tsv"
    shell:
        "OPENBLAS_NUM_THREADS=1 {LOSSMAP} study {wildcards.study} --chapter stage5 {SCALED}"
        " && {LOSSMAP} sign stage5_study {SCALED} --code {params.code} --outputs {output} --inputs {input}"


# The offline fusion of every arm held against the engine, and every knob shown to be alive.
rule pins:
    input:
        expand(BUILD + "/legs/{bench}/{leg}.npz", bench=PINS, leg=["bm25", "exact", "hnsw"]),
    output:
        BUILD + "/stages/stage5/{study}.json",
    wildcard_constraints:
        study="pins|knobs",
    params:
        bench=PINS,
        families={name: arms.families(AT, "stage5")[name] for name in plan.PINNED},
        code=code("pins"),
    resources:
        engine=1,
    benchmark:
        BUILD + "/bench/stage5-{study}.tsv"
    shell:
        "{LIVE} study {wildcards.study} --chapter stage5 {SCALED}"
        " && {LOSSMAP} sign pins {SCALED} --code {params.code} --outputs {output} --inputs {input}"


rule stage5:
    input:
        parts=[
            *expand(BUILD + "/stages/stage5/{study}.json", study=[*STUDIED, "reranker_quality", "pins", "knobs"]),
            *[BUILD + "/stages/stage5/trained.json"] * bool(TRAINED),
        ],
        stamp=STAMP,
    output:
        directory(RESULTS + "/stage5"),
    params:
        code=code("stage5"),
    shell:
        "{LOSSMAP} collect stage5 {SCALED} --parts {input.parts}"
