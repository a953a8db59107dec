"""Asking the models: the only rules that need a GPU (or a small model and patience).

ask_model      <- questions, pictures, weights  -> results/{run}/shards/…: raw logits of a share of the pictures
merge_shards   <- shards                        -> results/{run}/records/…: one row per distinct question
ask_api        <- questions, pictures, a server -> results/{run}/records/…: the same, of a model behind a server
verify_engine  <- records, pictures, weights    -> results/{run}/verified/…: a sample asked again, one by one

Answers are kept by question in results/.parts/ as they come, whatever the shard: a killed job loses the few
in flight, and nothing is asked twice under the same model, settings and code.
"""


rule ask_model:
    input:
        questions="results/{run}/questions/{dataset}.parquet",
        images=PLAN.image_marker,
        checkpoint=PLAN.checkpoint_files,
        tokens="results/{run}/tokens/{model}.json",
        reference=f"results/{{run}}/tokens/{PLAN.reference}.json",
    output:
        "results/{run}/shards/{dataset}/{model}/{precision}/{template}/{shard}-of-{shards}.parquet",
    log:
        "logs/{run}/ask_model/{dataset}/{model}/{precision}/{template}/{shard}-of-{shards}.log",
    benchmark:
        "results/{run}/benchmarks/ask_model/{dataset}/{model}/{precision}/{template}/{shard}-of-{shards}.tsv"
    conda:
        "../../envs/python.yaml"
    threads: PLAN.config["inference"]["threads"]
    resources:
        gpu=PLAN.needs_gpu,
    params:
        checkpoint=PLAN.checkpoint_folder,
        images=PLAN.image_folder,
        settings=PLAN.settings_json,
        device=PLAN.config["inference"]["device"],
        code=PLAN.inference_digest,
    shell:
        "python -m readout_audit.stages.ask_model --settings {params.settings:q} --questions {input.questions:q}"
        " --images {params.images:q} --checkpoint {params.checkpoint:q} --tokens {input.tokens:q}"
        " --reference-tokens {input.reference:q} --parts results/.parts --shard {wildcards.shard}"
        " --of {wildcards.shards} --code {params.code:q} --device {params.device} --output {output:q} --log {log:q}"


rule merge_shards:
    input:
        questions="results/{run}/questions/{dataset}.parquet",
        shards=expand(
            "results/{{run}}/shards/{{dataset}}/{{model}}/{{precision}}/{{template}}/{shard}-of-{shards}.parquet",
            shard=range(1, PLAN.n_shards + 1),
            shards=PLAN.n_shards,
        ),
    output:
        records="results/{run}/records/{dataset}/{model}/{precision}/{template}.parquet",
        manifest="results/{run}/records/{dataset}/{model}/{precision}/{template}.manifest.json",
    log:
        "logs/{run}/merge_shards/{dataset}/{model}/{precision}/{template}.log",
    benchmark:
        "results/{run}/benchmarks/merge_shards/{dataset}/{model}/{precision}/{template}.tsv"
    wildcard_constraints:
        precision=LOCAL_PRECISIONS,
    conda:
        "../../envs/python.yaml"
    params:
        code=code_digest("merge_shards"),
    shell:
        "python -m readout_audit.stages.merge_shards --shards {input.shards:q} --questions {input.questions:q}"
        " --output {output.records:q} --log {log:q}"


# One job per cell; it runs where Snakemake runs, as everything does that uses the network.
rule ask_api:
    input:
        questions="results/{run}/questions/{dataset}.parquet",
        images=PLAN.api_images,
    output:
        records="results/{run}/records/{dataset}/{model}/{precision}/{template}.parquet",
        manifest="results/{run}/records/{dataset}/{model}/{precision}/{template}.manifest.json",
    log:
        "logs/{run}/ask_api/{dataset}/{model}/{precision}/{template}.log",
    benchmark:
        "results/{run}/benchmarks/ask_api/{dataset}/{model}/{precision}/{template}.tsv"
    wildcard_constraints:
        precision=SERVED,
    localrule: True
    conda:
        "../../envs/python.yaml"
    params:
        arguments=PLAN.api_arguments,
    shell:
        "python -m readout_audit.stages.ask_api {params.arguments} --questions {input.questions:q}"
        " --output {output.records:q} --log {log:q}"


rule verify_engine:
    input:
        records="results/{run}/records/{dataset}/{model}/{precision}/{template}.parquet",
        images=PLAN.image_marker,
        checkpoint=PLAN.checkpoint_files,
    output:
        "results/{run}/verified/{dataset}/{model}/{precision}/{template}.json",
    log:
        "logs/{run}/verify_engine/{dataset}/{model}/{precision}/{template}.log",
    benchmark:
        "results/{run}/benchmarks/verify_engine/{dataset}/{model}/{precision}/{template}.tsv"
    conda:
        "../../envs/python.yaml"
    threads: PLAN.config["inference"]["threads"]
    resources:
        gpu=PLAN.needs_gpu,
    params:
        checkpoint=PLAN.checkpoint_folder,
        images=PLAN.image_folder,
        sample=PLAN.config["inference"]["verify_sample"],
        device=PLAN.config["inference"]["device"],
        code=PLAN.verification_digest,
    shell:
        "python -m readout_audit.stages.verify_engine --records {input.records:q} --images {params.images:q}"
        " --checkpoint {params.checkpoint:q} --sample {params.sample} --device {params.device}"
        " --dataset {wildcards.dataset:q} --output {output:q} --log {log:q}"


rule verified:
    input:
        PLAN.verified_files,
