# Licence-gated fetch and normalisation. A corpus that cannot be had is recorded; strict makes it an error.


wildcard_constraints:
    key="[a-z0-9.-]+",


def documents_of(key):
    """The corpus whose meetings the gold or the words of ``key`` belong to, where that is another one."""
    stanza = layout.stanza(AT, "corpora.yaml", "corpora")[key.partition(".")[0]]
    return [stanza["documents"]] if "documents" in stanza else []


def tier(key):
    return layout.stanza(AT, "corpora.yaml", "corpora")[key]["tier"]


def again(key):
    """What could not be had the last time is tried again: no second run may rely on it."""
    record = Path(f"build/corpora/{key}.json")
    had = not record.exists() or read_json(record).get("obtained", True)
    return "" if had else uuid.uuid4().hex


rule obtain:
    output:
        "build/corpora/{key}.json",
    params:
        stanza=lambda w: layout.stanza(AT, "corpora.yaml", "corpora")[w.key],
        lock=lambda w: digest(layout.stanza(AT, "corpora.lock", "corpora").get(w.key, {})),
        strict="--strict" if config["strict"] else "",
        # Asked of tier B alone: to accept its terms changes nothing about any other corpus.
        noncommercial=lambda w: "--accept-noncommercial" if config["accept_noncommercial"] and tier(w.key) != "A" else "",
        again=lambda w: again(w.key),
        code=code("obtain"),
    shell:
        "{LOSSMAP} corpora obtain {wildcards.key} {params.strict} {params.noncommercial} --out {output}"


def raw(key):
    """What a corpus is normalised from: the record of its fetch, or the folder that a rule generated."""
    return f"{BUILD}/synthetic" if registry.query_set(key).generated else f"build/corpora/{key.partition('.')[0]}.json"


rule normalise:
    input:
        lambda w: raw(w.key),
        lambda w: [f"{BUILD}/corpora/{other}/{part}" for other in documents_of(w.key) for part in layout.CORPUS_FILES],
    output:
        expand(BUILD + "/corpora/{{key}}/{part}", part=layout.CORPUS_FILES),
    params:
        selection=lambda w: config["scales"][AT.scale]["synthetic" if registry.query_set(w.key).generated else "per_domain"],
        code=code("normalise"),
    benchmark:
        BUILD + "/bench/normalise-{key}.tsv"
    shell:
        "{LOSSMAP} corpora normalise {wildcards.key} {SCALED}"


rule timings:
    input:
        lambda w: f"build/corpora/{config['timings'][w.rule]}.json",
        lambda w: [
            f"{BUILD}/corpora/{key}/{part}"
            for key in documents_of(config["timings"][w.rule])
            for part in ("meetings.jsonl", "corpus.json")
        ],
    output:
        BUILD + "/timings/{rule}.jsonl",
        BUILD + "/timings/{rule}.json",
    params:
        code=code("timings"),
    benchmark:
        BUILD + "/bench/timings-{rule}.tsv"
    shell:
        "{LOSSMAP} timings {wildcards.rule} {SCALED}"
