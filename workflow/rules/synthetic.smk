# The generated corpus: written, validated, measured by itself, then in one index with real meetings, and answered.
SYNTHETIC = CHAPTERS["synthetic"]
MIXED = bench(SYNTHETIC["index"])
SYNTHETIC_STUDIES = ["scores", "shift", "closure"]


rule synthesise:
    input:
        sorted(str(path) for path in Path("src/lossmap/synthetic").glob("*.yaml")),
    output:
        directory(BUILD + "/synthetic"),
    params:
        stanza=config["scales"][AT.scale]["synthetic"],
        code=code("synthesise"),
    threads: workflow.cores
    benchmark:
        BUILD + "/bench/synthesise.tsv"
    shell:
        "{LOSSMAP} synth generate {SCALED}"


rule validate:
    input:
        BUILD + "/synthetic",
    output:
        BUILD + "/stages/synthetic/validation.json",
    params:
        code=code("validate"),
    benchmark:
        BUILD + "/bench/validate.tsv"
    shell:
        "{LOSSMAP} study validation --chapter synthetic {SCALED}"
        " && {LOSSMAP} sign validate {SCALED} --code {params.code} --outputs {output} --inputs {input}/SHA256SUMS"


rule realism:
    input:
        generated=BUILD + "/synthetic",
        real=expand(BUILD + "/corpora/{key}/{part}", key=SYNTHETIC["beside"], part=layout.CORPUS_FILES),
    output:
        BUILD + "/stages/synthetic/realism.json",
    params:
        chapter=SYNTHETIC,
        code=code("realism"),
    benchmark:
        BUILD + "/bench/realism.tsv"
    shell:
        "{LOSSMAP} study realism --chapter synthetic {SCALED}"
        " && {LOSSMAP} sign realism {SCALED} --code {params.code} --outputs {output}"
        " --inputs {input.generated}/SHA256SUMS {input.real}"


rule router:
    input:
        generated=BUILD + "/synthetic",
        words=["src/lossmap/search/route.yaml", "src/lossmap/studies/heldout.yaml"],
        real=expand(BUILD + "/corpora/{key}/{part}", key=SYNTHETIC["beside"], part=layout.CORPUS_FILES),
    output:
        BUILD + "/stages/synthetic/router.json",
    params:
        chapter=SYNTHETIC,
        code=code("router"),
    shell:
        "{LOSSMAP} study router --chapter synthetic {SCALED}"
        " && {LOSSMAP} sign router {SCALED} --code {params.code} --outputs {output}"
        " --inputs {input.generated}/SHA256SUMS {input.words} {input.real}"


rule answer:
    input:
        generated=BUILD + "/synthetic",
        frames=["src/lossmap/synthetic/frames.yaml", "src/lossmap/search/route.yaml"],
        injected=expand(
            BUILD + "/inject/{index}/{key}/{part}", index=MIXED.index, key=MIXED.documents, part=["manifest.json", "files.jsonl"]
        ),
        index=f"{BUILD}/index/{MIXED.index}/manifest.json",
    output:
        BUILD + "/stages/synthetic/answers.json",
    params:
        chapter=SYNTHETIC,
        code=code("answer"),
    resources:
        engine=1,
    benchmark:
        BUILD + "/bench/answer.tsv"
    shell:
        "{LIVE} study answers --chapter synthetic {SCALED}"
        " && {LOSSMAP} sign answer {SCALED} --code {params.code} --outputs {output}"
        " --inputs {input.generated}/SHA256SUMS {input.frames} {input.injected} {input.index}"


rule synthetic_study:
    input:
        scored("synthetic", SYNTHETIC["benches"], config["stages"]["synthetic"]["arms"]),
        scored("corpora", layout.MAIN, CORPORA["arms"]),
        expand(BUILD + "/corpora/{key}/corpus.json", key=MIXED.documents),
    output:
        BUILD + "/stages/synthetic/{study}.json",
    wildcard_constraints:
        study="|".join(SYNTHETIC_STUDIES),
    params:
        chapter=SYNTHETIC,
        code=code("synthetic_study"),
    shell:
        "{LOSSMAP} study {wildcards.study} --chapter synthetic {SCALED}"
        " && {LOSSMAP} sign synthetic_study {SCALED} --code {params.code} --outputs {output} --inputs {input}"


rule synthetic:
    input:
        parts=expand(BUILD + "/stages/synthetic/{part}.json", part=["validation", "realism", "answers", "router", *SYNTHETIC_STUDIES]),
        stamp=STAMP,
    output:
        directory(RESULTS + "/synthetic"),
    params:
        code=code("synthetic"),
    shell:
        "{LOSSMAP} collect synthetic {SCALED} --parts {input.parts}"
