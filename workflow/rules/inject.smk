# Normalised corpora -> PostgreSQL -> chunks -> vectors -> a settled index.


rule inject:
    input:
        expand(BUILD + "/corpora/{{key}}/{part}", part=layout.CORPUS_FILES),
    output:
        expand(BUILD + "/inject/{{key}}/{part}", part=["manifest.json", "files.jsonl", "turns.jsonl"]),
    params:
        code=code("inject"),
    resources:
        engine=1,
    benchmark:
        BUILD + "/bench/inject-{key}.tsv"
    shell:
        "{LIVE} inject {wildcards.key} {SCALED}"


rule chunk:
    input:
        expand(BUILD + "/inject/{key}/files.jsonl", key=AT.corpora),
    output:
        BUILD + "/index/chunks.jsonl",
        BUILD + "/index/chunking.json",
    params:
        code=code("chunk"),
    resources:
        engine=1,
    benchmark:
        BUILD + "/bench/chunk.tsv"
    shell:
        "{LIVE} chunk {SCALED}"


rule encode:
    input:
        BUILD + "/index/chunks.jsonl",
        expand(BUILD + "/corpora/{key}/queries.jsonl", key=AT.corpora),
    output:
        BUILD + "/index/passages.npz",
        BUILD + "/index/queries.npz",
    params:
        model=layout.stanza(AT, "models.yaml", config["model"]),
        header=config["header"],
        code=code("encode"),
    threads: workflow.cores
    benchmark:
        BUILD + "/bench/encode.tsv"
    shell:
        "{LOSSMAP} encode {SCALED}"


rule index:
    input:
        BUILD + "/index/chunks.jsonl",
        BUILD + "/index/chunking.json",
        BUILD + "/index/passages.npz",
        "flake.nix",
        "flake.lock",
    output:
        BUILD + "/index/manifest.json",
    params:
        code=code("index"),
    resources:
        engine=1,
    benchmark:
        BUILD + "/bench/index.tsv"
    shell:
        "{LIVE} index {SCALED}"


rule freeze:
    input:
        BUILD + "/index/manifest.json",
        BUILD + "/index/queries.npz",
        expand(BUILD + "/corpora/{key}/gold.jsonl", key=AT.corpora),
    output:
        BUILD + "/legs/{leg}.npz",
    params:
        stanza=lambda w: config["legs"][w.leg],
        code=code("freeze"),
    resources:
        engine=1,
    benchmark:
        BUILD + "/bench/freeze-{leg}.tsv"
    shell:
        "{LIVE} freeze {wildcards.leg} {SCALED}"


rule judge:
    input:
        BUILD + "/index/chunks.jsonl",
        BUILD + "/inject/{key}/turns.jsonl",
        BUILD + "/corpora/{key}/gold.jsonl",
        BUILD + "/corpora/{key}/queries.jsonl",
    output:
        expand(BUILD + "/judge/{{key}}{suffix}", suffix=[".npz", ".json", ".qrels.gz"]),
    params:
        code=code("judge"),
    benchmark:
        BUILD + "/bench/judge-{key}.tsv"
    shell:
        "{LOSSMAP} judge {wildcards.key} {SCALED}"
