"""The files of a bundle, and how they are written: the same run gives the same bytes.

A bundle holds every decision of every question, so that anyone can score it again under other labels, draw other
intervals, or see which questions two readouts read differently (recommendation 4 of the paper). Where the run has
records, they go along with their signals and questions in the places where a run with `records_from: files` looks for them.
"""

import io
import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from readout_audit.contracts import SCORES, decisions_schema, readouts_of
from readout_audit.errors import AuditError
from readout_audit.export.readme import Contents, readme
from readout_audit.fileio import read_table, replacing
from readout_audit.report.run_folder import RunFolder
from readout_audit.report.statement import Asked, read_asked, statements
from readout_audit.scores.decisions import read_decisions

CHECKSUMS = "SHA256SUMS"
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip file can name: every entry has it, so that no clock is in the bytes."""

PIECE = "first_token_piece"


class Entry(NamedTuple):
    """One file of the bundle by its path inside."""

    name: str
    data: bytes


def entries(run: RunFolder) -> Iterator[Entry]:
    """Yield the files of a run's bundle, one at a time, without the checksums.

    Raises:
        AuditError: a file of the run cannot be read.
    """
    asked = {
        cell: read_asked(path, run.file("records", cell)) for cell, path in run.cells("decisions").items()
    }
    lines = {cell: list(statements(one).values()) for cell, one in asked.items()}
    for cell, path in run.cells("decisions").items():
        yield Entry(f"decisions/{cell}.parquet", path.read_bytes())
        yield Entry(f"decisions/{cell}.csv", decisions_csv(path))
        yield Entry(f"settings/{cell}.json", settings_json(asked[cell]))
    others = list(_copied(run))
    yield from others
    if (run.results / "scores.parquet").is_file():
        yield Entry("scores.csv", scores_csv(run.results / "scores.parquet"))
    text = "\n".join(line for cell in sorted(lines) for line in [cell, *(f"  {one}" for one in lines[cell])])
    yield Entry("statement.txt", f"{text}\n".encode())
    contents = Contents(run.name, asked, lines, sorted({entry.name.split("/")[0] for entry in others}))
    yield Entry("README.md", readme(contents).encode())


def _copied(run: RunFolder) -> Iterator[Entry]:
    """Yield what goes along as it is: records, signals, questions and token maps, where the run has them."""
    tables = [(kind, ".parquet") for kind in ("records", "signals", "questions")]
    for kind, suffix in (*tables, ("tokens", ".json")):
        folder = run.results / kind
        for path in sorted(folder.rglob(f"*{suffix}")):
            # A record's manifest names times and machines; it is no part of the result.
            if not path.name.startswith(".") and not path.name.endswith(".manifest.json"):
                yield Entry(f"{kind}/{path.relative_to(folder).as_posix()}", path.read_bytes())


def decisions_csv(path: Path) -> bytes:
    """Return a decision file as CSV, with the vocabulary piece of every first token beside its id.

    Raises:
        AuditError: the file cannot be read.
    """
    known = read_decisions(path)
    table = read_table(path, decisions_schema(_readouts(path)), "the decision file")
    pieces: dict[str, str] = dict(known.metadata.get("first_token_pieces") or {})
    for readout in known.metadata.get("readouts", {}).values():
        pieces |= {
            token: piece for token, piece in (readout.get("pieces") or {}).items() if piece is not None
        }
    named = [
        None if token is None else pieces.get(str(token)) for token in table["first_token_id"].to_pylist()
    ]
    place = table.column_names.index("first_token_id") + 1
    return _csv(table.add_column(place, pa.field(PIECE, pa.string()), pa.array(named, pa.string())))


def _readouts(path: Path) -> list[str]:
    """Return the readouts of a decision file that is known to be one."""
    return readouts_of(pq.read_schema(path).empty_table())


def scores_csv(path: Path) -> bytes:
    """Return a score table as CSV.

    Raises:
        AuditError: the file cannot be read.
    """
    return _csv(read_table(path, SCORES, "the score table"))


def _csv(table: pa.Table) -> bytes:
    """Return a table as CSV: quotes where needed, LF line ends, nothing for null."""
    stream = io.BytesIO()
    pa_csv.write_csv(table.combine_chunks(), stream, pa_csv.WriteOptions(quoting_style="needed"))
    return stream.getvalue()


def settings_json(asked: Asked) -> bytes:
    """Return how a cell was made and what each readout read, as indented JSON."""
    content = {"decisions": asked.described, "records": asked.record or None, "questions": asked.counts}
    return (json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()


def checksums(files: Sequence[tuple[str, str]]) -> bytes:
    """Return (name, hash) pairs in the form that `sha256sum --check` reads, sorted by name."""
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(files)).encode()


def write_bundle(run: RunFolder, output: Path) -> int:
    """Write the bundle as one zip file, or as a folder where `output` does not end in .zip.

    Returns:
        how many files are in it.

    Raises:
        AuditError: a file of the run cannot be read, or the folder is there and not empty.
    """
    return _write_zip(run, output) if output.suffix == ".zip" else _write_folder(run, output)


def _write_zip(run: RunFolder, output: Path) -> int:
    """Write a zip file, everything under a folder of the run's name."""
    sums: list[tuple[str, str]] = []
    with replacing(output) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for entry in entries(run):
            _add(archive, f"{run.name}/{entry.name}", entry.data)
            sums.append((entry.name, sha256(entry.data).hexdigest()))
        _add(archive, f"{run.name}/{CHECKSUMS}", checksums(sums))
    return len(sums) + 1


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Add one file with the same time, rights and system whatever the machine."""
    info = zipfile.ZipInfo(name, _ZIP_EPOCH)
    info.create_system = 3  # Unix, also where this runs elsewhere
    info.external_attr = 0o100644 << 16
    # Parquet is compressed already.
    info.compress_type = zipfile.ZIP_STORED if name.endswith(".parquet") else zipfile.ZIP_DEFLATED
    archive.writestr(info, data)


def _write_folder(run: RunFolder, output: Path) -> int:
    """Write a folder, whole or not at all."""
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise AuditError(f"{output}: already there and not an empty folder; name another, or remove it.")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{output.name}.", dir=output.parent))
    except OSError as error:
        raise AuditError(f"{output}: cannot be written ({error.strerror}); name another place.") from error
    try:
        sums: list[tuple[str, str]] = []
        for entry in entries(run):
            target = temporary / entry.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(entry.data)
            sums.append((entry.name, sha256(entry.data).hexdigest()))
        (temporary / CHECKSUMS).write_bytes(checksums(sums))
        temporary.chmod(0o755)
        temporary.replace(output)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return len(sums) + 1
