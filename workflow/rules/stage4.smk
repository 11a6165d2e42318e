# Stage 4: the index of Stage 3 asked again with the router in the loop, its digests as a choice of files, overviews that
# cover their scope, a filter on the speaker whom a question names, and where the date of a recording comes from.
STAGE4 = CHAPTERS["stage4"]
ROUTED = [f"{STAGE4['index']}/{key}" for key in STAGE4["corpora"]]
SPOKEN = [f"{STAGE4['speaker']}/{key}" for key in STAGE4["corpora"]]
AGAIN = scored("stage4", ROUTED, "rrf30-again")


rule routed:
    input:
        AGAIN,
        expand(BUILD + "/legs/{bench}/{leg}.npz", bench=ROUTED, leg=["digest-bm25", "digest-exact"]),
        "src/lossmap/search/route.yaml",
    output:
        BUILD + "/stages/stage4/routed.json",
    params:
        chapter=STAGE4,
        code=code("routed"),
    shell:
        "{LOSSMAP} study routed --chapter stage4 {SCALED}"
        " && {LOSSMAP} sign routed {SCALED} --code {params.code} --outputs {output} --inputs {input}"


rule control:
    input:
        AGAIN,
        scored("stage3", ROUTED, "rrf30-exact"),
    output:
        BUILD + "/stages/stage4/control.json",
    params:
        chapter=STAGE4,
        code=code("control"),
    shell:
        "{LOSSMAP} study control --chapter stage4 {SCALED}"
        " && {LOSSMAP} sign control {SCALED} --code {params.code} --outputs {output} --inputs {input}"


rule coverage:
    input:
        generated=BUILD + "/synthetic",
        injected=expand(BUILD + "/inject/{index}/{key}/{part}", index=STAGE4["index"], key=STAGE4["coverage"],
                        part=["manifest.json", "files.jsonl"]),
        index=expand(BUILD + "/index/{index}/{part}", index=STAGE4["index"], part=["manifest.json", "digests.jsonl"]),
    output:
        BUILD + "/stages/stage4/coverage.json",
    params:
        chapter=STAGE4,
        code=code("coverage"),
    resources:
        engine=1,
    shell:
        "{LIVE} study coverage --chapter stage4 {SCALED}"
        " && {LOSSMAP} sign coverage {SCALED} --code {params.code} --outputs {output}"
        " --inputs {input.generated}/SHA256SUMS {input.injected} {input.index}"


rule speaker:
    input:
        scored("stage4", SPOKEN, [*EXACT_ARMS, *(f"{arm}-speaker" for arm in EXACT_ARMS)]),
        [f"{BUILD}/judge/{STAGE4['speaker']}/{key}.npz" for key in STAGE4["corpora"]],
        expand(BUILD + "/index/{index}/{part}", index=STAGE4["speaker"], part=["manifest.json", "chunks.jsonl"]),
        expand(BUILD + "/inject/{index}/{key}/{part}", index=STAGE4["speaker"], key=bench(STAGE4["speaker"]).documents,
               part=["files.jsonl", "turns.jsonl"]),
    output:
        BUILD + "/stages/stage4/speaker.json",
    params:
        chapter=STAGE4,
        code=code("speaker"),
    shell:
        "{LOSSMAP} study speaker --chapter stage4 {SCALED}"
        " && {LOSSMAP} sign speaker {SCALED} --code {params.code} --outputs {output} --inputs {input}"


rule dates:
    input:
        "src/lossmap/studies/dated.yaml",
    output:
        BUILD + "/stages/stage4/dates.json",
    params:
        code=code("dates"),
    shell:
        "{LOSSMAP} study dates --chapter stage4 {SCALED}"
        " && {LOSSMAP} sign dates {SCALED} --code {params.code} --outputs {output} --inputs {input}"


rule stage4:
    input:
        parts=expand(BUILD + "/stages/stage4/{study}.json", study=["routed", "control", "coverage", "speaker", "dates"]),
        stamp=STAMP,
    output:
        directory(RESULTS + "/stage4"),
    params:
        code=code("stage4"),
    shell:
        "{LOSSMAP} collect stage4 {SCALED} --parts {input.parts}"
