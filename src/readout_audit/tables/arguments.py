"""The command line that the table and figure stages share: name, files of the run, options."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from readout_audit.errors import AuditError
from readout_audit.tables.inputs import Options, Sources


def parse(
    argv: Sequence[str] | None, suffixes: Sequence[str], what: str
) -> tuple[str, Sources, Options, dict[str, Path]]:
    """Read the arguments of one stage.

    Args:
        argv: arguments; None takes the process's own.
        suffixes: formats the stage can write, each an option of its own.
        what: what the stage makes, for the help text.

    Returns:
        The name, the files, the options, and suffix -> file for each format asked for.
    """
    parser = argparse.ArgumentParser(description=f"Make one {what} of a run.", allow_abbrev=False)
    parser.add_argument("--name", required=True, help=f"name of the {what}")
    parser.add_argument("--options", required=True, help="JSON of tables.inputs.Options")
    for field in fields(Sources):
        several = field.default == ()
        parser.add_argument(
            f"--{field.name}", type=Path, nargs="+" if several else None, default=field.default
        )
    for suffix in suffixes:
        parser.add_argument(f"--{suffix}", type=Path)
    known = vars(parser.parse_args(argv))
    files: dict[str, Any] = {field.name: known[field.name] for field in fields(Sources)}
    sources = Sources(**_tuples(files))
    outputs = {suffix: known[suffix] for suffix in suffixes if known[suffix] is not None}
    return known["name"], sources, options_from_json(known["options"]), outputs


def options_from_json(text: str) -> Options:
    """Read options from a JSON object whose keys are fields of `Options`.

    Raises:
        AuditError: it is no such object.
    """
    try:
        return Options(**_tuples(json.loads(text)))
    except (json.JSONDecodeError, TypeError, AttributeError) as error:
        names = ", ".join(field.name for field in fields(Options))
        raise AuditError(f"--options must be a JSON object with keys out of {names} ({error}).") from error


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    """Return the same dictionary with its lists as tuples."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
