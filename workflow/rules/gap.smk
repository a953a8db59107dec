"""Paired decisions of two readouts, and the exact algebra of the gap between their scores.

measure_gap   <- decisions -> results/{run}/transitions/…, results/{run}/gap/…
"""


rule measure_gap:
    input:
        decisions="results/{run}/decisions/{dataset}/{model}/{precision}/{template}.parquet",
    output:
        transitions="results/{run}/transitions/{dataset}/{model}/{precision}/{template}.parquet",
        gap="results/{run}/gap/{dataset}/{model}/{precision}/{template}.parquet",
    params:
        code=code_digest("measure_gap"),
    log:
        "logs/{run}/measure_gap/{dataset}/{model}/{precision}/{template}.log",
    benchmark:
        "results/{run}/benchmarks/measure_gap/{dataset}/{model}/{precision}/{template}.tsv"
    conda:
        "../../envs/cpu.yaml"
    script:
        "../scripts/measure_gap.py"
