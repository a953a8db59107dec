"""The labelled rows of each split that a correction can be scored on."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from readout_audit.corrections.evidence import Files
from readout_audit.corrections.tallies import Rows
from readout_audit.errors import AuditError
from readout_audit.readouts.base import valid_rows
from readout_audit.scores.blocks import ALL, split_blocks
from readout_audit.scores.bootstrap import Images, number_images
from readout_audit.scores.confusion import YES
from readout_audit.scores.decisions import Decisions
from readout_audit.scores.labels import LabelSet


class Block(NamedTuple):
    """One split under one label set.

    Attributes:
        labels, split: which.
        rows: the rows that have a label and a valid record.
        indices: shape (m,), their places in the decision file.
    """

    labels: str
    split: str
    rows: Rows
    indices: npt.NDArray[np.int64]


def known_images(decisions: Decisions) -> Images:
    """Number the images of a decision file.

    Raises:
        AuditError: the source does not know which image a row is about.
    """
    images = number_images(decisions.identity["image"])
    if images is None:
        raise AuditError(
            "these decisions do not say which image each row is about, so nothing can be resampled by image; "
            "corrections and the probe need decisions made from records."
        )
    return images


def blocks(decisions: Decisions, label_sets: Sequence[LabelSet], files: Files) -> Iterator[Block]:
    """Yield every split under every label set; rows whose record is invalid are left out.

    Raises:
        AuditError: a row's question is not among the records.
    """
    images = known_images(decisions)
    question = pc.index_in(decisions.identity["uid"], value_set=files.uids.combine_chunks())
    if question.null_count:
        raise AuditError(
            f"{question.null_count} rows of the decisions ask questions that the records do not hold; "
            "give the records these decisions were made from."
        )
    of_row = question.to_numpy()
    valid = valid_rows(files.records)[of_row]
    for label_set in label_sets:
        for split in split_blocks(decisions, label_set):
            if split.subset != ALL:
                continue
            indices = split.rows[valid[split.rows]]
            rows = Rows(
                of_row[indices].astype(np.int64),
                images.codes[indices],
                label_set.codes[indices] == YES,
                images,
            )
            yield Block(label_set.name, split.split, rows, indices)


def fold_of_images(images: Images, folds: int, seed: int) -> npt.NDArray[np.int64]:
    """Deal the images into folds: shuffled with the seed, then round the folds; shape (images,).

    Raises:
        AuditError: there are fewer than two folds.
    """
    if folds < 2:
        raise AuditError(f"cross-fitting needs 2 folds or more, not {folds}; give a larger number of folds.")
    order = np.random.default_rng([seed, 2]).permutation(images.n)
    fold = np.empty(images.n, dtype=np.int64)
    fold[order] = np.arange(images.n) % folds
    return fold
