"""The paper's figures for this run, each from the files it needs and nothing else.

draw_figure -> figures/{run}/figure_NN_name.{pdf,png}
"""


rule draw_figure:
    input:
        unpack(PLAN.figure_sources),
    output:
        pdf="figures/{run}/{figure}.pdf",
        png=report(
            "figures/{run}/{figure}.png",
            caption="../report/figure.rst",
            category="Figures",
            labels={"figure": "{figure}", "run": "{run}"},
        ),
    log:
        "logs/{run}/draw_figure/{figure}.log",
    benchmark:
        "results/{run}/benchmarks/draw_figure/{figure}.tsv"
    conda:
        "../../envs/python.yaml"
    params:
        sources=PLAN.figure_arguments,
        options=PLAN.table_options,
        code=PLAN.figure_digest,
    shell:
        "python -m readout_audit.stages.draw_figures --name {wildcards.figure:q} --options {params.options:q}"
        " {params.sources} --pdf {output.pdf:q} --png {output.png:q} --log {log:q}"


rule figures:
    input:
        expand(f"figures/{PLAN.run}/{{figure}}.png", figure=PLAN.config["figures"]),
