"""A second pass over the models: what corrections and the attention probe need.

compute_signals <- records, pictures, weights, CLIPs -> results/{run}/signal_shards/…  (GPU)
merge_signals   <- shards                            -> results/{run}/signals/…
"""


rule compute_signals:
    input:
        questions="results/{run}/questions/{dataset}.parquet",
        images=PLAN.image_marker,
        checkpoint=PLAN.checkpoint_files,
        clips=PLAN.clip_files,
        tokens="results/{run}/tokens/{model}.json",
        records="results/{run}/records/{dataset}/{model}/{precision}/{template}.parquet",
    output:
        "results/{run}/signal_shards/{dataset}/{model}/{precision}/{template}/{shard}-of-{shards}.parquet",
    log:
        "logs/{run}/compute_signals/{dataset}/{model}/{precision}/{template}/{shard}-of-{shards}.log",
    benchmark:
        "results/{run}/benchmarks/compute_signals/{dataset}/{model}/{precision}/{template}/{shard}-of-{shards}.tsv"
    conda:
        "../../envs/python.yaml"
    threads: PLAN.config["inference"]["threads"]
    resources:
        gpu=PLAN.needs_gpu,
    params:
        checkpoint=PLAN.checkpoint_folder,
        images=PLAN.image_folder,
        clips=PLAN.clip_arguments,
        settings=PLAN.signal_settings,
        device=PLAN.config["inference"]["device"],
        code=PLAN.signals_digest,
    shell:
        "python -m readout_audit.stages.compute_signals --settings {params.settings:q} --questions {input.questions:q}"
        " --images {params.images:q} --checkpoint {params.checkpoint:q} --tokens {input.tokens:q}"
        " --records {input.records:q} {params.clips} --parts results/.parts --shard {wildcards.shard}"
        " --of {wildcards.shards} --code {params.code:q} --device {params.device} --output {output:q} --log {log:q}"


rule merge_signals:
    input:
        questions="results/{run}/questions/{dataset}.parquet",
        shards=expand(
            "results/{{run}}/signal_shards/{{dataset}}/{{model}}/{{precision}}/{{template}}/{shard}-of-{shards}.parquet",
            shard=range(1, PLAN.n_shards + 1),
            shards=PLAN.n_shards,
        ),
    output:
        "results/{run}/signals/{dataset}/{model}/{precision}/{template}.parquet",
    log:
        "logs/{run}/merge_signals/{dataset}/{model}/{precision}/{template}.log",
    benchmark:
        "results/{run}/benchmarks/merge_signals/{dataset}/{model}/{precision}/{template}.tsv"
    conda:
        "../../envs/python.yaml"
    params:
        code=code_digest("merge_signals"),
    shell:
        "python -m readout_audit.stages.merge_signals --shards {input.shards:q} --questions {input.questions:q}"
        " --output {output:q} --log {log:q}"
