"""Table 3: gains that papers report on the hardest split, beside the gap of this run (paper, Section 2)."""

from readout_audit.tables.base import Column, Table, text_column
from readout_audit.tables.common import hardest_split
from readout_audit.tables.inputs import RunTables
from readout_audit.tables.survey import own_rows, read_survey

COLUMNS = (
    text_column("paper"),
    text_column("arXiv, or source"),
    text_column("split"),
    text_column("readout"),
    Column("baseline", decimals=2),
    Column("result", decimals=2),
    Column("gain", decimals=2),
)
NOTE = (
    "F1 × 100. Rows of papers are as they print them; rows of this run change nothing but the readout: "
    "baseline and result are the same answers, and the gain is their exact difference, rounded once."
)


def build(inputs: RunTables) -> Table:
    """Return the surveyed rows of the hardest split, then the gap of every cell on it."""
    split = hardest_split(inputs.options)
    papers = [row.cells for row in read_survey(inputs.sources.claims) if row.split == split]
    return Table(
        number=3,
        name="table_03_survey",
        title=f"Reported gains on {split}, beside the gap that the readout alone makes",
        columns=COLUMNS,
        rows=(*papers, *own_rows(inputs, split)),
        n=f"{len(papers)} surveyed rows",
        notes=(NOTE,),
    )
