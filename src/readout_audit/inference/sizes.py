"""What weights and answers take, told from files alone: nothing here loads a model or imports torch."""

import json
from math import prod
from pathlib import Path

from readout_audit.errors import AuditError

RECORD_BYTES, PART_BYTES = 850, 1700
"""Of one question in the record file and in the part files, which compress less because they are small; the most of
six models measured (242 questions, vocabularies of up to 152k)."""

_ELEMENT_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2, "float32": 4, "bfloat16": 2, "float16": 2}
"""Of a number, by precision or by compute dtype."""

_QUANTISED_BYTES = {"int8": 1.0, "nf4": 0.5 + 4 / 64}
"""Bytes of one quantised weight: nf4 keeps a float32 scale per block of 64."""


def answer_bytes(questions: int) -> int:
    """Return what the answers to so many questions take on disk, records and kept answers together."""
    return questions * (RECORD_BYTES + PART_BYTES)


def stored_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Return the shape of every weight in a folder's safetensors files, from their headers alone.

    Raises:
        AuditError: a file is damaged.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for path in sorted(folder.glob("*.safetensors")):
        try:
            with path.open("rb") as stream:
                length = int.from_bytes(stream.read(8), "little")
                header = json.loads(stream.read(min(length, 1 << 27)))
            shapes |= {name: tuple(one["shape"]) for name, one in header.items() if name != "__metadata__"}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise AuditError(f"{path}: the weights cannot be read; fetch the model again.") from error
    return shapes


def expected_bytes(folder: Path, precision: str, compute_dtype: str | None) -> tuple[int, int]:
    """Return how many parameters a checkpoint has, and the bytes they will take once loaded.

    Under int8 and nf4 all matrices but embeddings and output head are quantised; the rest is in `compute_dtype`.
    """
    quantised = _QUANTISED_BYTES.get(precision)
    element = _ELEMENT_BYTES[precision if quantised is None else str(compute_dtype)]
    parameters, total = 0, 0.0
    for name, shape in stored_shapes(folder).items():
        matrix = len(shape) == 2 and not any(part in name for part in ("embed", "lm_head"))
        parameters += prod(shape)
        total += prod(shape) * (quantised if quantised is not None and matrix else element)
    return parameters, int(total)


def size(count: int) -> str:
    """Return bytes as people read them."""
    return f"{count / 2**30:.2f} GiB" if count >= 2**27 else f"{count / 2**20:.1f} MiB"
