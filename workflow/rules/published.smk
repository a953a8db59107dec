"""What the authors published beside their decisions, in place of a second pass over the model.

corrections_from_published <- answers under a correction, decisions -> results/{run}/corrections/…
"""


rule corrections_from_published:
    input:
        files=PLAN.answer_files,
        decisions="results/{run}/decisions/{dataset}/{model}/{precision}/{template}.parquet",
        labels=PLAN.label_tables,
    output:
        "results/{run}/corrections/{dataset}/{model}/{precision}/{template}.parquet",
    log:
        "logs/{run}/corrections_from_published/{dataset}/{model}/{precision}/{template}.log",
    benchmark:
        "results/{run}/benchmarks/corrections_from_published/{dataset}/{model}/{precision}/{template}.tsv"
    conda:
        "../../envs/python.yaml"
    params:
        sources=PLAN.answer_sources,
        labels=PLAN.further_labels,
        resamples=PLAN.config["bootstrap"]["resamples"],
        seed=PLAN.config["bootstrap"]["seed"],
        code=code_digest("corrections_from_published"),
    script:
        "../scripts/corrections_from_published.py"
