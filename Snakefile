from snakemake.utils import min_version

min_version("9.27")


configfile: "config/models.yaml"
configfile: "config/templates.yaml"
configfile: "config/datasets.yaml"
configfile: "config/config.yaml"


include: "workflow/rules/common.smk"


# Records made elsewhere and printed counts need nothing from outside and no model.
if PLAN.source in ("inference", "published"):

    include: "workflow/rules/fetch.smk"
    include: "workflow/rules/questions.smk"


if PLAN.source == "inference":

    include: "workflow/rules/demo.smk"
    include: "workflow/rules/inference.smk"
    include: "workflow/rules/signals.smk"


if PLAN.source != "files":

    include: "workflow/rules/tokens.smk"


include: "workflow/rules/readouts.smk"
include: "workflow/rules/gap.smk"
include: "workflow/rules/corrections.smk"


if PLAN.source == "published":

    include: "workflow/rules/published.smk"


include: "workflow/rules/matrix.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/claims.smk"
include: "workflow/rules/report.smk"


onstart:
    check_start(PLAN, workflow)


onerror:
    repeat_errors(log)


rule all:
    default_target: True
    input:
        rules.tables.input,
        rules.figures.input,
        rules.scores.input,
        rules.claims.input,
        rules.page.input,
        PLAN.verified_files,
