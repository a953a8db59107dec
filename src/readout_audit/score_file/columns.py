"""Typed columns of loaded rows: what is not of the right kind stops with file and place."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from readout_audit.contracts import LABELS, NO, UNPARSED, YES
from readout_audit.errors import AuditError
from readout_audit.score_file.load import Loaded, Row, shown

IMAGE_KEYS = ("image", "image_path", "image_name", "image_source", "image_id")
SPLIT_KEYS = ("split", "category")
LONGEST_IMAGE_NAME = 1024
"""Characters; anything longer in an image column is the picture itself."""

_AUTHORS_WORDS = {"yes": YES, "no": NO, "unknown": UNPARSED}


class Columns:
    """Typed columns of loaded rows; a None value is absent."""

    def __init__(self, path: Path, loaded: Loaded, failed: Sequence[bool]) -> None:
        self.path, self.loaded, self.failed = path, loaded, failed
        # By key its first value that is there, so that a gap in the first row hides no column.
        self.first: dict[str, Any] = {}
        for row, bad in zip(loaded.rows, failed, strict=True):
            if not bad:
                for key, value in row.items():
                    if self.first.get(key) is None:
                        self.first[key] = value

    def _each(self, read: Callable[[Row, str], Any], otherwise: Any = "") -> list[Any]:
        """Return `read(row, place)` of each row; error rows give `otherwise`."""
        rows = zip(self.loaded.rows, self.loaded.places, self.failed, strict=True)
        return [otherwise if bad else read(row, place) for row, place, bad in rows]

    def texts(self, key: str) -> list[str | None]:
        """Return answers: text, or None where there is none. A number is taken as it is written."""

        def read(row: Row, place: str) -> str | None:
            value = row.get(key)
            if value is None or isinstance(value, str):
                return value
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise AuditError(
                    f"{self.path}, {place}: {key} must be the text of an answer, not {type(value).__name__}."
                )
            return str(value)

        return self._each(read, None)

    def prompts(self, key: str) -> list[str]:
        """Return questions or prompts, exactly as written."""

        def read(row: Row, place: str) -> str:
            value = row.get(key)
            if not isinstance(value, str) or not value.strip():
                raise AuditError(
                    f"{self.path}, {place}: {key} must be a text that is not blank, not {shown(value)}."
                )
            return value

        return self._each(read)

    def images(self) -> list[str] | None:
        """Return plain file names; None where no row-level column names an image."""
        for key in IMAGE_KEYS:
            sample = self.first.get(key)
            if sample is None or (isinstance(sample, str) and len(sample) > LONGEST_IMAGE_NAME):
                continue  # a picture in base64 names nothing
            return self._each(partial(self._image, key))
        return None

    def _image(self, key: str, row: Row, place: str) -> str:
        return plain_name(row.get(key), f"{self.path}, {place}")

    def ids(self, key: str) -> list[str] | None:
        """Return ids as text; a float that is a whole number (from a spreadsheet) is that number."""
        if self.first.get(key) is None:
            return None

        def read(row: Row, place: str) -> str:
            value = row.get(key)
            if isinstance(value, float) and value.is_integer():
                value = int(value)
            if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
                raise AuditError(
                    f"{self.path}, {place}: {key} must be a whole number or a text, not {shown(value)}."
                )
            return str(value).strip()

        rows = zip(self.loaded.rows, self.loaded.places, strict=True)
        return [read(row, place) for row, place in rows]

    def labels(self, key: str | None) -> list[str] | None:
        """Return labels in lower case, of error rows too; None where the file has none."""
        if key is None or self.first.get(key) is None:
            return None
        rows = zip(self.loaded.rows, self.loaded.places, strict=True)
        return [label_word(row.get(key), f"{self.path}, {place}, {key}") for row, place in rows]

    def splits(self) -> list[tuple[str, ...]] | None:
        """Return the splits of each row; VLMEvalKit writes several with commas."""
        key = next((key for key in SPLIT_KEYS if isinstance(self.first.get(key), str)), None)
        if key is None:
            return None

        def read(row: Row, place: str) -> tuple[str, ...]:
            parts = [part.strip().lower() for part in str(row.get(key) or "").split(",")]
            if not all(parts):
                raise AuditError(f"{self.path}, {place}: {key} is empty though other rows name a split.")
            return tuple(parts)

        return self._each(read, ())

    def decisions(self, key: str) -> list[str]:
        """Return decisions that the authors' files hold."""

        def read(row: Row, place: str) -> str:
            value = row.get(key)
            if not isinstance(value, str) or value not in _AUTHORS_WORDS:
                raise AuditError(
                    f"{self.path}, {place}: {key} must be yes, no or unknown, not {shown(value)}."
                )
            return _AUTHORS_WORDS[value]

        return self._each(read, "invalid")


def plain_name(value: Any, where: str) -> str:
    """Return the last part of an image path."""
    if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
        raise AuditError(f"{where}: the image must be a file name, not {shown(value)}.")
    return str(value).replace("\\", "/").rsplit("/", 1)[-1].strip()


def label_word(value: Any, where: str) -> str:
    """Return a label in lower case."""
    label = value.strip().lower() if isinstance(value, str) else value
    if label not in LABELS:
        raise AuditError(f"{where}: the label must be yes or no, not {shown(value)}.")
    return str(label)
