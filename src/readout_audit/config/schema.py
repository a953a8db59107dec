"""A configuration that breaks its schema is refused in one sentence that names the key and the remedy."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, relevance
from jsonschema.validators import extend

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

_SHOWN = {None: "null", True: "true", False: "false"}
"""Values as YAML writes them."""


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """Hold a text against a pattern; one with a line break never fits, though `$` matches before the last."""
    if isinstance(instance, str) and ("\n" in instance or not re.search(pattern, instance)):
        yield ValidationError("a text of another form")


def _is_integer(checker: Any, instance: Any) -> bool:
    """Tell whether a value is written as a whole number; JSON Schema alone would admit 2.0."""
    return isinstance(instance, int) and not isinstance(instance, bool)


_Validator: Any = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {"pattern": _pattern},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer),
)


def check_against_schema(value: Any, schema_file: Path, where: str) -> None:
    """Raise an `AuditError` with the most telling violation of the schema, or return.

    Args:
        value: the parsed configuration.
        schema_file: a JSON schema written as YAML, every key with a description.
        where: prefix of the key in the sentence, such as "known_models."; may be empty.
    """
    errors = sorted(_Validator(_schema(schema_file)).iter_errors(value), key=relevance, reverse=True)
    if errors:
        raise AuditError(sentence(errors[0], where))


@cache
def _schema(file: Path) -> Any:
    """Return a schema, parsed once."""
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def closest(name: object, known: Iterable[str]) -> str:
    """Return " (did you mean X?)" for a name that resembles a known one, else nothing."""
    matches = difflib.get_close_matches(str(name), list(known), n=1)
    return f" (did you mean {matches[0]!r}?)" if matches else ""


def sentence(error: ValidationError, where: str) -> str:
    """Return one sentence for a schema violation: what, where, and the remedy."""
    key = _path(error, where)
    if "propertyNames" in error.absolute_schema_path:
        place = key if key != "the configuration" else "the top level"
        return f"config: {_shown(error.instance)} at {place} must be {_wanted(error)}; choose another name."
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


def _path(error: ValidationError, where: str) -> str:
    """Return the key that a violation is at; list entries are counted from 1."""
    steps = list(error.absolute_path)
    entry = ""
    if steps and isinstance(steps[-1], int):
        entry = f"entry {steps[-1] + 1} of "
        steps.pop()
    key = where + ".".join(str(step) for step in steps)
    return entry + (key.rstrip(".") or "the configuration")


def _wanted(error: ValidationError) -> str:
    """Return what a schema keyword asks for, in words."""
    limit: Any = error.validator_value
    match error.validator:
        case "type":
            names = [limit] if isinstance(limit, str) else list(limit)
            return " or ".join(_TYPE_NAMES[name] for name in names)
        case "enum":
            return "one of " + ", ".join("null" if choice is None else str(choice) for choice in limit)
        case "minimum" | "exclusiveMinimum":
            return f"at least {limit}"
        case "maximum":
            return f"at most {limit}"
        case "minLength":
            return "a text that is not empty"
        case "maxLength":
            return f"a text of at most {limit} characters"
        case "minItems":
            return "a list with at least one entry" if limit == 1 else f"a list of {limit} entries"
        case "maxItems":
            return f"a list of at most {limit} entries"
        case "uniqueItems":
            return "a list that names nothing twice"
        case "pattern":
            schema = error.schema if isinstance(error.schema, Mapping) else {}
            return str(schema.get("title", f"a text of the form {limit}"))
        case other:
            return f"valid under {other} {limit}"


def _shown(value: Any) -> str:
    """Return a value as it stands in the sentence, shortened."""
    text = _SHOWN[value] if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _description(schema: Any) -> str:
    """Return the schema's own description in brackets, if it has one."""
    text = schema.get("description") if isinstance(schema, Mapping) else None
    return f" ({text.rstrip('.')})" if text else ""


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


def _join(key: str, name: str) -> str:
    """Return the path of a key below another."""
    return name if key == "the configuration" else f"{key}.{name}"
