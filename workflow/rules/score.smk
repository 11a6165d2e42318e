# One rule an arm of a chapter, over every bench that the chapter asks it on: its params hold its own stanza, so that an
# edited stanza runs one arm again. Included last, when every study has said what it reads.
from lossmap.search import arms


def files_of(stanza):
    """The frozen files that an arm reads: its legs, the exact one beside a graph, and the scores of its re-ranker."""
    graph = any(config["legs"][leg]["kind"] == "hnsw" for leg in stanza["legs"])
    again = [stanza["rerank"]["by"]] if "rerank" in stanza else []
    return sorted({*stanza["legs"], *again, *(["exact"] if graph else [])})


for (STAGE, ARM), WHERE in SCORED.items():
    STANZA = arms.of(AT, STAGE)[ARM]

    rule:
        name:
            f"score_{STAGE}_{ARM}"
        input:
            legs=expand(BUILD + "/legs/{bench}/{leg}.npz", bench=sorted(WHERE), leg=files_of(STANZA)),
            judged=sorted({f"{BUILD}/judge/{at.index}/{key}.npz" for at in map(bench, WHERE) for key in at.scored}),
            manifest=sorted({f"{BUILD}/index/{bench(name).index}/manifest.json" for name in WHERE}),
        output:
            expand(BUILD + "/stages/{chapter}/scored/{bench}/{arm}/{file}", chapter=STAGE, bench=sorted(WHERE), arm=ARM,
                   file=["metrics.json", "metrics.md", "per_query.csv.gz", "run.txt.gz"]),
        params:
            chapter=STAGE,
            arm=ARM,
            benches=sorted(WHERE),
            stanza=STANZA,
            code=code("measure"),
        shell:
            "OPENBLAS_NUM_THREADS=1 {LOSSMAP} score {params.arm} --chapter {params.chapter} {SCALED} --benches {params.benches}"
