"""Wires the rule `compare_splits` to `readout_audit.stages.compare_splits`."""

from pathlib import Path

from readout_audit.logs import script_log
from readout_audit.stages import compare_splits

with script_log(snakemake.log):
    compare_splits.run(
        decisions=Path(snakemake.input.decisions),
        agreement_output=Path(snakemake.output.agreement),
        disagreements_output=Path(snakemake.output.disagreements),
    )
