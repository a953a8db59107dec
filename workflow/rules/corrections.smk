"""Corrections and the attention probe, from records and signals; nothing here loads a model.

correct <- records, signals, decisions -> results/{run}/{corrections,sweeps,correctness}/…
probe   <- records, signals, decisions -> results/{run}/probe*/…
probe_published <- the authors' diagnostic file, questions, decisions -> results/{run}/probe*/…
measure_claims <- the paper's numbers, corrections, probe -> results/{run}/measured.json, for the claims
"""

if PLAN.source in ("inference", "files"):

    rule correct:
        input:
            records=f"{PLAN.records_folder()}/records/{{dataset}}/{{model}}/{{precision}}/{{template}}.parquet",
            signals=f"{PLAN.records_folder()}/signals/{{dataset}}/{{model}}/{{precision}}/{{template}}.parquet",
            decisions="results/{run}/decisions/{dataset}/{model}/{precision}/{template}.parquet",
            labels=PLAN.label_tables,
        output:
            corrections="results/{run}/corrections/{dataset}/{model}/{precision}/{template}.parquet",
            sweeps="results/{run}/sweeps/{dataset}/{model}/{precision}/{template}.parquet",
            correctness="results/{run}/correctness/{dataset}/{model}/{precision}/{template}.parquet",
        log:
            "logs/{run}/correct/{dataset}/{model}/{precision}/{template}.log",
        benchmark:
            "results/{run}/benchmarks/correct/{dataset}/{model}/{precision}/{template}.tsv"
        conda:
            "../../envs/python.yaml"
        params:
            labels=PLAN.further_labels,
            readouts=PLAN.config["signals"]["readouts"],
            resamples=PLAN.config["bootstrap"]["resamples"],
            seed=PLAN.config["bootstrap"]["seed"],
            code=PLAN.correction_digest,
        script:
            "../scripts/correct.py"

    rule probe:
        input:
            records=f"{PLAN.records_folder()}/records/{{dataset}}/{{model}}/{{precision}}/{{template}}.parquet",
            signals=f"{PLAN.records_folder()}/signals/{{dataset}}/{{model}}/{{precision}}/{{template}}.parquet",
            decisions="results/{run}/decisions/{dataset}/{model}/{precision}/{template}.parquet",
            labels=PLAN.label_tables,
        output:
            probe="results/{run}/probe/{dataset}/{model}/{precision}/{template}.parquet",
            groups="results/{run}/probe_groups/{dataset}/{model}/{precision}/{template}.parquet",
            comparisons="results/{run}/probe_comparisons/{dataset}/{model}/{precision}/{template}.parquet",
            windows="results/{run}/probe_windows/{dataset}/{model}/{precision}/{template}.parquet",
            excluded="results/{run}/probe_excluded/{dataset}/{model}/{precision}/{template}.parquet",
        log:
            "logs/{run}/probe/{dataset}/{model}/{precision}/{template}.log",
        benchmark:
            "results/{run}/benchmarks/probe/{dataset}/{model}/{precision}/{template}.tsv"
        conda:
            "../../envs/python.yaml"
        params:
            labels=PLAN.further_labels,
            readouts=PLAN.config["signals"]["readouts"],
            excluded=PLAN.config["gap_pair"][1],
            resamples=PLAN.config["bootstrap"]["resamples"],
            seed=PLAN.config["bootstrap"]["seed"],
            code=PLAN.probe_digest,
        script:
            "../scripts/probe.py"


if PLAN.source == "published":

    rule probe_published:
        input:
            diagnostic=PLAN.diagnostic_file,
            questions="results/{run}/questions/{dataset}.parquet",
            decisions="results/{run}/decisions/{dataset}/{model}/{precision}/{template}.parquet",
        output:
            probe="results/{run}/probe/{dataset}/{model}/{precision}/{template}.parquet",
            groups="results/{run}/probe_groups/{dataset}/{model}/{precision}/{template}.parquet",
            comparisons="results/{run}/probe_comparisons/{dataset}/{model}/{precision}/{template}.parquet",
            windows="results/{run}/probe_windows/{dataset}/{model}/{precision}/{template}.parquet",
            excluded="results/{run}/probe_excluded/{dataset}/{model}/{precision}/{template}.parquet",
        log:
            "logs/{run}/probe_published/{dataset}/{model}/{precision}/{template}.log",
        benchmark:
            "results/{run}/benchmarks/probe_published/{dataset}/{model}/{precision}/{template}.tsv"
        conda:
            "../../envs/python.yaml"
        params:
            cell=PLAN.described,
            resamples=PLAN.config["bootstrap"]["resamples"],
            seed=PLAN.config["bootstrap"]["seed"],
            code=code_digest("probe_published"),
        script:
            "../scripts/probe_published.py"


rule measure_claims:
    input:
        numbers="resources/paper/numbers.csv",
        corrections=PLAN.measured_files("corrections"),
        probe=PLAN.measured_files("probe"),
        groups=PLAN.measured_files("probe_groups"),
        comparisons=PLAN.measured_files("probe_comparisons"),
        dryruns=list(PLAN.dryruns.values()),
    output:
        f"results/{PLAN.run}/measured.json",
    log:
        f"logs/{PLAN.run}/measure_claims.log",
    benchmark:
        f"results/{PLAN.run}/benchmarks/measure_claims.tsv"
    conda:
        "../../envs/python.yaml"
    params:
        tokenizers=list(PLAN.dryruns),
        code=code_digest("measure_claims"),
    script:
        "../scripts/measure_claims.py"
