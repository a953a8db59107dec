"""Wires the rule `decide` to `readout_audit.stages.decide`."""

from pathlib import Path

from readout_audit.logs import script_log
from readout_audit.stages import decide

with script_log(snakemake.log):
    decide.run(
        records=Path(snakemake.input.records),
        questions=Path(snakemake.input.questions),
        output=Path(snakemake.output[0]),
        readouts=list(snakemake.params.readouts),
        cell=snakemake.params.cell,
        splits=list(snakemake.params.splits),
        expect_excluded=snakemake.params.expect_excluded,
    )
