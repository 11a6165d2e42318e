# The cross-encoder that the chapter trains, and what each re-ranker is worth. Only the full scale trains: smaller ones
# read the committed fixture. A model in the cache is taken as it is; torch is installed where one must be trained.
QUALITY = config["scales"][AT.scale]["quality"]
RERANKERS = {name: layout.stanza(AT, "rerankers.yaml", name) for name in QUALITY["rerankers"]}
TRAINED = [name for name, stanza in RERANKERS.items() if stanza["kind"] == "trained"]


def taught(name):
    """What a recipe reads: legs, chunks, judgements, queries and gold of its corpus."""
    data = RERANKERS[name]["data"]
    index, corpus = data["index"], data["corpus"]
    return [
        *(f"{BUILD}/legs/{index}/{leg}.npz" for leg in ("bm25", "exact")),
        f"{BUILD}/index/{index}/chunks.jsonl",
        f"{BUILD}/judge/{index}/{corpus}.npz",
        f"{BUILD}/inject/{index}/{corpus}/manifest.json",
        *(f"{BUILD}/corpora/{corpus}/{part}" for part in ("queries.jsonl", "gold.jsonl", "corpus.json")),
    ]


if TRAINED:

    rule train:
        input:
            taught(TRAINED[0]),
        output:
            BUILD + "/stages/stage5/trained.json",
        params:
            name=TRAINED[0],
            stanza=RERANKERS[TRAINED[0]],
            code=code("train"),
        benchmark:
            BUILD + "/bench/train.tsv"
        shell:
            "({LOSSMAP} train {params.name} --ready {SCALED} || {{ [ $? -eq 10 ] && ./run hub; }})"
            # Blocks that the allocator keeps instead of returning them are a quarter of the time of training.
            " && MALLOC_TRIM_THRESHOLD_=8589934592 MALLOC_TOP_PAD_=268435456 MALLOC_MMAP_THRESHOLD_=4294967296"
            " {LOSSMAP} train {params.name} {SCALED}"
            " && {LOSSMAP} sign train {SCALED} --code {params.code} --outputs {output} --inputs {input}"


rule reranker_quality:
    input:
        [BUILD + "/stages/stage5/trained.json"] * bool(TRAINED),
        expand(BUILD + "/legs/{index}/bm25.npz", index=QUALITY["benches"]),
        expand(BUILD + "/index/{index}/chunks.jsonl", index=QUALITY["benches"]),
        [f"{BUILD}/judge/{index}/{key}.npz" for index in QUALITY["benches"] for key in bench(index).scored],
        [f"{BUILD}/inject/{index}/{key}/manifest.json" for index in QUALITY["benches"] for key in bench(index).documents],
    output:
        BUILD + "/stages/stage5/reranker_quality.json",
    params:
        quality=QUALITY,
        stanzas=RERANKERS,
        code=code("reranker_quality"),
    benchmark:
        BUILD + "/bench/reranker_quality.tsv"
    shell:
        "{LOSSMAP} study reranker_quality --chapter stage5 {SCALED}"
        " && {LOSSMAP} sign reranker_quality {SCALED} --code {params.code} --outputs {output} --inputs {input}"
