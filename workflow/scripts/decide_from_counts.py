"""Wires the rule `decide_from_counts` to `readout_audit.stages.decisions_from_counts`."""

from pathlib import Path

from readout_audit.logs import script_log
from readout_audit.stages import decisions_from_counts

with script_log(snakemake.log):
    decisions_from_counts.run(
        paper_numbers=Path(snakemake.input.numbers),
        output=Path(snakemake.output[0]),
        model=snakemake.wildcards.model,
        dataset=snakemake.wildcards.dataset,
        precision=snakemake.wildcards.precision,
        template=snakemake.wildcards.template,
        splits=list(snakemake.params.splits),
    )
