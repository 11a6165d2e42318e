# Licence-gated fetch and normalisation. A corpus that cannot be had is recorded; strict makes it an error.


rule obtain:
    output:
        "build/corpora/{key}.json",
    params:
        stanza=lambda w: layout.stanza(AT, "corpora.yaml", "corpora")[w.key],
        strict="--strict" if config["strict"] else "",
        noncommercial="--accept-noncommercial" if config["accept_noncommercial"] else "",
        code=code("obtain"),
    shell:
        "{LOSSMAP} corpora obtain {wildcards.key} {params.strict} {params.noncommercial} --out {output}"


rule normalise:
    input:
        "build/corpora/{key}.json",
    output:
        expand(BUILD + "/corpora/{{key}}/{part}", part=layout.CORPUS_FILES),
    params:
        selection=config["scales"][AT.scale]["per_domain"] if AT.scale in config["scales"] else None,
        code=code("normalise"),
    benchmark:
        BUILD + "/bench/normalise-{key}.tsv"
    shell:
        "{LOSSMAP} corpora normalise {wildcards.key} {SCALED}"
