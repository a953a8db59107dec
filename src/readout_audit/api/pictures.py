"""A picture as a server takes it: the file's own bytes in a data URI."""

import base64
import io
import warnings
from pathlib import Path

from PIL import Image

from readout_audit.inference.images import decode, load_file

HOW_SENT = "the file's bytes in a data URI; another format than these as PNG of its RGB: JPEG, PNG, WEBP"
_TAKEN = ("JPEG", "PNG", "WEBP")
"""Formats that every server with pictures documents."""


def data_uri(folder: Path, name: str) -> tuple[str | None, str | None, str | None]:
    """Return a picture as a data URI, the hash of its file, and why it cannot be sent.

    The bytes go as they are, so that nothing is lost on the way; whether the server applies an EXIF
    orientation is its own affair. A picture that we cannot decode is not sent.
    """
    file = load_file(folder, name)
    pixels, fault = decode(file)
    if pixels is None:
        return None, file.sha256, fault
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        with Image.open(io.BytesIO(file.data)) as opened:
            kind = opened.format
    data = file.data
    if kind not in _TAKEN:
        written = io.BytesIO()
        pixels.save(written, "PNG")
        kind, data = "PNG", written.getvalue()
    return f"data:image/{kind.lower()};base64,{base64.b64encode(data).decode()}", file.sha256, None


def file_hash(folder: Path, name: str) -> str | None:
    """Return the hash of a picture's file, None where it cannot be read."""
    return load_file(folder, name).sha256
