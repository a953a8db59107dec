"""Question tables: one row per (split, question), with a uid that means the same question in every release.

sample_questions  <- a COCO-format annotation of your own
                  -> results/{run}/sampled/{dataset}/: POPE's three splits about its pictures
build_questions   <- a release's files as published (or the demo's)
                  -> results/{run}/questions/{dataset}.parquet, and a report of rows, distinct questions and typos
build_labels      <- a label set's files -> results/{run}/labels/{labels}.parquet, in the same form
"""

if PLAN.sampled_datasets:

    rule sample_questions:
        input:
            annotations=PLAN.annotations,
        output:
            expand(
                "results/{{run}}/sampled/{{dataset}}/{split}.json",
                split=["random", "popular", "adversarial"],
            ),
        log:
            "logs/{run}/sample_questions/{dataset}.log",
        benchmark:
            "results/{run}/benchmarks/sample_questions/{dataset}.tsv"
        wildcard_constraints:
            dataset=PLAN.choice(PLAN.sampled_datasets),
        conda:
            "../../envs/python.yaml"
        params:
            folder="results/{run}/sampled/{dataset}",
            arguments=PLAN.sampling_arguments,
            code=code_digest("sample_questions"),
        shell:
            "python -m readout_audit.stages.sample_questions --annotations {input.annotations:q} {params.arguments}"
            " --folder {params.folder:q} --log {log:q}"


rule build_questions:
    input:
        files=PLAN.question_files,
    output:
        table="results/{run}/questions/{dataset}.parquet",
        report="results/{run}/questions/{dataset}.json",
    log:
        "logs/{run}/build_questions/{dataset}.log",
    benchmark:
        "results/{run}/benchmarks/build_questions/{dataset}.tsv"
    conda:
        "../../envs/python.yaml"
    params:
        arguments=PLAN.question_arguments,
        code=code_digest("build_questions"),
    shell:
        "python -m readout_audit.stages.build_questions --dataset {wildcards.dataset:q}"
        " {params.arguments} --known config/datasets.yaml"
        " --output {output.table:q} --report {output.report:q} --log {log:q}"


rule build_labels:
    input:
        files=PLAN.label_files,
    output:
        table="results/{run}/labels/{labels}.parquet",
        report="results/{run}/labels/{labels}.json",
    log:
        "logs/{run}/build_labels/{labels}.log",
    benchmark:
        "results/{run}/benchmarks/build_labels/{labels}.tsv"
    conda:
        "../../envs/python.yaml"
    params:
        arguments=PLAN.label_arguments,
        code=code_digest("build_questions"),
    shell:
        "python -m readout_audit.stages.build_questions --dataset {wildcards.labels:q}"
        " {params.arguments} --known config/datasets.yaml"
        " --output {output.table:q} --report {output.report:q} --log {log:q}"
