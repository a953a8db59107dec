"""Paired decisions of two readouts, and the exact algebra of the gap between their scores.

measure_gap      <- decisions              -> results/{run}/transitions/…, results/{run}/gap/…
compare_splits   <- decisions              -> results/{run}/agreement/…: do the splits answer common questions alike?
relabel          <- decisions, label sets  -> results/{run}/relabelled/…: the gap under corrected labels
"""


rule measure_gap:
    input:
        decisions="results/{run}/decisions/{dataset}/{model}/{precision}/{template}.parquet",
        labels=PLAN.label_tables,
    output:
        transitions="results/{run}/transitions/{dataset}/{model}/{precision}/{template}.parquet",
        gap="results/{run}/gap/{dataset}/{model}/{precision}/{template}.parquet",
    log:
        "logs/{run}/measure_gap/{dataset}/{model}/{precision}/{template}.log",
    benchmark:
        "results/{run}/benchmarks/measure_gap/{dataset}/{model}/{precision}/{template}.tsv"
    conda:
        "../../envs/python.yaml"
    params:
        labels=PLAN.further_labels,
        resamples=PLAN.config["bootstrap"]["resamples"],
        seed=PLAN.config["bootstrap"]["seed"],
        code=code_digest("measure_gap"),
    script:
        "../scripts/measure_gap.py"


rule compare_splits:
    input:
        decisions="results/{run}/decisions/{dataset}/{model}/{precision}/{template}.parquet",
    output:
        agreement="results/{run}/agreement/{dataset}/{model}/{precision}/{template}.parquet",
        disagreements="results/{run}/disagreements/{dataset}/{model}/{precision}/{template}.parquet",
    log:
        "logs/{run}/compare_splits/{dataset}/{model}/{precision}/{template}.log",
    benchmark:
        "results/{run}/benchmarks/compare_splits/{dataset}/{model}/{precision}/{template}.tsv"
    conda:
        "../../envs/python.yaml"
    params:
        code=code_digest("compare_splits"),
    script:
        "../scripts/compare_splits.py"


rule relabel:
    input:
        decisions="results/{run}/decisions/{dataset}/{model}/{precision}/{template}.parquet",
        labels=PLAN.label_tables,
    output:
        gaps="results/{run}/relabelled/{dataset}/{model}/{precision}/{template}.parquet",
        carriers="results/{run}/flip_carriers/{dataset}/{model}/{precision}/{template}.parquet",
    log:
        "logs/{run}/relabel/{dataset}/{model}/{precision}/{template}.log",
    benchmark:
        "results/{run}/benchmarks/relabel/{dataset}/{model}/{precision}/{template}.tsv"
    conda:
        "../../envs/python.yaml"
    params:
        labels=PLAN.further_labels,
        pair=PLAN.config["gap_pair"],
        code=code_digest("relabel"),
    script:
        "../scripts/relabel.py"
