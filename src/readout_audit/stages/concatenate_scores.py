"""Stage: the score files of all cells, one after the other."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from readout_audit import contracts
from readout_audit.errors import AuditError
from readout_audit.fileio import read_table, write_table

KEY = (*contracts.CELL.names, "labels", "split", "readout", "subset")


def run(inputs: Sequence[Path], output: Path) -> None:
    """Concatenate score files in the order given; nothing is computed.

    Raises:
        AuditError: there is no input, one cannot be read, or two hold the same row.
    """
    if not inputs:
        raise AuditError(f"{output}: there are no score files to put together.")
    tables = [read_table(path, contracts.SCORES, "the score file") for path in inputs]
    together = pa.concat_tables([table.replace_schema_metadata(None) for table in tables])
    keys = Counter(zip(*(together[name].to_pylist() for name in KEY), strict=True))
    repeated = [key for key, times in keys.items() if times > 1]
    if repeated:
        raise AuditError(
            f"{output}: two score files hold the row {' / '.join(repeated[0])}; give each cell once."
        )
    write_table(output, together, contracts.SCORES)
