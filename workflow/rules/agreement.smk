# Agreement: whether corpora rank the same changes the same way, on the seed's printed arms and on ours, and what a gate over
# all of them lets through.
AGREEMENT = CHAPTERS["agreement"]
AGREED = [path for family in AGREEMENT["families"] for path in of_family(family, ["metrics.json", "per_query.csv.gz"], "agreement")]
OURS = [path for family in ["fusion", *STAGED] for path in of_family(family, ["metrics.json", "per_query.csv.gz"])]
COMPARED = {"seed": ["paper/published.yaml"], "ours": OURS, "matrix": AGREED, "adoption": [*OURS, *AGREED]}


rule agreement_study:
    input:
        lambda w: COMPARED[w.study],
    output:
        BUILD + "/stages/agreement/{study}.json",
    wildcard_constraints:
        study="|".join(COMPARED),
    params:
        chapter=AGREEMENT,
        families={name: plan.family(AT, name) for name in {**STAGE5["families"], **AGREEMENT["families"]}},
        gate=layout.stanza(AT, "gates.yaml", "stage5"),
        code=code("agreement_study"),
    benchmark:
        BUILD + "/bench/agreement-{study}.tsv"
    shell:
        "OPENBLAS_NUM_THREADS=1 {LOSSMAP} study {wildcards.study} --chapter agreement {SCALED}"
        " && {LOSSMAP} sign agreement_study {SCALED} --code {params.code} --outputs {output} --inputs {input}"


rule agreement:
    input:
        parts=expand(BUILD + "/stages/agreement/{study}.json", study=COMPARED),
        stamp=STAMP,
    output:
        directory(RESULTS + "/agreement"),
    params:
        code=code("agreement"),
    shell:
        "{LOSSMAP} collect agreement {SCALED} --parts {input.parts}"
