"""The demo's pictures and questions, and the training of its models.

make_demo_world   -> results/{run}/world/: pictures, COCO-format annotation, POPE-format questions
make_random_model -> results/random-models/{model}/: a stand-in with random weights (config/families.yaml)
train_demo_model  -> results/retrained/{model}/: a checkpoint; the shipped ones lie in resources/demo/models/
"""


rule make_demo_world:
    output:
        annotations="results/{run}/world/annotations.json",
        images=directory("results/{run}/world/images"),
        questions=expand(
            "results/{{run}}/world/demo_pope_{split}.json",
            split=["random", "popular", "adversarial", "misspelt_adversarial"],
        ),
    log:
        "logs/{run}/make_demo_world.log",
    benchmark:
        "results/{run}/benchmarks/make_demo_world.tsv"
    conda:
        "../../envs/python.yaml"
    params:
        folder="results/{run}/world",
        pictures=PLAN.config["known_images"]["demo-world"]["pictures"],
        code=code_digest("make_demo_world"),
    shell:
        "python -m readout_audit.stages.make_demo_world --images {params.pictures} --output {params.folder:q}"
        " --log {log:q}"


rule make_random_model:
    output:
        "results/random-models/{model}/config.json",
    log:
        "logs/random-models/{model}.log",
    benchmark:
        "results/benchmarks/make_random_model/{model}.tsv"
    conda:
        "../../envs/python.yaml"
    params:
        folder="results/random-models/{model}",
        source=PLAN.random_arguments,
        code=code_digest("make_tiny_model"),
    shell:
        "python -m readout_audit.stages.make_tiny_model {params.source} --folder {params.folder:q} --log {log:q}"


# Asked for by name only, e.g. `snakemake results/retrained/tiny-llava`: the demo uses the shipped checkpoints.
rule train_demo_model:
    output:
        directory("results/retrained/{model}"),
    log:
        "logs/retrained/{model}.log",
    benchmark:
        "results/benchmarks/train_{model}.tsv"
    conda:
        "../../envs/python.yaml"
    threads: 2
    params:
        code=code_digest("train_demo"),
    shell:
        "python -m readout_audit.stages.train_demo --model {wildcards.model:q} --output {output:q} --log {log:q}"
