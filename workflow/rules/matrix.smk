"""How the readouts of a run differ from each other, and what other settings change.

readout_matrix       <- decisions                   -> results/{run}/readout_pairs/…, results/{run}/readout_disagreements/…
settings_audit       <- every cell's decisions and records -> results/{run}/settings_audit.parquet: the same questions
                        under other precisions and templates, and of other models
compare_releases     <- decisions of two releases    -> results/{run}/releases.parquet, results/{run}/release_changes.{parquet,csv}
variance_components  <- every cell's decisions      -> results/{run}/variance.parquet: what moves F1 over a balanced grid

They are due where a table or figure of the run reads them.
"""


rule readout_matrix:
    input:
        decisions="results/{run}/decisions/{dataset}/{model}/{precision}/{template}.parquet",
        labels=PLAN.label_tables,
    output:
        pairs="results/{run}/readout_pairs/{dataset}/{model}/{precision}/{template}.parquet",
        listing="results/{run}/readout_disagreements/{dataset}/{model}/{precision}/{template}.parquet",
        csv="results/{run}/readout_disagreements/{dataset}/{model}/{precision}/{template}.csv",
    log:
        "logs/{run}/readout_matrix/{dataset}/{model}/{precision}/{template}.log",
    benchmark:
        "results/{run}/benchmarks/readout_matrix/{dataset}/{model}/{precision}/{template}.tsv"
    conda:
        "../../envs/python.yaml"
    params:
        labels=PLAN.further_labels,
        resamples=PLAN.config["bootstrap"]["resamples"],
        seed=PLAN.config["bootstrap"]["seed"],
        code=code_digest("readout_matrix"),
    script:
        "../scripts/readout_matrix.py"


rule settings_audit:
    input:
        decisions=PLAN.cell_files("results/{run}/decisions/{cell}.parquet"),
        # Logits, and so near-ties, are known only where the answers came from records.
        records=(
            PLAN.cell_files(f"{PLAN.records_folder()}/records/{{cell}}.parquet")
            if PLAN.source in ("inference", "files")
            else []
        ),
        labels=PLAN.label_tables,
    output:
        f"results/{PLAN.run}/settings_audit.parquet",
    log:
        f"logs/{PLAN.run}/settings_audit.log",
    benchmark:
        f"results/{PLAN.run}/benchmarks/settings_audit.tsv"
    conda:
        "../../envs/python.yaml"
    params:
        labels=PLAN.further_labels,
        pair=PLAN.config["gap_pair"],
        resamples=PLAN.config["bootstrap"]["resamples"],
        seed=PLAN.config["bootstrap"]["seed"],
        code=code_digest("settings_audit"),
    script:
        "../scripts/settings_audit.py"


rule compare_releases:
    input:
        first=PLAN.release_files(0),
        second=PLAN.release_files(1),
        # Margins stand in the decisions; the records add the exact prompts.
        records=list(PLAN.release_records.values()),
    output:
        counts=f"results/{PLAN.run}/releases.parquet",
        changed=f"results/{PLAN.run}/release_changes.parquet",
        csv=f"results/{PLAN.run}/release_changes.csv",
    log:
        f"logs/{PLAN.run}/compare_releases.log",
    benchmark:
        f"results/{PLAN.run}/benchmarks/compare_releases.tsv"
    conda:
        "../../envs/python.yaml"
    params:
        records=PLAN.release_records,
        code=code_digest("compare_releases"),
    script:
        "../scripts/compare_releases.py"


rule variance_components:
    input:
        decisions=PLAN.cell_files("results/{run}/decisions/{cell}.parquet"),
        labels=PLAN.label_tables,
    output:
        f"results/{PLAN.run}/variance.parquet",
    log:
        f"logs/{PLAN.run}/variance_components.log",
    benchmark:
        f"results/{PLAN.run}/benchmarks/variance_components.tsv"
    conda:
        "../../envs/python.yaml"
    params:
        labels=PLAN.further_labels,
        readouts=PLAN.config["readouts"],
        resamples=PLAN.config["bootstrap"]["resamples"],
        seed=PLAN.config["bootstrap"]["seed"],
        code=code_digest("variance_components"),
    script:
        "../scripts/variance_components.py"
