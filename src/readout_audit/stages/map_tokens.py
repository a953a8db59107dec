"""Stage: write the token map of one model's tokenizer under its templates."""

import argparse
import json
import logging
from collections.abc import Sequence
from pathlib import Path

from readout_audit.errors import AuditError
from readout_audit.fileio import write_json
from readout_audit.logs import stage_main
from readout_audit.models.templates import Template
from readout_audit.tokens import tokenmap

LOGGER = logging.getLogger("readout_audit.stages.map_tokens")


def read_templates(text: str) -> dict[str, Template]:
    """Return the templates in a JSON object {name: template}, each under its own name."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise AuditError(f"--templates is not valid JSON ({error}).") from error
    return {name: Template.from_dict({**template, "name": name}) for name, template in value.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Write the token map; see `readout_audit.tokens.tokenmap`."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--model", required=True, help="the model's name in the config")
    parser.add_argument("--tokenizer", required=True, type=Path, help="folder that holds its tokenizer")
    parser.add_argument("--templates", required=True, help="JSON object {name: template}")
    parser.add_argument("--output", required=True, type=Path)
    arguments = parser.parse_args(argv)
    token_map = tokenmap.build(arguments.model, arguments.tokenizer, read_templates(arguments.templates))
    write_json(arguments.output, token_map)
    for rule in ("single", "scan"):
        LOGGER.info("%s, %s: yes %s, no %s", arguments.model, rule, *token_map[rule].values())
    return 0


if __name__ == "__main__":
    raise SystemExit(stage_main(main))
