"""Reading image files as the published pipelines do, and saying exactly why one cannot be read.

Every image becomes 8-bit RGB through Pillow's `convert("RGB")`. The EXIF orientation tag is NOT applied:
the evaluation scripts behind the published numbers do not apply it, and COCO's boxes and captions refer to
the stored grid. A file that carries one is read as stored and named in the log. 16-bit greyscale is scaled
to 8 bits (Pillow's own conversion would clip it to white).
"""

import hashlib
import io
import logging
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from readout_audit.errors import AuditError

LOGGER = logging.getLogger(__name__)

MAX_PIXELS = 89_478_485
"""Pillow's own bound, above which a file may be a decompression bomb: 256 MiB of RGB."""

HOW_READ = "Pillow convert('RGB'); EXIF orientation not applied; 16-bit grey scaled to 8 bits"

_ORIENTATION = 0x0112
_SIXTEEN_BIT = ("I", "I;16", "I;16B", "I;16L")


@dataclass(frozen=True)
class ImageFile:
    """The bytes of one image file, not yet decoded.

    Attributes:
        name: plain file name.
        sha256: hash of the bytes; None where they could not be read.
        data: the bytes.
        fault: why the file could not be read.
    """

    name: str
    sha256: str | None
    data: bytes
    fault: str | None = None


def check_name(name: str) -> None:
    """Refuse an image name that is not a plain file name (it comes from a question file, not from us)."""
    if not name or name in (".", "..") or any(mark in name for mark in ("/", "\\", "\0")):
        raise AuditError(f"image name {name!r} is not a plain file name; make the question table again.")


def load_file(folder: Path, name: str) -> ImageFile:
    """Read the bytes of image `name`; a missing or unreadable file comes back with its fault."""
    check_name(name)
    try:
        data = (folder / name).read_bytes()
    except FileNotFoundError:
        return ImageFile(name, None, b"", f"{name}: the image file is missing")
    except OSError as error:
        return ImageFile(name, None, b"", f"{name}: the image file cannot be read ({error.strerror})")
    return ImageFile(name, hashlib.sha256(data).hexdigest(), data)


def decode(file: ImageFile) -> tuple[Image.Image | None, str | None]:
    """Return the image as 8-bit RGB, or None and the reason it cannot be had."""
    if file.fault is not None:
        return None, file.fault
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(file.data)) as image:
                return to_rgb(image, file.name), None
    except _RefusedError as error:
        return None, f"{file.name}: {error}"
    except Image.DecompressionBombError:
        # Pillow itself refuses twice our bound, and names that one.
        return None, f"{file.name}: more than {MAX_PIXELS} pixels; it may be a decompression bomb"
    except UnidentifiedImageError:
        # Its own words hold an address in memory, which would make every run's records differ.
        return None, f"{file.name}: not a readable image (of no known format)"
    except (OSError, ValueError, SyntaxError, EOFError, MemoryError) as error:
        # Pillow's decoders raise all of these on damaged files.
        return None, f"{file.name}: not a readable image ({str(error) or type(error).__name__})"


class _RefusedError(Exception):
    """An image that is intact but will not be read."""


def to_rgb(image: Image.Image, name: str) -> Image.Image:
    """Return an opened image as 8-bit RGB; the size is checked before a pixel is decoded."""
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise _RefusedError(
            f"more than {MAX_PIXELS} pixels ({width}x{height}); it may be a decompression bomb"
        )
    if image.mode == "F":
        raise _RefusedError("floating-point pixels have no fixed range; convert the file to 8-bit RGB")
    if image.getexif().get(_ORIENTATION, 1) != 1:
        LOGGER.warning("%s carries an EXIF orientation, which is not applied", name)
    if image.mode in _SIXTEEN_BIT:
        return sixteen_bit_to_rgb(image)
    return image.convert("RGB")


def sixteen_bit_to_rgb(image: Image.Image) -> Image.Image:
    """Scale 16-bit grey values to 8 bits, v / 257 rounded half up, and repeat them in three channels."""
    values = np.asarray(image).astype(np.int64)
    if values.min() < 0 or values.max() > 0xFFFF:
        raise _RefusedError("grey values outside 0 to 65535; convert the file to 8-bit RGB")
    grey = ((values * 2 + 257) // 514).astype(np.uint8)
    return Image.fromarray(grey).convert("RGB")
