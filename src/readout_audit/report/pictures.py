"""The run's figures, carried inside the page as data URIs."""

import base64
import re
import struct
from pathlib import Path
from typing import NamedTuple

from readout_audit.errors import AuditError

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_HEADER = 24
"""Bytes of a PNG up to and with its width and height."""

_NUMBERED = re.compile(r"figure_(\d+)_(.+)")

CAPTIONS = {
    "figure_01_decision_path": "What each readout looks at, at the position where the answer begins.",
    "figure_02_confusion": "Right and wrong answers under both readouts, on the hardest split.",
    "figure_03_running_adversarial": "Share of yes so far, question by question, under both readouts, hardest split.",
    "figure_04_running_splits": "Share of yes so far, question by question, under both readouts, on every split.",
    "figure_05_first_tokens": "How often each spelling of yes and no was the first token of an answer.",
    "figure_06_samples": "Two questions for each outcome, with pictures where they are at hand.",
    "figure_07_corrections": "F1 of every correction beside the uncorrected readout, and what it trades between P and R.",
    "figure_07_published": "The paper's own Table 8, in order and as P and R; hollow: no confusion matrix gives the row.",
    "figure_08_attention": "Attention from the last prompt token to the image, right answers beside wrong ones.",
    "figure_09_logit_gap": "How far apart the yes and no logits are, by outcome.",
    "figure_10_encodings": "From spellings of yes and no to token ids, one vocabulary beside another.",
    "figure_beta_sweep": "F1 of every correction as its strength grows from 0 to 3.",
    "figure_layer_windows": "The attention effect for every window of layers; framed: the window that the other numbers use.",
    "figure_excluded_logits": "The logits that the two-token rule compares and the decoder never chose, by outcome.",
    "figure_readout_matrix": "F1 of the same answers under every readout.",
    "figure_ranking": "Whether the readout changes which model comes first.",
    "figure_variance": "What moves F1: readout, precision, template, release.",
}
"""What a figure shows, in one sentence; also its text for those who do not see it."""


class Picture(NamedTuple):
    """One figure.

    Attributes:
        title: "Figure 2", or the file's name where it has no number.
        uri: the file as a data URI.
        width, height: pixels.
    """

    name: str
    title: str
    caption: str
    uri: str
    width: int
    height: int


def read_picture(path: Path) -> Picture:
    """Read one PNG.

    Raises:
        AuditError: the file cannot be read or is no PNG.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise AuditError(f"{path}: the figure cannot be read ({error.strerror or error}).") from error
    if not data.startswith(_SIGNATURE) or len(data) < _HEADER:
        raise AuditError(f"{path}: this is no PNG file; draw the figure again.")
    width, height = struct.unpack(">II", data[16:_HEADER])
    match = _NUMBERED.fullmatch(path.stem)
    title = f"Figure {int(match[1])}" if match else path.stem
    words = match[2].replace("_", " ") if match else path.stem
    caption = CAPTIONS.get(path.stem, f"{words}.")
    uri = f"data:image/png;base64,{base64.b64encode(data).decode('ascii')}"
    return Picture(path.stem, title, caption, uri, width, height)
