"""What a model's vocabulary holds. A run of published numbers has this of the tokenizers that its mirror holds.

map_tokens <- a tokenizer -> results/{run}/tokens/{model}.json: which ids say yes and no
"""


rule map_tokens:
    input:
        PLAN.tokenizer_files,
    output:
        "results/{run}/tokens/{model}.json",
    log:
        "logs/{run}/map_tokens/{model}.log",
    benchmark:
        "results/{run}/benchmarks/map_tokens/{model}.tsv"
    conda:
        "../../envs/python.yaml"
    params:
        tokenizer=PLAN.tokenizer_folder,
        templates=PLAN.template_json,
        code=code_digest("map_tokens"),
    shell:
        "python -m readout_audit.stages.map_tokens --model {wildcards.model:q} --tokenizer {params.tokenizer:q}"
        " --templates {params.templates:q} --output {output:q} --log {log:q}"
