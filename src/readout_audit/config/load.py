"""From Snakemake's configuration dictionary to a checked plan, or one sentence."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from readout_audit.config.checks import CHECKS
from readout_audit.config.checks.known import Known
from readout_audit.config.plan import Plan
from readout_audit.config.schema import check_against_schema
from readout_audit.errors import AuditError

PARTS = ("models", "clips", "templates", "datasets", "labels", "images", "published", "predictions")
"""The definition files: `known_<part>` is checked against `<part>.schema.yaml`."""

MODEL_DEFAULTS: Mapping[str, Any] = {"repository": None, "revision": None, "folder": None, "pickled": False}
"""What the entry of a model or CLIP need not say."""

TEMPLATE_DEFAULTS: Mapping[str, Any] = {
    "text": None,
    "chat": False,
    "suffix": "",
    "answer_boundary": "clean",
}
"""What a prompt need not say."""


class _StrictLoader(yaml.SafeLoader):
    """YAML that refuses a key written twice, which YAML itself settles silently in favour of the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for position, key in enumerate(keys):
            if key in keys[:position]:
                line = node.value[position][0].start_mark.line + 1
                raise AuditError(
                    f"config: {node.start_mark.name}, line {line}: key {key!r} stands twice; keep one of them."
                )
        return super().construct_mapping(node, deep)


def check_files(paths: list[Path]) -> None:
    """Raise an `AuditError` for a configuration file that is no YAML dictionary or repeats a key."""
    for path in paths:
        read_file(path)


def read_file(path: Path) -> dict[str, Any]:
    """Return what a configuration file holds.

    Raises:
        AuditError: it is no YAML dictionary or repeats a key.
    """
    try:
        with path.open(encoding="utf-8") as stream:
            value = yaml.load(stream, Loader=_StrictLoader)
    except OSError as error:
        raise AuditError(f"config: {path} cannot be read ({error.strerror}); correct its path.") from error
    except UnicodeDecodeError as error:
        raise AuditError(
            f"config: {path} is not UTF-8 text (byte {error.start}); save it as UTF-8."
        ) from error
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise AuditError(f"config: {path} is not valid YAML ({reason}); correct it there.") from error
    if not isinstance(value, dict):
        raise AuditError(f"config: {path} must hold keys with values, such as run: demo; it holds none.")
    return value


def merged(paths: Sequence[Path]) -> dict[str, Any]:
    """Return files merged as Snakemake does (dictionaries by key, all else by the last file), defaults filled in."""
    config: dict[str, Any] = {}
    for path in paths:
        _merge(config, read_file(path))
    return with_defaults(config)


def _merge(config: dict[str, Any], update: Mapping[str, Any]) -> None:
    """Put the keys of `update` into `config`."""
    for key, value in update.items():
        if isinstance(value, Mapping):
            config[key] = dict(config[key]) if isinstance(config.get(key), Mapping) else {}
            _merge(config[key], value)
        else:
            config[key] = value


def with_defaults(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration whose models, CLIPs and prompts say what they left out; what is malformed stays as it is."""
    filled = dict(config)
    for part in ("known_models", "known_clips"):
        if part in filled:
            filled[part] = _filled(filled[part], MODEL_DEFAULTS)
    templates = config.get("known_templates")
    if isinstance(templates, Mapping):
        filled["known_templates"] = {
            model: _filled(prompts, TEMPLATE_DEFAULTS) for model, prompts in templates.items()
        }
    return filled


def _filled(entries: Any, defaults: Mapping[str, Any]) -> Any:
    """Return entries by name, each over the defaults."""
    if not isinstance(entries, Mapping):
        return entries
    return {
        name: {**defaults, **entry} if isinstance(entry, Mapping) else entry
        for name, entry in entries.items()
    }


def load_plan(config: Mapping[str, Any], schemas: Path, known: Known) -> Plan:
    """Return the plan of a configuration.

    Args:
        config: the merged configuration.
        schemas: folder of the JSON schemas.
        known: the names in the package's registries.

    Raises:
        AuditError: one sentence for the first fault.
    """
    config = with_defaults(config)
    for part in PARTS:
        check_against_schema(
            config.get(f"known_{part}", {}), schemas / f"{part}.schema.yaml", f"known_{part}."
        )
    check_against_schema(dict(config), schemas / "run.schema.yaml", "")
    for check in CHECKS:
        for fault in check(config, known):
            raise AuditError(f"config: {fault}")
    return Plan(config)
