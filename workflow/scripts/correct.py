"""Wires the rule `correct` to `readout_audit.stages.correct`."""

from pathlib import Path

from readout_audit.logs import script_log
from readout_audit.stages import correct

with script_log(snakemake.log):
    tables = zip(snakemake.params.labels, snakemake.input.labels, strict=True)
    correct.run(
        records=Path(snakemake.input.records),
        signals=Path(snakemake.input.signals),
        decisions=Path(snakemake.input.decisions),
        corrections_output=Path(snakemake.output.corrections),
        sweeps_output=Path(snakemake.output.sweeps),
        correctness_output=Path(snakemake.output.correctness),
        readouts=list(snakemake.params.readouts),
        relabel={name: [Path(table)] for name, table in tables},
        resamples=snakemake.params.resamples,
        seed=snakemake.params.seed,
    )
