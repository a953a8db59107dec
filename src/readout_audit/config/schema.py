"""A configuration that breaks its schema is refused in one sentence that names the key and the remedy."""

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, relevance

from readout_audit.errors import AuditError

_TYPE_NAMES = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "null",
    "number": "a number",
    "object": "a dictionary",
    "string": "a text",
}


def check_against_schema(value: Any, schema_file: Path, where: str) -> None:
    """Raise an `AuditError` with the most telling violation of the schema, or return.

    Args:
        value: the parsed configuration.
        schema_file: a JSON schema written as YAML, every key with a description.
        where: prefix of the key in the sentence, such as "known_models."; may be empty.
    """
    schema = yaml.safe_load(schema_file.read_text(encoding="utf-8"))
    errors = sorted(Draft202012Validator(schema).iter_errors(value), key=relevance, reverse=True)
    if errors:
        raise AuditError(sentence(errors[0], where))


def closest(name: object, known: Iterable[str]) -> str:
    """Return " (did you mean X?)" for a name that resembles a known one, else nothing."""
    matches = difflib.get_close_matches(str(name), list(known), n=1)
    return f" (did you mean {matches[0]!r}?)" if matches else ""


def sentence(error: ValidationError, where: str) -> str:
    """Return one sentence for a schema violation: what, where, and the remedy."""
    key = where + ".".join(_step(step) for step in error.absolute_path)
    key = key.rstrip(".") or "the configuration"
    if error.validator == "additionalProperties":
        return _unknown_key(error, key, where)
    if error.validator == "required":
        missing = str(error.message).split("'")[1]
        return f"config: {_join(key, missing)} is missing{_purpose(error.schema, missing)}; add it."
    wanted = _wanted(error)
    return f"config: {key} is {_shown(error.instance)}, but must be {wanted}{_description(error.schema)}."


def _unknown_key(error: ValidationError, key: str, where: str) -> str:
    """Return the sentence for a key that the schema does not know."""
    known = list(_properties(error.schema))
    unknown = sorted(str(name) for name in _instance(error) if name not in known)
    name = unknown[0]
    place = key if key != "the configuration" else "the top level"
    return f"config: unknown key {name!r} at {place}{closest(name, known)}; remove it or correct its name."


def _wanted(error: ValidationError) -> str:
    """Return what a schema keyword asks for, in words."""
    limit: Any = error.validator_value
    match error.validator:
        case "type":
            names = [limit] if isinstance(limit, str) else list(limit)
            return " or ".join(_TYPE_NAMES[name] for name in names)
        case "enum":
            return "one of " + ", ".join(str(choice) for choice in limit)
        case "minimum" | "exclusiveMinimum":
            return f"at least {limit}"
        case "maximum":
            return f"at most {limit}"
        case "minItems":
            return "a list with at least one entry" if limit == 1 else f"a list of {limit} entries"
        case "maxItems":
            return f"a list of at most {limit} entries"
        case "uniqueItems":
            return "a list that names nothing twice"
        case "pattern":
            return f"a text of the form {limit}"
        case other:
            return f"valid under {other} {limit}"


def _shown(value: Any) -> str:
    """Return a value as it stands in the sentence, shortened."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _description(schema: Any) -> str:
    """Return the schema's own description in brackets, if it has one."""
    text = schema.get("description") if isinstance(schema, Mapping) else None
    return f" ({text})" if text else ""


def _purpose(schema: Any, key: str) -> str:
    """Return the description of a missing key."""
    return _description(_properties(schema).get(key, {}))


def _properties(schema: Any) -> Mapping[str, Any]:
    """Return the keys that a schema describes."""
    properties: Mapping[str, Any] = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
    return properties


def _instance(error: ValidationError) -> Any:
    """Return the offending value (the library types it as possibly unset)."""
    return error.instance


def _step(step: str | int) -> str:
    """Return one step of a key's path: list positions are counted from 1."""
    return f"entry {step + 1}" if isinstance(step, int) else step


def _join(key: str, name: str) -> str:
    """Return the path of a key below another."""
    return name if key == "the configuration" else f"{key}.{name}"
