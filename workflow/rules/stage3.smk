# Stage 3: a header before each chunk, a digest plane beside them, a shorter window; each index beside the one without.
STAGE3 = CHAPTERS["stage3"]
STAGE3_INDEXES = sorted({index for _, *pair in STAGE3["contrasts"] for index in pair})
STAGE3_SCORED = [
    path
    for index in STAGE3_INDEXES
    for path in scored(
        "stage3",
        [f"{index}/{key}" for key in STAGE3["corpora"]],
        EXACT_ARMS + (OVER_GRAPH if index in STAGE3["graphs"] else []),
    )
]


rule plane:
    input:
        STAGE3_SCORED,
        expand(BUILD + "/index/{index}/{part}", index=STAGE3_INDEXES, part=["manifest.json", "chunks.jsonl"]),
        [path for index in STAGE3_INDEXES for path in digests_of(index)],
        expand(BUILD + "/legs/{index}/{key}/bm25.npz", index=STAGE3_INDEXES, key=STAGE3["corpora"]),
        expand(BUILD + "/corpora/{key}/corpus.json", key=STAGE3["corpora"]),
    output:
        BUILD + "/stages/stage3/index.json",
    params:
        chapter=STAGE3,
        code=code("plane"),
    resources:
        engine=1,
    shell:
        "{LIVE} study index --chapter stage3 {SCALED}"
        " && {LOSSMAP} sign plane {SCALED} --code {params.code} --outputs {output} --inputs {input}"


rule stage3_study:
    input:
        STAGE3_SCORED,
        expand(BUILD + "/stages/stability/{study}.json", study=["order", "graph"]),
    output:
        BUILD + "/stages/stage3/{study}.json",
    wildcard_constraints:
        study="scores|contrasts",
    params:
        chapter=STAGE3,
        gate=layout.stanza(AT, "gates.yaml", "index-v6"),
        code=code("stage3_study"),
    shell:
        "{LOSSMAP} study {wildcards.study} --chapter stage3 {SCALED}"
        " && {LOSSMAP} sign stage3_study {SCALED} --code {params.code} --outputs {output} --inputs {input}"


rule stage3:
    input:
        parts=expand(BUILD + "/stages/stage3/{study}.json", study=["scores", "contrasts", "index"]),
        stamp=STAMP,
    output:
        directory(RESULTS + "/stage3"),
    params:
        code=code("stage3"),
    shell:
        "{LOSSMAP} collect stage3 {SCALED} --parts {input.parts}"
