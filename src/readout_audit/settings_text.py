"""How the settings of a cell are read from JSON and hashed, whatever they are the settings of."""

import json
from collections.abc import Collection
from typing import Any

from readout_audit.errors import AuditError
from readout_audit.fileio import canonical_json, sha256_text


def read_settings(text: str, keys: Collection[str], what: str = "settings") -> dict[str, Any]:
    """Return the JSON object in `text`, which must have exactly `keys`; `what` names it in a refusal.

    Raises:
        AuditError: it is no JSON object, or a key is unknown or missing.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise AuditError(f"the {what} are not valid JSON ({error}).") from error
    if not isinstance(value, dict):
        raise AuditError(f"the {what} must be one JSON object.")
    missing, surplus = sorted(set(keys) - set(value)), sorted(set(value) - set(keys))
    if missing or surplus:
        raise AuditError(f"the {what} lack keys {missing} and have unknown keys {surplus}.")
    return value


def hash_settings(value: dict[str, Any]) -> str:
    """Return the `settings_id`: the first 16 hex of the SHA-256 of the canonical JSON."""
    return sha256_text(canonical_json(value))[:16]
