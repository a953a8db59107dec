"""Table 12: the whole survey with the readout each paper states (paper, Appendix)."""

from readout_audit.tables.base import Table
from readout_audit.tables.inputs import RunTables
from readout_audit.tables.survey import NOT_STATED, own_rows, read_survey
from readout_audit.tables.table_03_survey import COLUMNS, NOTE


def build(inputs: RunTables) -> Table:
    """Return every surveyed row, then the gap of every cell on every split."""
    survey = read_survey(inputs.sources.claims)
    papers = dict.fromkeys(row.arxiv for row in survey)
    stated = {row.arxiv for row in survey if row.readout != NOT_STATED}
    own = [row for split in inputs.options.splits for row in own_rows(inputs, split)]
    return Table(
        number=12,
        name="table_12_survey_readouts",
        title="Surveyed baselines and gains with the readout each paper states",
        columns=COLUMNS,
        rows=(*(row.cells for row in survey), *own),
        n=f"{len(survey)} surveyed rows of {len(papers)} papers, {len(stated)} of which state their readout",
        notes=(NOTE,),
    )
