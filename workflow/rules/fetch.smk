"""Everything that comes from outside, once, into resources/fetched/ (shared by runs).

These rules alone may use the network; they run where Snakemake runs, never on a compute node. The mirror
folder of the configuration is looked in first; with it nothing is asked of the network.

fetch_file     -> resources/fetched/{path}: a question, label or published file, checked against its sha256
fetch_images   -> results/{run}/images/{images}.json: which pictures are there, and which are not and why
fetch_model    -> resources/fetched/models/{model}.json: a checkpoint's files at one locked commit
"""


localrules:
    fetch_file,
    fetch_images,
    fetch_model,


rule fetch_file:
    output:
        "resources/fetched/{path}",
    log:
        "logs/fetched/{path}.log",
    benchmark:
        "results/benchmarks/fetch/{path}.tsv"
    retries: 2
    conda:
        "../../envs/python.yaml"
    params:
        source=PLAN.fetch_arguments,
        code=code_digest("fetch_file"),
    shell:
        "python -m readout_audit.stages.fetch_file {params.source}"
        " --lock resources/fetched/lock.json --output {output:q} --log {log:q}"


rule fetch_images:
    input:
        questions=PLAN.image_questions,
    output:
        "results/{run}/images/{images}.json",
    log:
        "logs/{run}/fetch_images/{images}.log",
    benchmark:
        "results/{run}/benchmarks/fetch_images/{images}.tsv"
    retries: 2
    conda:
        "../../envs/python.yaml"
    params:
        source=PLAN.image_arguments,
        code=code_digest("fetch_images"),
    shell:
        "python -m readout_audit.stages.fetch_images --questions {input.questions:q} {params.source}"
        " --output {output:q} --log {log:q}"


rule fetch_model:
    output:
        "resources/fetched/models/{model}.json",
    log:
        "logs/fetched/models/{model}.log",
    benchmark:
        "results/benchmarks/fetch_model/{model}.tsv"
    retries: 2
    conda:
        "../../envs/python.yaml"
    params:
        source=PLAN.model_arguments,
        code=code_digest("fetch_model"),
    shell:
        "python -m readout_audit.stages.fetch_model --model {wildcards.model:q} {params.source}"
        " --lock resources/fetched/lock.json --folder resources/fetched/models/{wildcards.model:q}"
        " --output {output:q} --log {log:q}"
