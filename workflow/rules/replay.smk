# Replay: the memory pipeline, live and frozen. The lexical side is frozen once for all models; one rule a model and task.
from lossmap.memory import lmeb, tasks

REPLAY = CHAPTERS["replay"]
READ_AGAIN = ["task.json", "frozen.npz", "values.npz"]
REPLAY_FILES = [*READ_AGAIN, "queries.csv.gz", "dump.csv.gz"]
REPLAY_STUDIES = [
    "tasks", "identities", "stages", "weights", "interactions", "movement", "signals", "populations", "gate",
    "reservation", "starvation", "floors", "arms", "reversal", "evidence", "density", "selector",
]  # fmt: skip


wildcard_constraints:
    model="[A-Za-z0-9.-]+",
    task="[a-z0-9-]+",


def task_of(name):
    """A task's stanza in tasks.yaml."""
    return layout.stanza(AT, "tasks.yaml", name)


def remembered(name):
    """The normalised corpora of a task; none where its data are not of this scale."""
    return expand(BUILD + "/corpora/{key}/{part}", key=tasks.keys(task_of(name)), part=layout.CORPUS_FILES)


def held(name):
    """The folder that a task of LMEB is read from: one that is named later must not find the task given up."""
    return isinstance(task_of(name)["documents"], dict) and os.environ.get(lmeb.VARIABLE, "")


rule lexical:
    input:
        lambda w: remembered(w.task),
    output:
        directory(BUILD + "/memory/lexical/{task}"),
    params:
        stanza=lambda w: task_of(w.task),
        held=lambda w: held(w.task),
        code=code("lexical"),
    benchmark:
        BUILD + "/bench/lexical-{task}.tsv"
    shell:
        "{LOSSMAP} lexical {wildcards.task} {SCALED}"


rule replay_task:
    input:
        lambda w: remembered(w.task),
        lambda w: f"{BUILD}/memory/lexical/{task_of(w.task).get('lexical', w.task)}",
    output:
        expand(BUILD + "/replay/{{model}}/{{task}}/{file}", file=REPLAY_FILES),
    params:
        stanza=lambda w: task_of(w.task),
        held=lambda w: held(w.task),
        model=lambda w: layout.stanza(AT, "models.yaml", w.model),
        code=code("replay_task"),
    benchmark:
        BUILD + "/bench/replay-{model}-{task}.tsv"
    shell:
        "OPENBLAS_NUM_THREADS=1 {LOSSMAP} replay --model {wildcards.model} --task {wildcards.task} {SCALED}"


rule replay_study:
    input:
        expand(BUILD + "/replay/{model}/{task}/{file}", model=REPLAY["models"], task=REPLAY["tasks"], file=READ_AGAIN),
    output:
        BUILD + "/stages/replay/{study}.json",
    wildcard_constraints:
        study="|".join(REPLAY_STUDIES),
    params:
        chapter=REPLAY,
        code=code("replay_study"),
    benchmark:
        BUILD + "/bench/replay-{study}.tsv"
    shell:
        "OPENBLAS_NUM_THREADS=1 {LOSSMAP} study {wildcards.study} --chapter replay {SCALED}"
        " && {LOSSMAP} sign replay_study {SCALED} --code {params.code} --outputs {output} --inputs {input}"


rule replay:
    input:
        parts=expand(BUILD + "/stages/replay/{study}.json", study=REPLAY_STUDIES),
        stamp=STAMP,
    output:
        directory(RESULTS + "/replay"),
    params:
        code=code("replay"),
    shell:
        "{LOSSMAP} collect replay {SCALED} --parts {input.parts}"
