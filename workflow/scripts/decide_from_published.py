"""Wires the rule `decide_from_published` to `readout_audit.stages.decisions_from_published`."""

from pathlib import Path

from readout_audit.logs import script_log
from readout_audit.stages import decisions_from_published

with script_log(snakemake.log):
    files = zip(snakemake.params.splits, snakemake.input.files, strict=True)
    decisions_from_published.run(
        files={split: Path(file) for split, file in files},
        questions=Path(snakemake.input.questions),
        output=Path(snakemake.output[0]),
        model=snakemake.wildcards.model,
        dataset=snakemake.wildcards.dataset,
        precision=snakemake.wildcards.precision,
        template=snakemake.wildcards.template,
    )
