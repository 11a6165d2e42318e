# Stage 1: what the two legs and their fusion find, over the whole corpus and within the gold meetings.
STAGE1 = config["stages"]["stage1"]
STAGE1_LEGS = sorted({leg for arm in STAGE1["arms"].values() for leg in arm["legs"]})
PINNED = [name for name, arm in STAGE1["arms"].items() if "pin" in arm]
STUDIES = ["corpus", "inject", "index", "deltas", "sensitivity", "peers"]
STAGE1_PARTS = [
    *expand(BUILD + "/stages/stage1/{study}.json", study=STUDIES),
    BUILD + "/stages/stage1/ann.csv.gz",
    *expand(BUILD + "/stages/stage1/pins/{arm}.json", arm=PINNED),
    *expand(BUILD + "/stages/stage1/arms/{arm}/{file}", arm=STAGE1["arms"], file=["metrics.json", "metrics.md"]),
    *expand(
        BUILD + "/stages/stage1/arms/{arm}/{file}",
        arm=[STAGE1["control"]],
        file=["per_query.csv.gz", "run.txt.gz", "qrels.txt.gz"],
    ),
]


rule pin:
    input:
        lambda w: expand(BUILD + "/legs/main/{leg}.npz", leg=STAGE1["arms"][w.arm]["legs"]),
    output:
        BUILD + "/stages/stage1/pins/{arm}.json",
    params:
        stanza=lambda w: STAGE1["arms"][w.arm],
        code=code("pin"),
    resources:
        engine=1,
    benchmark:
        BUILD + "/bench/pin-{arm}.tsv"
    shell:
        "{LIVE} pin {wildcards.arm} --chapter stage1 {SCALED}"
        " && {LOSSMAP} sign pin {SCALED} --code {params.code} --outputs {output} --inputs {input}"


rule measure:
    input:
        legs=lambda w: expand(BUILD + "/legs/main/{leg}.npz", leg=STAGE1["arms"][w.arm]["legs"]),
        exact=expand(BUILD + "/legs/main/{leg}.npz", leg=[leg for leg in STAGE1_LEGS if config["legs"][leg]["kind"] == "exact"]),
        judged=expand(BUILD + "/judge/main/{key}.npz", key=AT.scored),
        cards=expand(BUILD + "/corpora/{key}/corpus.json", key=AT.scored),
        manifest=BUILD + "/index/main/manifest.json",
        chunks=BUILD + "/index/main/chunks.jsonl",
        queries=expand(BUILD + "/corpora/{key}/queries.jsonl", key=AT.scored),
        injected=expand(BUILD + "/inject/main/{key}/manifest.json", key=AT.documents),
    output:
        expand(
            BUILD + "/stages/stage1/arms/{{arm}}/{file}",
            file=["metrics.json", "metrics.md", "per_query.csv.gz", "run.txt.gz", "qrels.txt.gz"],
        ),
    params:
        stanza=lambda w: STAGE1["arms"][w.arm],
        code=code("measure"),
    benchmark:
        BUILD + "/bench/measure-{arm}.tsv"
    shell:
        "{LOSSMAP} measure --arm {wildcards.arm} --chapter stage1 {SCALED} "
        " --out {BUILD}/stages/stage1/arms/{wildcards.arm}"
        " && {LOSSMAP} sign measure {SCALED} --code {params.code} --outputs {output} --inputs {input}"


rule study:
    input:
        expand(BUILD + "/stages/stage1/arms/{arm}/per_query.csv.gz", arm=STAGE1["arms"]),
        expand(BUILD + "/legs/main/{leg}.npz", leg=STAGE1_LEGS),
        expand(BUILD + "/judge/main/{key}.json", key=AT.scored),
        expand(BUILD + "/inject/main/{key}/manifest.json", key=AT.documents),
        expand(BUILD + "/corpora/{key}/{part}", key=AT.scored, part=["corpus.json", "queries.jsonl"]),
        BUILD + "/index/main/manifest.json",
    output:
        BUILD + "/stages/stage1/{study}.json",
    wildcard_constraints:
        study="|".join(STUDIES),
    params:
        contrasts=STAGE1["contrasts"],
        code=code("study"),
    benchmark:
        BUILD + "/bench/study-{study}.tsv"
    shell:
        "{LOSSMAP} study {wildcards.study} --chapter stage1 {SCALED}"
        " && {LOSSMAP} sign study {SCALED} --code {params.code} --outputs {output} --inputs {input}"


rule ann:
    input:
        expand(BUILD + "/legs/main/{leg}.npz", leg=STAGE1_LEGS),
    output:
        BUILD + "/stages/stage1/ann.csv.gz",
    params:
        code=code("study"),
    shell:
        "{LOSSMAP} study ann --chapter stage1 {SCALED}"
        " && {LOSSMAP} sign ann {SCALED} --code {params.code} --outputs {output} --inputs {input}"


rule stage1:
    input:
        parts=STAGE1_PARTS,
        stamp=STAMP,
    output:
        directory(RESULTS + "/stage1"),
    params:
        code=code("stage1"),
    shell:
        "{LOSSMAP} collect stage1 {SCALED} --parts {input.parts}"
