# Corpora: the same arms over every scored corpus, each on the index that holds its documents; never pooled.
CORPORA = config["stages"]["corpora"]
CHAPTER = CHAPTERS["corpora"]
CORPORA_STUDIES = ["scores", "agreement", "timings", "stats", "licences", "ingest", "languages"]
READ = sorted(
    {key for name in CHAPTER["benches"] for key in [*bench(name).documents, *bench(name).scored]}
    | {place.partition("/")[2] for place in CHAPTER["ingest"]}
)
MEMBERS = CHAPTERS.get("composition", {}).get("indexes", {"domains": []})
MEMBER_INDEXES = [MEMBERS[name] for name in ("whole", "deduplicated") if name in MEMBERS] + MEMBERS["domains"]


# Which benches a chapter asks an arm on, gathered from what its studies read; rules/score.smk makes a rule of each arm.
SCORED = {}


def scored(chapter, benches, arms, files=("metrics.json", "per_query.csv.gz")):
    """What studies read of the arms of a chapter."""
    benches, arms = ([name] if isinstance(name, str) else list(name) for name in (benches, arms))
    for arm in arms:
        SCORED.setdefault((chapter, arm), set()).update(benches)
    return expand(BUILD + "/stages/{chapter}/scored/{bench}/{arm}/{file}",
                  chapter=chapter, bench=benches, arm=arms, file=files)  # fmt: skip


rule corpora_study:
    input:
        scored("corpora", CHAPTER["benches"], CORPORA["arms"]),
        [f"{BUILD}/judge/{bench(name).index}/{key}.npz" for name in CHAPTER["benches"] for key in bench(name).scored],
        expand(BUILD + "/index/{index}/manifest.json", index=sorted({bench(name).index for name in CHAPTER["benches"]})),
        expand(BUILD + "/timings/{rule}.json", rule=CHAPTER.get("timings", {}).get("rules", [])),
        expand(BUILD + "/corpora/{key}/corpus.json", key=READ),
        expand(BUILD + "/inject/{place}/{part}", place=CHAPTER["ingest"], part=["manifest.json", "files.jsonl", "turns.jsonl"]),
    output:
        BUILD + "/stages/corpora/{study}.json",
    wildcard_constraints:
        study="|".join(CORPORA_STUDIES),
    params:
        chapter=CHAPTER,
        code=code("corpora_study"),
    shell:
        "{LOSSMAP} study {wildcards.study} --chapter corpora {SCALED}"
        " && {LOSSMAP} sign corpora_study {SCALED} --code {params.code} --outputs {output} --inputs {input}"


rule corpora:
    input:
        parts=expand(BUILD + "/stages/corpora/{study}.json", study=CORPORA_STUDIES),
        stamp=STAMP,
    output:
        directory(RESULTS + "/corpora"),
    params:
        code=code("corpora"),
    shell:
        "{LOSSMAP} collect corpora {SCALED} --parts {input.parts}"


rule compose:
    input:
        expand(BUILD + "/corpora/{key}/{part}", key=AT.documents, part=layout.CORPUS_FILES),
    output:
        BUILD + "/stages/composition/composition.json",
    params:
        code=code("compose"),
    benchmark:
        BUILD + "/bench/compose.tsv"
    shell:
        "{LOSSMAP} study composition --chapter composition {SCALED}"
        " && {LOSSMAP} sign compose {SCALED} --code {params.code} --outputs {output} --inputs {input}"


rule members:
    input:
        scored("corpora", MEMBER_INDEXES, CORPORA["arms"]),
        lambda w: [f"{BUILD}/judge/{name}/{key}.qrels.gz" for name in MEMBER_INDEXES for key in bench(name).scored],
    output:
        BUILD + "/stages/composition/hybrid.json",
    params:
        indexes=MEMBERS,
        code=code("members"),
    shell:
        "{LOSSMAP} study hybrid --chapter composition {SCALED}"
        " && {LOSSMAP} sign members {SCALED} --code {params.code} --outputs {output} --inputs {input}"


rule composition:
    input:
        parts=expand(BUILD + "/stages/composition/{study}.json", study=["composition", "hybrid"]),
        stamp=STAMP,
    output:
        directory(RESULTS + "/composition"),
    params:
        code=code("composition"),
    shell:
        "{LOSSMAP} collect composition {SCALED} --parts {input.parts}"
