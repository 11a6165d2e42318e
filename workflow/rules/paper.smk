# Results -> claims -> page and paper. At scale `shipped` these rules are all there is, and committed results are sources.
STAGES = list(CHAPTERS) if AT.scale != "shipped" else [path.parent.name for path in sorted(Path(RESULTS).glob("*/ledger.json"))]
TEXT = [str(path) for path in sorted(Path("paper").rglob("*")) if path.is_file()]


if AT.scale != "shipped":

    rule claims:
        input:
            expand(RESULTS + "/{stage}", stage=STAGES),
            "paper/claims.yaml",
            stamp=STAMP,
        output:
            RESULTS + "/claims.json",
            RESULTS + "/LEDGER.json",
        params:
            code=code("claims"),
        shell:
            "{LOSSMAP} claims {SCALED}"


rule pdf:
    input:
        RESULTS + "/claims.json",
        expand(RESULTS + "/{stage}", stage=STAGES),
        TEXT,
    output:
        BUILD + "/paper.pdf",
    params:
        code=code("pdf"),
    shell:
        "{LOSSMAP} paper {SCALED}"


rule site:
    input:
        RESULTS + "/claims.json",
        expand(RESULTS + "/{stage}", stage=STAGES),
        TEXT,
    output:
        BUILD + "/site/index.html",
    params:
        code=code("site"),
    shell:
        "{LOSSMAP} site {SCALED}"


rule paper:
    input:
        get_final_output(),
