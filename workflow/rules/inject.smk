# Normalised corpora -> PostgreSQL -> chunks -> vectors -> a settled index.


wildcard_constraints:
    index="[a-z0-9-]+",
    bench="[a-z0-9-]+(/[a-z0-9.-]+)?",
    leg="[a-z0-9-]+",


def bench(name):
    """The layout of a bench: an index, or an index and one corpus whose queries are asked over it."""
    return layout.load(AT.scale, name)


def encoder(name):
    """The stanza of the encoder of a bench."""
    return layout.stanza(AT, "models.yaml", bench(name).model)


def digests_of(index):
    """The digest plane of an index that holds one."""
    parts = ["digests.jsonl", "digesting.json", "digests.npz"] if bench(index).digests is not None else []
    return expand(BUILD + "/index/{index}/{part}", index=index, part=parts)


rule inject:
    input:
        expand(BUILD + "/corpora/{{key}}/{part}", part=layout.CORPUS_FILES),
        lambda w: expand(BUILD + "/timings/{rule}.jsonl", rule=bench(w.index).stanza.get("timings", [])),
    output:
        expand(BUILD + "/inject/{{index}}/{{key}}/{part}", part=["manifest.json", "files.jsonl", "turns.jsonl"]),
    params:
        only=lambda w: bench(w.index).stanza.get("only"),
        shuffle=lambda w: bench(w.index).stanza.get("shuffle"),
        code=code("inject"),
    resources:
        engine=1,
    benchmark:
        BUILD + "/bench/inject-{index}-{key}.tsv"
    shell:
        "{LIVE} inject {wildcards.key} {SCALED} --bench {wildcards.index}"


rule chunk:
    input:
        lambda w: expand(BUILD + "/inject/{index}/{key}/files.jsonl", index=w.index, key=bench(w.index).documents),
    output:
        BUILD + "/index/{index}/chunks.jsonl",
        BUILD + "/index/{index}/chunking.json",
    params:
        order=lambda w: bench(w.index).order,
        splitter=lambda w: bench(w.index).splitter,
        code=code("chunk"),
    resources:
        engine=1,
    benchmark:
        BUILD + "/bench/chunk-{index}.tsv"
    shell:
        "{LIVE} chunk {SCALED} --bench {wildcards.index}"


rule digest:
    input:
        lambda w: expand(BUILD + "/inject/{index}/{key}/files.jsonl", index=w.index, key=bench(w.index).documents),
    output:
        BUILD + "/index/{index}/digests.jsonl",
        BUILD + "/index/{index}/digesting.json",
    params:
        code=code("digest"),
    resources:
        engine=1,
    benchmark:
        BUILD + "/bench/digest-{index}.tsv"
    shell:
        "{LIVE} digest {SCALED} --bench {wildcards.index}"


rule encode_passages:
    input:
        BUILD + "/index/{index}/chunks.jsonl",
    output:
        BUILD + "/index/{index}/passages.npz",
    params:
        model=lambda w: encoder(w.index),
        header=lambda w: bench(w.index).header,
        window=lambda w: bench(w.index).window,
        code=code("encode"),
    threads: workflow.cores
    benchmark:
        BUILD + "/bench/encode-{index}.tsv"
    shell:
        "{LOSSMAP} encode passages {SCALED} --bench {wildcards.index}"


rule encode_digests:
    input:
        BUILD + "/index/{index}/digests.jsonl",
    output:
        BUILD + "/index/{index}/digests.npz",
    params:
        model=lambda w: encoder(w.index),
        header=lambda w: bench(w.index).digests,
        window=lambda w: bench(w.index).window,
        code=code("encode"),
    threads: workflow.cores
    shell:
        "{LOSSMAP} encode digests {SCALED} --bench {wildcards.index}"


rule encode_queries:
    input:
        lambda w: expand(BUILD + "/corpora/{key}/queries.jsonl", key=bench(w.bench).scored),
    output:
        BUILD + "/queries/{bench}.npz",
    params:
        model=lambda w: encoder(w.bench),
        window=lambda w: bench(w.bench).window,
        code=code("encode"),
    threads: workflow.cores
    shell:
        "{LOSSMAP} encode queries {SCALED} --bench {wildcards.bench}"


rule index:
    input:
        BUILD + "/index/{index}/chunks.jsonl",
        BUILD + "/index/{index}/chunking.json",
        BUILD + "/index/{index}/passages.npz",
        lambda w: digests_of(w.index),
        "flake.nix",
        "flake.lock",
    output:
        BUILD + "/index/{index}/manifest.json",
    params:
        graph=lambda w: bench(w.index).graph,
        varied=lambda w: [bench(w.index).writing, bench(w.index).vectors],
        code=code("index"),
    resources:
        engine=1,
    benchmark:
        BUILD + "/bench/index-{index}.tsv"
    shell:
        "{LIVE} index {SCALED} --bench {wildcards.index}"


rule freeze:
    input:
        lambda w: expand(
            BUILD + "/index/{index}/{part}",
            index=bench(w.bench).index,
            part=["manifest.json", "chunks.jsonl", "passages.npz"],
        ),
        lambda w: digests_of(bench(w.bench).index) if config["legs"][w.leg].get("plane") == "digest" else [],
        BUILD + "/queries/{bench}.npz",
        lambda w: expand(BUILD + "/corpora/{key}/gold.jsonl", key=bench(w.bench).scored),
    output:
        BUILD + "/legs/{bench}/{leg}.npz",
    wildcard_constraints:
        leg="|".join(config["legs"]),
    params:
        stanza=lambda w: config["legs"][w.leg],
        code=code("freeze"),
    resources:
        engine=1,
    benchmark:
        BUILD + "/bench/freeze-{bench}-{leg}.tsv"
    shell:
        "{LIVE} freeze {wildcards.leg} {SCALED} --bench {wildcards.bench}"


rule judge:
    input:
        BUILD + "/index/{index}/chunks.jsonl",
        lambda w: f"{BUILD}/inject/{w.index}/{(documents_of(w.key) or [w.key])[0]}/turns.jsonl",
        BUILD + "/corpora/{key}/gold.jsonl",
        BUILD + "/corpora/{key}/queries.jsonl",
    output:
        expand(BUILD + "/judge/{{index}}/{{key}}{suffix}", suffix=[".npz", ".json", ".qrels.gz"]),
    params:
        code=code("judge"),
    benchmark:
        BUILD + "/bench/judge-{index}-{key}.tsv"
    shell:
        "{LOSSMAP} judge {wildcards.key} {SCALED} --bench {wildcards.index}"
