"""Every kind of image file is read right or refused by name."""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from readout_audit.errors import AuditError
from readout_audit.inference.images import ImageFile, decode, load_file


def saved(tmp_path: Path, image: Image.Image, name: str, **how: object) -> ImageFile:
    image.save(tmp_path / name, **how)
    return load_file(tmp_path, name)


def pixels(file: ImageFile) -> np.ndarray:
    image, fault = decode(file)
    assert fault is None and image is not None and image.mode == "RGB"
    return np.asarray(image)


def test_grey(tmp_path: Path) -> None:
    file = saved(tmp_path, Image.new("L", (3, 2), 77), "grey.png")
    assert (pixels(file) == 77).all() and pixels(file).shape == (2, 3, 3)


def test_cmyk(tmp_path: Path) -> None:
    # Cyan without black: no red, full green and blue.
    file = saved(tmp_path, Image.new("CMYK", (16, 16), (255, 0, 0, 0)), "cmyk.jpg", quality=100)
    assert np.abs(pixels(file).astype(int) - [0, 255, 255]).max() <= 3


def test_palette(tmp_path: Path) -> None:
    image = Image.new("P", (4, 4), 1)
    image.putpalette([0, 0, 0, 10, 200, 30] + [0] * 762)
    assert (pixels(saved(tmp_path, image, "palette.gif")) == [10, 200, 30]).all()


def test_transparent_palette(tmp_path: Path) -> None:
    image = Image.new("P", (4, 4), 1)
    image.putpalette([0, 0, 0, 10, 200, 30] + [0] * 762)
    assert (pixels(saved(tmp_path, image, "palette.png", transparency=b"\xff\x00")) == [10, 200, 30]).all()


def test_sixteen_bit_grey_is_scaled_and_not_clipped(tmp_path: Path) -> None:
    values = np.array([[0, 257, 385, 386, 32896, 65535]], dtype=np.uint16)
    file = saved(tmp_path, Image.fromarray(values), "deep.png")
    # 385 / 257 = 1.498, 386 / 257 = 1.502
    assert pixels(file)[0, :, 0].tolist() == [0, 1, 1, 2, 128, 255]


def test_exif_orientation_is_not_applied(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    image = Image.new("RGB", (30, 10), (9, 9, 9))
    exif = image.getexif()
    exif[0x0112] = 6
    file = saved(tmp_path, image, "rotated.jpg", exif=exif)
    assert pixels(file).shape == (10, 30, 3)
    assert "rotated.jpg carries an EXIF orientation" in caplog.text


def test_one_pixel(tmp_path: Path) -> None:
    assert pixels(saved(tmp_path, Image.new("RGB", (1, 1), (1, 2, 3)), "one.png")).tolist() == [[[1, 2, 3]]]


def test_floating_point_pixels_are_refused(tmp_path: Path) -> None:
    image, fault = decode(saved(tmp_path, Image.new("F", (2, 2), 0.5), "float.tiff"))
    assert image is None and fault is not None and "float.tiff: floating-point pixels" in fault


def bomb(width: int, height: int) -> bytes:
    """A PNG header that promises a huge picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b""))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("edge", [9_500, 20_000])
def test_decompression_bombs_are_refused_before_decoding(edge: int) -> None:
    """9,500 squared is above Pillow's warning and below its error; 20,000 squared is above both."""
    image, fault = decode(ImageFile("bomb.png", "0" * 64, bomb(edge, edge)))
    assert image is None and fault is not None and fault.startswith("bomb.png: ") and "bomb" in fault


def damaged() -> dict[str, bytes]:
    out = io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(noise).save(out, "JPEG")
    jpeg = out.getvalue()
    return {
        "empty.jpg": b"",
        "text.jpg": b"<html>404</html>",
        "half.jpg": jpeg[: len(jpeg) // 2],
        "head.jpg": jpeg[:20],
        "bomb.png": bomb(10, 10),
    }


@pytest.mark.parametrize("name", list(damaged()))
def test_damaged_files_are_named(name: str) -> None:
    image, fault = decode(ImageFile(name, "0" * 64, damaged()[name]))
    assert image is None and fault is not None and fault.startswith(f"{name}: not a readable image")
    assert "0x" not in fault


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    assert load_file(tmp_path, "gone.jpg").fault == "gone.jpg: the image file is missing"
    (tmp_path / "folder.jpg").mkdir()
    file = load_file(tmp_path, "folder.jpg")
    assert file.sha256 is None and "cannot be read" in str(file.fault)
    assert decode(file) == (None, file.fault)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b.jpg", "a\\b.jpg", "/etc/passwd", "a\0b"])
def test_names_that_are_no_plain_file_names_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(AuditError, match="not a plain file name"):
        load_file(tmp_path, name)
