"""What a correction reads: records and signals of the same distinct questions, side by side."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from readout_audit.contracts import RECORDS
from readout_audit.errors import AuditError
from readout_audit.fileio import read_table, table_metadata
from readout_audit.readouts.base import Metadata, NotAvailableError, TokenSets, candidate_logits
from readout_audit.readouts.registry import get
from readout_audit.signals.schema import SIGNALS

Floats = npt.NDArray[np.float64]

MAX_READOUTS = ("legacy_8tok", "legacy_2tok", "dynamic_single", "vocab_scan", "in_context")
"""Readouts that compare the largest yes logit with the largest no logit: what a correction can act before."""

AUTHORS_WINDOW = (1, 577)
"""The positions the authors take for the image, end exclusive."""

AUTHORS_LAYERS = (14, 20)
"""The paper's "layers 14-20": a slice, end exclusive, counted from 0 (findings on Appendix F.3)."""


@dataclass(frozen=True)
class Evidence:
    """Records and signals of n distinct questions under one readout's token sets.

    Attributes:
        records: n rows of `contracts.RECORDS`.
        signals: n rows of `signals.schema.SIGNALS` in the same order, all null where a question has none.
        record_meta: metadata of the record file.
        signal_meta: metadata of the signals file; empty where there is no such file.
        sets: the ids the readout compares.
    """

    records: pa.Table
    signals: pa.Table
    record_meta: Metadata
    signal_meta: Metadata
    sets: TokenSets

    @cached_property
    def logits(self) -> tuple[Floats, Floats]:
        """Raw logits of the yes ids, shape (n, |Y|), and of the no ids; NaN where the record is invalid."""
        yes, no = (candidate_logits(self.records, self.record_meta, ids, "a correction") for ids in self.sets)
        return yes.astype(np.float64), no.astype(np.float64)

    @cached_property
    def gap(self) -> Floats:
        """Largest yes logit minus largest no logit of the main records, shape (n,); NaN where invalid.

        Both are float32 read as float64, whose difference has the sign of their comparison: gap > 0 is the
        readout's own decision.
        """
        yes, no = self.logits
        return _largest(yes) - _largest(no)

    @cached_property
    def yes(self) -> Floats:
        """Largest yes logit, shape (n,)."""
        return _largest(self.logits[0])

    @cached_property
    def largest_logit(self) -> Floats:
        """Largest logit of the vocabulary, shape (n,)."""
        return _floats(self.records["argmax_logit"])

    def signal(self, name: str) -> Floats:
        """Return a scalar signal, shape (n,), NaN where it is null."""
        return _floats(self.signals[name])

    @cached_property
    def held(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Places of the yes and of the no ids among the signals' candidates.

        Raises:
            NotAvailableError: the signals do not hold all of them.
        """
        column = {token: index for index, token in enumerate(self.signal_meta.get("candidate_ids", []))}
        outside = sorted({token for ids in self.sets for token in ids} - column.keys())
        if outside:
            raise NotAvailableError(f"the signals hold no logits of token ids {outside}")
        yes, no = (np.array([column[token] for token in ids]) for ids in self.sets)
        return yes, no

    def signal_logits(self, name: str) -> tuple[Floats, Floats]:
        """Return a signal's logits of the yes ids, shape (n, |Y|), and of the no ids; NaN where null.

        Raises:
            NotAvailableError: the signals do not hold these ids.
        """
        yes, no = self.held
        values = self.signal_lists(name, len(self.signal_meta["candidate_ids"]))
        return values[:, yes], values[:, no]

    def signal_gap(self, name: str) -> Floats:
        """Return largest yes logit minus largest no logit of a signal's logits, shape (n,)."""
        yes, no = self.signal_logits(name)
        return _largest(yes) - _largest(no)

    def signal_lists(self, name: str, width: int) -> Floats:
        """Return a list signal as shape (n, width), NaN in rows where it is null.

        Raises:
            AuditError: a list has another length.
        """
        column = self.signals[name].combine_chunks()
        there = pc.is_valid(column).to_numpy(zero_copy_only=False)
        kept = column.filter(pa.array(there))
        lengths = pc.list_value_length(kept).to_numpy(zero_copy_only=False)
        if (lengths != width).any():
            raise AuditError(
                f"signals, column {name}: a list has {int(lengths[lengths != width][0])} values, not {width}; "
                "compute the signals again."
            )
        values = np.full((len(there), width), np.nan)
        values[there] = kept.flatten().to_numpy(zero_copy_only=False).reshape(-1, width)
        return values

    @cached_property
    def layers(self) -> tuple[int, int]:
        """The layers an attention window covers, [first, end) from 0: what the signals say, or the paper's."""
        first, end = self.signal_meta.get("settings", {}).get("entropy_layers") or AUTHORS_LAYERS
        return int(first), int(end)

    @property
    def positions(self) -> int:
        """How many positions the fixed window has: what the signals say, or the authors' 576."""
        first, end = self.signal_meta.get("settings", {}).get("authors_window") or AUTHORS_WINDOW
        return int(end) - int(first)

    def attention(self, name: str) -> Floats:
        """Return attention by layer, shape (n, layers): a sum over positions, the mean over heads.

        Args:
            name: `attention_image` or `attention_window`.

        Raises:
            NotAvailableError: the signals do not say how many layers and heads there are.
        """
        n_layers, n_heads = (self.signal_meta.get(key) for key in ("n_layers", "n_heads"))
        if not n_layers or not n_heads:
            raise NotAvailableError("the signals hold no attention")
        flat = self.signal_lists(name, n_layers * n_heads)
        return np.asarray(flat.reshape(-1, n_layers, n_heads).mean(axis=2))

    def window_attention(self, name: str) -> Floats:
        """Return the mean over the layers of `layers` of that attention, shape (n,).

        Raises:
            NotAvailableError: the model has no such layers.
        """
        by_layer = self.attention(name)
        first, end = self.layers
        if not 0 <= first < end <= by_layer.shape[1]:
            raise NotAvailableError(
                f"the model has {by_layer.shape[1]} layers, not those from {first} to {end}"
            )
        return np.asarray(by_layer[:, first:end].mean(axis=1))


def _largest(logits: Floats) -> Floats:
    """Return the row maximum, NaN where a row is NaN."""
    return np.asarray(logits.max(axis=1))


def _floats(column: pa.ChunkedArray) -> Floats:
    """Return a numeric column as float64, NaN where it is null."""
    return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)


@dataclass(frozen=True)
class Files:
    """One record file and, where there is one, the signals file of the same answers."""

    records: pa.Table
    signals: pa.Table
    record_meta: dict[str, Any]
    signal_meta: dict[str, Any]

    def under(self, readout: str) -> Evidence:
        """Return what corrections read under the token sets of a readout.

        Raises:
            NotAvailableError: the readout does not compare two largest logits, or this model has no ids for it.
        """
        if readout not in MAX_READOUTS:
            raise NotAvailableError(
                f"a correction acts on a largest yes and a largest no logit; {readout!r} does not compare those, "
                f"{', '.join(MAX_READOUTS)} do."
            )
        sets = get(readout).ids(self.record_meta)
        assert sets is not None  # those readouts read ids
        return Evidence(self.records, self.signals, self.record_meta, self.signal_meta, sets)

    @property
    def uids(self) -> pa.ChunkedArray:
        """The uid of each of the n questions."""
        return self.records["uid"]


def read_files(records: Path, signals: Path | None) -> Files:
    """Read records and signals and put the signals in the records' order.

    Raises:
        AuditError: a file cannot be read, a uid stands twice, or the two files are not about the same answers.
    """
    recorded = read_table(records, RECORDS, "the record file")
    record_meta = table_metadata(recorded)
    _refuse_repeats(recorded, records)
    if signals is None:
        return Files(recorded, _take(SIGNALS.empty_table(), recorded), record_meta, {})
    measured = read_table(signals, SIGNALS, "the signals file")
    signal_meta = table_metadata(measured)
    _refuse_repeats(measured, signals)
    for key, other in (("model", "model"), ("settings_id", "record_settings_id")):
        if signal_meta.get(other, record_meta.get(key)) != record_meta.get(key):
            raise AuditError(
                f"{signals}: these signals belong to {key} {signal_meta[other]!r}, the records {records} to "
                f"{record_meta.get(key)!r}; compute the signals of these records."
            )
    return Files(recorded, _take(measured, recorded), record_meta, signal_meta)


def _refuse_repeats(table: pa.Table, path: Path) -> None:
    """Stop where a uid stands twice: a question has one answer and one set of signals."""
    repeated = len(table) - len(pc.unique(table["uid"]))
    if repeated:
        raise AuditError(f"{path}: {repeated} uids stand there more than once; make the file again.")


def _take(measured: pa.Table, recorded: pa.Table) -> pa.Table:
    """Return the signals of each record in turn, null where there are none."""
    rows = pc.index_in(recorded["uid"], value_set=measured["uid"].combine_chunks())
    return measured.combine_chunks().take(rows.combine_chunks())
