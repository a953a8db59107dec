"""What is asked of a server, in one object with one hash, and the body of a request."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from readout_audit.errors import AuditError
from readout_audit.models.templates import Template
from readout_audit.settings_text import hash_settings, read_settings

DATA_URI, NO_IMAGE = "data_uri", "none"
KEYS = (
    "model",
    "adapter",
    "server",
    "served_model",
    "revision",
    "precision",
    "template",
    "image",
    "max_tokens",
    "top_logprobs",
    "extra",
)
_OURS = frozenset(
    {"model", "messages", "temperature", "max_tokens", "logprobs", "top_logprobs", "stream", "n"}
)
_PLACEHOLDERS = ("<image>", "<|image|>", "<|image_pad|>")


@dataclass(frozen=True)
class ApiSettings:
    """The settings of one cell that a server answers, as they are hashed and recorded.

    Attributes:
        value: the JSON object, exactly the keys `KEYS`.
        template: the prompt template in it; what it renders is the user's message, around which the server
            puts its own chat template.
    """

    value: dict[str, Any]
    template: Template

    @classmethod
    def parse(cls, text: str) -> "ApiSettings":
        """Read settings from JSON.

        Raises:
            AuditError: it is no JSON object, a key is unknown or missing, or a value is not allowed.
        """
        value = read_settings(text, KEYS)
        value["server"] = checked_server(value["server"])
        check_values(value)
        template = Template.from_dict(value["template"])
        check_template(template)
        return cls(value, template)

    @property
    def settings_id(self) -> str:
        """First 16 hex of the SHA-256 of the canonical JSON."""
        return hash_settings(self.value)

    @property
    def server(self) -> str:
        """Address of the server, without a slash at its end."""
        return str(self.value["server"])

    @property
    def is_open(self) -> bool:
        """Whether requests leave this machine unencrypted."""
        parts = urlsplit(self.server)
        return parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1")

    @property
    def sends_image(self) -> bool:
        """Whether the picture goes with the question."""
        return bool(self.value["image"] == DATA_URI)

    def message(self, question: str) -> str:
        """Return the text of the user's message."""
        asked = question + self.template.suffix
        return self.template.text.replace("{question}", asked) if self.template.text else asked

    def body(self, text: str, image: str | None) -> dict[str, Any]:
        """Return the body of one request.

        Args:
            text: the user's message.
            image: the picture as a data URI, before the text; None sends the text alone.
        """
        content: Any = text
        if image is not None:
            content = [
                {"type": "image_url", "image_url": {"url": image}},
                {"type": "text", "text": text},
            ]
        return {
            "model": self.value["served_model"],
            "messages": [{"role": "user", "content": content}],
            "temperature": 0,
            "max_tokens": self.value["max_tokens"],
            "logprobs": True,
            "top_logprobs": self.value["top_logprobs"],
            **self.value["extra"],
        }

    def fingerprint(self) -> dict[str, Any]:
        """Return what kept replies must agree on to be used again.

        The request as it is sent, so that an edit of this module that changes it asks again, and one that
        does not change it asks nothing again.
        """
        return {
            "server": self.server,
            "revision": self.value["revision"],
            "request": self.body(self.message("{question}"), "{image}" if self.sends_image else None),
        }


def checked_server(server: Any) -> str:
    """Return the server's address, without a slash at its end.

    Raises:
        AuditError: it is no plain http or https address. One with a name, password or query is refused
            without being printed: such parts are where keys are put.
    """
    if not isinstance(server, str):
        raise AuditError("settings: server must be an address such as http://localhost:8000/v1.")
    parts = urlsplit(server)
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise AuditError(
            "settings: server holds a user name, password or query; keep the address plain, put the key into an "
            "environment variable and name that variable."
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or not _has_port(parts):
        raise AuditError(f"settings: server is {server!r}, not an address such as http://localhost:8000/v1.")
    return server.rstrip("/")


def _has_port(parts: SplitResult) -> bool:
    """Tell whether an address names no port, or one that there is."""
    try:
        return parts.port is None or parts.port > 0
    except ValueError:
        return False


def check_values(value: dict[str, Any]) -> None:
    """Refuse settings whose values cannot be meant."""
    for key in ("model", "adapter", "served_model", "precision"):
        if not isinstance(value[key], str) or not value[key]:
            raise AuditError(f"settings: {key} is {value[key]!r}, not a name.")
    if value["revision"] is not None and not isinstance(value["revision"], str):
        raise AuditError(f"settings: revision is {value['revision']!r}, not a text or null.")
    if value["image"] not in (DATA_URI, NO_IMAGE):
        raise AuditError(f"settings: image is {value['image']!r}, not {DATA_URI} or {NO_IMAGE}.")
    for key in ("max_tokens", "top_logprobs"):
        number = value[key]
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise AuditError(f"settings: {key} is {number!r}, not a whole number of at least 1.")
    if not isinstance(value["extra"], dict):
        raise AuditError("settings: extra must be a JSON object of further request fields.")
    taken = sorted(_OURS & set(value["extra"]))
    if taken:
        raise AuditError(f"settings: extra must not set {', '.join(taken)}; the audit sets those itself.")


def check_template(template: Template) -> None:
    """Refuse a template that marks the picture's place: in a chat request the server places it."""
    for placeholder in _PLACEHOLDERS:
        if placeholder in template.text:
            raise AuditError(
                f"template {template.name}: its text holds {placeholder}, but a server places the picture itself; "
                "use chat: true with a suffix, or a text of the question alone."
            )
