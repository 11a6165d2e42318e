# Times and memory: an explicit target, never refreshed by `paper`.
LATENCY = CHAPTERS.get("stage5", {}).get("latency")


if LATENCY:

    rule latency:
        input:
            expand(BUILD + "/legs/{bench}/{leg}.npz", bench=PINS, leg=["bm25", "hnsw"]),
            stamp=STAMP,
        output:
            BUILD + "/bench/latency.json",
        params:
            spec=LATENCY,
            code=code("latency"),
        resources:
            engine=2,
        shell:
            "{LIVE} latency {SCALED} --bench {PINS} --every {params.spec[every]} --arms {params.spec[arms]}"


rule bench:
    input:
        [BUILD + "/bench/latency.json"] * bool(LATENCY),
        stamp=STAMP,
        environment=["flake.nix", "flake.lock"],
    output:
        directory(RESULTS + "/bench"),
    params:
        code=code("bench"),
    shell:
        "{LOSSMAP} bench {SCALED}"
