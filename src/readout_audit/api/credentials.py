"""The key of a server: read from the environment, sent in one header, and nowhere else."""

import os
import re
from typing import TYPE_CHECKING

from readout_audit.errors import AuditError

if TYPE_CHECKING:
    from requests import PreparedRequest

HIDDEN = "[key]"
_BEARER = re.compile(r"[A-Za-z0-9._~+/=:-]{8,}")
"""What a bearer token is made of. Nothing in it is escaped in JSON, so that it can be found in a reply."""


class ApiKey:
    """A key that does not show itself.

    Attributes:
        variable: name of the environment variable it was read from; None where the server asks for none.
    """

    def __init__(self, variable: str | None) -> None:
        """Read the key from the environment.

        Raises:
            AuditError: the variable is not set, or what it holds is no key. What it holds is not printed.
        """
        self.variable = variable
        self._value: str | None = None
        if variable is None:
            return
        value = os.environ.get(variable, "").strip()
        if not value:
            raise AuditError(
                f"the environment variable {variable} is not set; put the server's key into it, or name no "
                "variable for a server that asks for none."
            )
        if not _BEARER.fullmatch(value):
            raise AuditError(
                f"the environment variable {variable} holds no key: a key has at least 8 letters, digits or "
                "signs of ._~+/=:- and nothing else; check it for quotes, spaces and line breaks."
            )
        self._value = value

    def __repr__(self) -> str:
        return f"ApiKey({self.variable!r})"

    def sign(self, request: "PreparedRequest") -> "PreparedRequest":
        """Put the key into a request's header.

        Used as the session's `auth`, also without a key: else requests would look for one in ~/.netrc.
        """
        if self._value is not None:
            request.headers["Authorization"] = f"Bearer {self._value}"
        return request

    def hide(self, text: str) -> str:
        """Return `text` with the key blotted out: servers repeat it in error messages."""
        return text if self._value is None else text.replace(self._value, HIDDEN)
