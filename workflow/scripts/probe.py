"""Wires the rule `probe` to `readout_audit.stages.probe`."""

from pathlib import Path

from readout_audit.logs import script_log
from readout_audit.stages import probe

with script_log(snakemake.log):
    tables = zip(snakemake.params.labels, snakemake.input.labels, strict=True)
    outputs = {name: Path(file) for name, file in snakemake.output.items()}
    probe.run(
        records=Path(snakemake.input.records),
        signals=Path(snakemake.input.signals),
        decisions=Path(snakemake.input.decisions),
        outputs=probe.Outputs(**outputs),
        readouts=list(snakemake.params.readouts),
        excluded=snakemake.params.excluded,
        relabel={name: [Path(table)] for name, table in tables},
        resamples=snakemake.params.resamples,
        seed=snakemake.params.seed,
    )
