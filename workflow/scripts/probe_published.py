"""Wires the rule `probe_published` to `readout_audit.stages.probe_published`."""

from pathlib import Path

from readout_audit.logs import script_log
from readout_audit.stages import probe, probe_published

with script_log(snakemake.log):
    outputs = {name: Path(file) for name, file in snakemake.output.items()}
    probe_published.run(
        diagnostic=Path(snakemake.input.diagnostic),
        questions=Path(snakemake.input.questions),
        outputs=probe.Outputs(**outputs),
        cell=snakemake.params.cell,
        decisions=Path(snakemake.input.decisions),
        resamples=snakemake.params.resamples,
        seed=snakemake.params.seed,
    )
