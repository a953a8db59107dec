"""The files of the readout matrix."""

from collections.abc import Sequence

import pyarrow as pa

from readout_audit.contracts import CELL

READOUT_PAIRS = pa.schema(
    [
        *CELL,
        pa.field("labels", pa.string(), nullable=False),
        pa.field("split", pa.string(), nullable=False),
        pa.field("first", pa.string(), nullable=False),  # readout
        pa.field("second", pa.string(), nullable=False),  # readout, after `first` in the file's order
        pa.field("n", pa.int64(), nullable=False),  # rows, invalid ones included
        pa.field("disagree", pa.int64(), nullable=False),  # the two decisions are different words
        pa.field("disagree_pos", pa.int64(), nullable=False),  # of these, label yes
        pa.field("disagree_neg", pa.int64(), nullable=False),
        pa.field("yes_no", pa.int64(), nullable=False),  # yes under `first`, no under `second`
        pa.field("no_yes", pa.int64(), nullable=False),
        pa.field("other", pa.int64(), nullable=False),  # disagreements with an unparsed or invalid side
        pa.field("only_first_right", pa.int64(), nullable=False),
        pa.field("only_second_right", pa.int64(), nullable=False),
        pa.field("delta_f1", pa.float64()),  # F1 of `first` minus F1 of `second`; null where one is undefined
        pa.field("delta_f1_low", pa.float64()),  # paired, over images
        pa.field("delta_f1_high", pa.float64()),
    ]
)
"""One row per (labels, split, pair of readouts that both have the split); none where rows are not paired."""

IDENTITY = ("uid", "dataset", "split", "question_id", "image", "object", "question", "label")
"""What a row of the list is about; the columns of `contracts.DECISION_IDENTITY` of these names."""


def listing_schema(readouts: Sequence[str]) -> pa.Schema:
    """Return the schema of a list of disagreements: identity, then two columns per readout.

    `<readout>`: yes | no | unparsed | invalid; null where the source does not have it on this split.
    `<readout>.margin`: yes score minus no score, float32; null for readouts without one.
    """
    identity = [
        pa.field(name, pa.string(), nullable=name not in ("dataset", "split", "question_id", "label"))
        for name in IDENTITY
    ]
    columns = [
        column
        for name in readouts
        for column in (pa.field(name, pa.string()), pa.field(f"{name}.margin", pa.float32()))
    ]
    return pa.schema([*identity, *columns])


def readouts_listed(listing: pa.Table) -> list[str]:
    """Return the readouts of a list of disagreements, in column order."""
    return [name.removesuffix(".margin") for name in listing.column_names if name.endswith(".margin")]
