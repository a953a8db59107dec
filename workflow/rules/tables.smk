"""The paper's tables for this run, each from the files it needs and nothing else.

make_table -> paper_tables/{run}/table_NN_name.{csv,md,tex}
"""


rule make_table:
    input:
        unpack(PLAN.table_sources),
    output:
        csv=report(
            "paper_tables/{run}/{table}.csv",
            caption="../report/table.rst",
            category="Tables",
            labels={"table": "{table}", "run": "{run}"},
        ),
        md="paper_tables/{run}/{table}.md",
        tex="paper_tables/{run}/{table}.tex",
    log:
        "logs/{run}/make_table/{table}.log",
    benchmark:
        "results/{run}/benchmarks/make_table/{table}.tsv"
    conda:
        "../../envs/python.yaml"
    params:
        sources=PLAN.table_arguments,
        options=PLAN.table_options,
        code=PLAN.table_digest,
    shell:
        "python -m readout_audit.stages.make_tables --name {wildcards.table:q} --options {params.options:q}"
        " {params.sources} --csv {output.csv:q} --md {output.md:q} --tex {output.tex:q} --log {log:q}"


rule tables:
    input:
        expand(f"paper_tables/{PLAN.run}/{{table}}.csv", table=PLAN.tables),
