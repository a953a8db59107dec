"""From records to decisions to scores; nothing here loads a model.

decide               <- records, questions       -> results/{run}/decisions/…: one row per question, a column per readout
decide_from_counts   <- the paper's integers     -> the same
decide_from_published <- the authors' files      -> the same
score                <- decisions, label sets    -> results/{run}/scores/…
concatenate_scores   <- every cell's scores      -> results/{run}/scores.parquet
"""

if PLAN.source in ("inference", "files"):

    rule decide:
        input:
            records=f"{PLAN.records_folder()}/records/{{dataset}}/{{model}}/{{precision}}/{{template}}.parquet",
            questions=f"{PLAN.records_folder()}/questions/{{dataset}}.parquet",
        output:
            "results/{run}/decisions/{dataset}/{model}/{precision}/{template}.parquet",
        log:
            "logs/{run}/decide/{dataset}/{model}/{precision}/{template}.log",
        benchmark:
            "results/{run}/benchmarks/decide/{dataset}/{model}/{precision}/{template}.tsv"
        conda:
            "../../envs/python.yaml"
        params:
            readouts=PLAN.config["readouts"],
            splits=PLAN.config["splits"],
            cell=PLAN.described,
            expect_excluded=PLAN.config["expect_excluded"],
            code=PLAN.readout_digest,
        script:
            "../scripts/decide.py"


if PLAN.source == "counts":

    rule decide_from_counts:
        input:
            numbers="resources/paper/numbers.csv",
        output:
            "results/{run}/decisions/{dataset}/{model}/{precision}/{template}.parquet",
        log:
            "logs/{run}/decide_from_counts/{dataset}/{model}/{precision}/{template}.log",
        benchmark:
            "results/{run}/benchmarks/decide_from_counts/{dataset}/{model}/{precision}/{template}.tsv"
        conda:
            "../../envs/python.yaml"
        params:
            splits=PLAN.config["splits"],
            code=code_digest("decisions_from_counts"),
        script:
            "../scripts/decide_from_counts.py"


if PLAN.source == "published":

    rule decide_from_published:
        input:
            files=PLAN.published_files,
            questions="results/{run}/questions/{dataset}.parquet",
        output:
            "results/{run}/decisions/{dataset}/{model}/{precision}/{template}.parquet",
        log:
            "logs/{run}/decide_from_published/{dataset}/{model}/{precision}/{template}.log",
        benchmark:
            "results/{run}/benchmarks/decide_from_published/{dataset}/{model}/{precision}/{template}.tsv"
        conda:
            "../../envs/python.yaml"
        params:
            splits=PLAN.published_splits,
            code=code_digest("decisions_from_published"),
        script:
            "../scripts/decide_from_published.py"


rule score:
    input:
        decisions="results/{run}/decisions/{dataset}/{model}/{precision}/{template}.parquet",
        labels=PLAN.label_tables,
    output:
        "results/{run}/scores/{dataset}/{model}/{precision}/{template}.parquet",
    log:
        "logs/{run}/score/{dataset}/{model}/{precision}/{template}.log",
    benchmark:
        "results/{run}/benchmarks/score/{dataset}/{model}/{precision}/{template}.tsv"
    conda:
        "../../envs/python.yaml"
    params:
        labels=PLAN.further_labels,
        first=PLAN.config["subsets"],
        resamples=PLAN.config["bootstrap"]["resamples"],
        seed=PLAN.config["bootstrap"]["seed"],
        code=code_digest("score"),
    script:
        "../scripts/score.py"


rule concatenate_scores:
    input:
        PLAN.cell_files("results/{run}/scores/{cell}.parquet"),
    output:
        f"results/{PLAN.run}/scores.parquet",
    log:
        f"logs/{PLAN.run}/concatenate_scores.log",
    benchmark:
        f"results/{PLAN.run}/benchmarks/concatenate_scores.tsv"
    conda:
        "../../envs/python.yaml"
    params:
        code=code_digest("concatenate_scores"),
    script:
        "../scripts/concatenate_scores.py"


# Everything counted, without tables and figures.
rule scores:
    input:
        rules.concatenate_scores.output,
        PLAN.cell_files("results/{run}/gap/{cell}.parquet"),
        PLAN.agreement_files,
        PLAN.relabel_files,
