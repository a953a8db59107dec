"""Every published number beside what this run found, with a verdict each.

build_claims <- the paper's numbers, scores, transitions, gap, decisions, token maps -> paper_tables/{run}/claims.csv
"""


rule build_claims:
    input:
        unpack(PLAN.claim_sources),
        numbers="resources/paper/numbers.csv",
    output:
        report(
            "paper_tables/{run}/claims.csv",
            caption="../report/claims.rst",
            category="Claims",
            labels={"table": "claims", "run": "{run}"},
        ),
    log:
        "logs/{run}/build_claims.log",
    benchmark:
        "results/{run}/benchmarks/build_claims.tsv"
    conda:
        "../../envs/python.yaml"
    params:
        sources=PLAN.claim_arguments,
        code=code_digest("build_claims"),
    shell:
        "python -m readout_audit.stages.build_claims --numbers {input.numbers:q} {params.sources}"
        " --output {output:q} --log {log:q}"


rule claims:
    input:
        PLAN.claim_files,
