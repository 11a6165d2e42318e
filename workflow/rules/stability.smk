# Stability: one corpus chunked and indexed again and again, so that every later difference has a band to stand beside.
STABILITY = CHAPTERS["stability"]
SHUFFLED = [*STABILITY["broken"], *STABILITY["total"]]
OVER_GRAPH = [name for name, arm in config["stages"]["stability"]["arms"].items() if "hnsw" in arm["legs"]]
EXACT_ARMS = [name for name in config["stages"]["stability"]["arms"] if name not in OVER_GRAPH]


rule reorder:
    input:
        scored("stability", [STABILITY["control"], STABILITY["splitter"], *SHUFFLED], EXACT_ARMS),
        expand(BUILD + "/index/{index}/{part}", index=[STABILITY["control"], STABILITY["splitter"], *SHUFFLED],
               part=["manifest.json", "chunks.jsonl"]),
        [f"{BUILD}/inject/{index}/{key}/manifest.json"
         for index in (STABILITY["control"], *STABILITY["broken"][:1]) for key in bench(index).documents],
    output:
        BUILD + "/stages/stability/order.json",
    params:
        chapter=STABILITY,
        code=code("reorder"),
    shell:
        "{LOSSMAP} study order --chapter stability {SCALED}"
        " && {LOSSMAP} sign reorder {SCALED} --code {params.code} --outputs {output} --inputs {input}"


rule regraph:
    input:
        scored("stability", STABILITY["graphs"], OVER_GRAPH),
        scored("stability", STABILITY["control"], EXACT_ARMS),
        expand(BUILD + "/index/{index}/manifest.json", index=STABILITY["graphs"]),
    output:
        BUILD + "/stages/stability/graph.json",
    params:
        chapter=STABILITY,
        code=code("regraph"),
    shell:
        "{LOSSMAP} study graph --chapter stability {SCALED}"
        " && {LOSSMAP} sign regraph {SCALED} --code {params.code} --outputs {output} --inputs {input}"


rule stability:
    input:
        parts=expand(BUILD + "/stages/stability/{study}.json", study=["order", "graph"]),
        stamp=STAMP,
    output:
        directory(RESULTS + "/stability"),
    params:
        code=code("stability"),
    shell:
        "{LOSSMAP} collect stability {SCALED} --parts {input.parts}"
