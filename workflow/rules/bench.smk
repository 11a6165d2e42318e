# Wall time and memory of every rule that ran at this scale: an explicit target, never refreshed by `paper`.


rule bench:
    input:
        stamp=STAMP,
        environment=["flake.nix", "flake.lock"],
    output:
        directory(RESULTS + "/bench"),
    params:
        code=code("bench"),
    shell:
        "{LOSSMAP} bench {SCALED}"
