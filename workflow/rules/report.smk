"""One page for people about the run: results/{run}/report.html, with nothing outside the file, and
its first sentences as text, which `readout-audit headline` prints.

build_report <- scores, tables, figures, claims, gap, agreement, relabelled gaps, manifests
"""


rule build_report:
    input:
        unpack(PLAN.report_sources),
    output:
        headline="results/{run}/headline.txt",
        page=report(
            "results/{run}/report.html",
            caption="../report/page.rst",
            category="Report",
            labels={"page": "report", "run": "{run}"},
        ),
    log:
        "logs/{run}/build_report.log",
    benchmark:
        "results/{run}/benchmarks/build_report.tsv"
    conda:
        "../../envs/python.yaml"
    params:
        sources=PLAN.report_arguments,
        template=PLAN.report_template_digest,
        code=code_digest("build_report"),
    shell:
        "python -m readout_audit.stages.build_report --run {wildcards.run:q} {params.sources}"
        " --headline {output.headline:q} --output {output.page:q} --log {log:q}"


rule page:
    input:
        f"results/{PLAN.run}/report.html",
