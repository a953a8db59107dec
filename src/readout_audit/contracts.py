"""The columns of every table that passes between stages: one declared Arrow schema each.

A stage that reads one of these files may rely on every line here; a stage that writes one goes
through `readout_audit.fileio.write_table`, which refuses anything else.
"""

import pyarrow as pa

YES, NO, UNPARSED, INVALID = "yes", "no", "unparsed", "invalid"
"""The four decisions. Invalid: the model gave nothing that can be read (non-finite logits, no image)."""

OK = "ok"
"""Status of a row that has an answer; of one that has none it is `INVALID`."""

LABELS = (YES, NO)
DECISIONS = (YES, NO, UNPARSED, INVALID)

QUESTIONS = pa.schema(
    [
        pa.field("uid", pa.string(), nullable=False),  # hash of (image namespace, image, exact question text)
        pa.field("dataset", pa.string(), nullable=False),  # one release, such as coco-2023-10
        pa.field("split", pa.string(), nullable=False),
        pa.field("question_id", pa.string(), nullable=False),  # as released; joins nothing across releases
        pa.field("image", pa.string(), nullable=False),  # plain file name, never a path
        pa.field("image_namespace", pa.string(), nullable=False),
        pa.field("object", pa.string()),  # noun as the question has it; null where it cannot be told
        pa.field("question", pa.string(), nullable=False),
        pa.field("label", pa.string(), nullable=False),  # yes | no
    ]
)
"""One row per (split, question_id), in the release's order. The same uid may stand in several splits."""

RECORDS = pa.schema(
    [
        pa.field("uid", pa.string(), nullable=False),
        pa.field("image", pa.string(), nullable=False),
        pa.field("image_sha256", pa.string()),  # null where the file could not be read
        pa.field("object", pa.string()),
        pa.field("question", pa.string(), nullable=False),
        pa.field("prompt", pa.string(), nullable=False),  # exact rendered text
        pa.field("n_prompt_tokens", pa.int32()),
        pa.field("n_image_tokens", pa.int32()),
        pa.field("argmax_id", pa.int32()),  # lowest id on a tie
        pa.field("argmax_text", pa.string()),  # its vocabulary piece, not decoded text
        pa.field("argmax_logit", pa.float32()),
        pa.field("log_z", pa.float32()),  # log-sum-exp over the vocabulary
        pa.field("candidate_logits", pa.list_(pa.float32())),  # parallel to metadata["candidate_ids"]
        pa.field("candidate_ranks", pa.list_(pa.int32())),  # 1 = largest; equal logits rank by id
        pa.field("top_ids", pa.list_(pa.int32())),  # the 20 largest, ties by lower id
        pa.field("top_logits", pa.list_(pa.float32())),
        pa.field("new_ids", pa.list_(pa.int32())),  # greedy continuation; new_ids[0] == argmax_id
        pa.field("new_text", pa.string()),  # special tokens skipped
        pa.field("full_text", pa.string()),  # prompt and continuation decoded together, special tokens kept
        pa.field("status", pa.string(), nullable=False),  # ok | invalid
        pa.field("reason", pa.string()),  # why invalid
    ]
)
"""One row per distinct uid, raw first-step logits in float32; every measured column is null where invalid."""
# Records of a server (metadata "unlisted") hold log-probabilities, log_z 0, and as many top_logits as it listed. A
# candidate that it did not list is null inside candidate_logits and candidate_ranks: it is at most the last of
# top_logits. n_image_tokens and full_text are null.

DECISION_IDENTITY = pa.schema(
    [
        pa.field("uid", pa.string()),  # null where the source does not know the question (printed counts)
        pa.field("dataset", pa.string(), nullable=False),
        pa.field("split", pa.string(), nullable=False),
        pa.field("question_id", pa.string(), nullable=False),
        pa.field("image", pa.string()),
        pa.field("object", pa.string()),
        pa.field("question", pa.string()),
        pa.field("label", pa.string(), nullable=False),
        pa.field("first_token_id", pa.int32()),
        pa.field("order_known", pa.bool_(), nullable=False),
    ]
)


def decisions_schema(readouts: list[str]) -> pa.Schema:
    """Return the schema of a decision table: identity columns, then three columns per readout.

    `<readout>`: yes | no | unparsed | invalid; null where the source cannot say.
    `<readout>.margin`: largest yes logit minus largest no logit, float32; null for string readouts.
    `<readout>.tie`: whether the two maxima are equal; null where there are no logits.
    """
    columns = [
        column
        for name in readouts
        for column in (
            pa.field(name, pa.string()),
            pa.field(f"{name}.margin", pa.float32()),
            pa.field(f"{name}.tie", pa.bool_()),
        )
    ]
    return pa.schema([*DECISION_IDENTITY, *columns])


def readouts_of(decisions: pa.Table) -> list[str]:
    """Return the readouts of a decision table, in column order."""
    return [name.removesuffix(".tie") for name in decisions.column_names if name.endswith(".tie")]


CELL = pa.schema(
    [
        pa.field("dataset", pa.string(), nullable=False),
        pa.field("model", pa.string(), nullable=False),
        pa.field("precision", pa.string(), nullable=False),
        pa.field("template", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),  # inference | files | published | counts
    ]
)
"""What one decision file is about; the leading columns of every table right of decisions."""

_COUNTS = (
    "n",  # rows, invalid ones included
    "tp",
    "fp",
    "tn",
    "fn",  # parsed answers only
    "unparsed_pos",
    "unparsed_neg",
    "invalid_pos",
    "invalid_neg",
    "ties",
)
_RATES = (
    "f1",
    "precision_rate",  # TP / (TP + FP); `precision` is the cell's number format
    "recall",
    "accuracy",
    "yes_rate",
    "f1_ties_yes",
    "f1_ties_no",
    "f1_ties_excluded",
    "f1_parsed_only",
    "precision_parsed_only",
    "recall_parsed_only",
    "accuracy_parsed_only",
)
_INTERVALS = ("f1_low", "f1_high", "yes_rate_low", "yes_rate_high", "f1_wilson_low", "f1_wilson_high")

SCORES = pa.schema(
    [
        *CELL,
        pa.field("labels", pa.string(), nullable=False),  # pope | repope | …
        pa.field("split", pa.string(), nullable=False),  # a split, or an aggregate: macro | pooled | distinct
        pa.field("readout", pa.string(), nullable=False),
        pa.field("subset", pa.string(), nullable=False),  # all | first_500 | …
        *[pa.field(name, pa.int64()) for name in _COUNTS],  # null for macro, which has no matrix of its own
        *[pa.field(name, pa.float64()) for name in _RATES],
        *[pa.field(name, pa.float64()) for name in _INTERVALS],
    ]
)
"""One row per (labels, split, readout, subset). Unparsed counts as wrong: an unparsed positive is a miss in
recall and F1, an unparsed row of either label is wrong in accuracy; it is never a yes, so it does not enter
precision. Invalid rows are left out of every rate and counted. Undefined is null."""

TRANSITIONS = pa.schema(
    [
        *CELL,
        pa.field("labels", pa.string(), nullable=False),
        pa.field("split", pa.string(), nullable=False),
        pa.field("readout_from", pa.string(), nullable=False),
        pa.field("readout_to", pa.string(), nullable=False),
        pa.field("label", pa.string(), nullable=False),
        pa.field("decision_from", pa.string(), nullable=False),
        pa.field("decision_to", pa.string(), nullable=False),
        pa.field("n", pa.int64(), nullable=False),
    ]
)
"""Paired decisions of two readouts by label; every (label, from, to) of yes/no is there, zeros included."""

GAP = pa.schema(
    [
        *CELL,
        pa.field("labels", pa.string(), nullable=False),
        pa.field("split", pa.string(), nullable=False),
        pa.field("readout_from", pa.string(), nullable=False),
        pa.field("readout_to", pa.string(), nullable=False),
        pa.field("quantity", pa.string(), nullable=False),
        pa.field("numerator", pa.int64()),
        pa.field("denominator", pa.int64()),
        pa.field("value", pa.float64()),
        pa.field("note", pa.string()),
    ]
)
"""Exact rationals of the gap algebra, long form: value = numerator / denominator, null where that is 0/0."""
