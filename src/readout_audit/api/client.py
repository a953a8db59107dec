"""One question to a server over HTTP: tried again when the server is busy, given up for good when it refuses."""

import json
import logging
import math
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NoReturn

import requests

from readout_audit.api.credentials import ApiKey
from readout_audit.api.pace import Pace
from readout_audit.errors import AuditError

LOGGER = logging.getLogger(__name__)

_BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_THIS_QUESTION = frozenset({400, 413, 415, 422})
"""What servers answer to a question they will not take: too large, not decodable, against a policy."""
_HEADERS = {"User-Agent": "readout-audit", "Accept": "application/json"}
_LONGEST_REASON = 200


class RefusedError(Exception):
    """The server gives no answer to this question, however often it is asked."""


class _TryAgainError(Exception):
    """Something that may pass. `status`: the server's, None without an answer; `after`: seconds it asks for."""

    def __init__(self, reason: str, status: int | None = None, after: float | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.after = after


@dataclass(frozen=True)
class Patience:
    """How long to try: attempts, seconds before the second one (then doubled), connect and read timeouts.

    `longest_wait` also bounds what a server may ask for with Retry-After.
    """

    attempts: int = 6
    wait: float = 1.0
    longest_wait: float = 300.0
    timeout: tuple[float, float] = (10.0, 120.0)


class Client:
    """Posts requests from any number of threads.

    Attributes:
        requests: how many requests were sent.
        retries: how many of them repeated one.
    """

    def __init__(self, server: str, key: ApiKey, pace: Pace, patience: Patience) -> None:
        """Take the server's address and how to treat it."""
        self.server, self._key, self._pace, self._patience = server, key, pace, patience
        self._local = threading.local()
        self._counting = threading.Lock()
        self.requests = self.retries = 0

    def ask(self, body: dict[str, Any]) -> Any:
        """Return the server's answer to one chat request, parsed.

        Raises:
            RefusedError: the server refuses this question.
            AuditError: the server refuses all of them, or cannot be reached for good.
            StoppedError: the job was stopped while this one waited.
        """
        wait = self._patience.wait
        for attempt in range(1, self._patience.attempts + 1):
            self._pace.take()
            self._count(again=attempt > 1)
            try:
                return self._post(body)
            except _TryAgainError as error:
                failure = error
            if attempt == self._patience.attempts:
                break
            if failure.after is None:
                LOGGER.info("%s; again in %.1f s", failure, wait)
                self._pace.wait(wait)
                wait = min(2 * wait, self._patience.longest_wait)
            else:
                self._obey(failure)
        self._give_up(failure)

    def _count(self, *, again: bool) -> None:
        with self._counting:
            self.requests += 1
            self.retries += again

    def _obey(self, failure: _TryAgainError) -> None:
        """Pause everyone for as long as the server asks."""
        after = failure.after or 0.0
        if after > self._patience.longest_wait:
            raise AuditError(
                f"{self.server}: {failure}, and asks to wait {after:.0f} s; run the same command again then, "
                "what was answered is kept."
            )
        LOGGER.info("%s; the server asks to wait %.1f s", failure, after)
        self._pace.pause(after)

    def _give_up(self, failure: _TryAgainError) -> NoReturn:
        """Say that the last attempt has failed: about this question alone where the server broke over it."""
        tried = f"{failure} ({self._patience.attempts} attempts)"
        if failure.status == 500:
            raise RefusedError(tried)
        raise AuditError(
            f"{self.server}: {tried}; when the server is well, run the same command again: what was answered is kept."
        )

    def _session(self) -> requests.Session:
        """Return this thread's session: they are not made to be shared."""
        session: requests.Session | None = getattr(self._local, "session", None)
        if session is None:
            session = requests.Session()
            session.auth = self._key.sign
            session.headers.update(_HEADERS)
            self._local.session = session
        return session

    def _post(self, body: dict[str, Any]) -> Any:
        """Ask once."""
        try:
            response = self._session().post(
                f"{self.server}/chat/completions",
                json=body,
                timeout=self._patience.timeout,
                allow_redirects=False,  # a redirect would take the question, and the key, elsewhere
            )
        except (
            requests.ConnectionError,
            requests.Timeout,
            requests.exceptions.ChunkedEncodingError,
        ) as error:
            raise _TryAgainError(self._plain(error)) from None
        except requests.RequestException as error:
            raise AuditError(f"{self.server}: cannot be asked ({self._plain(error)}).") from None
        if response.status_code != 200:
            self._refuse(response)
        return self._parsed(response)

    def _parsed(self, response: requests.Response) -> Any:
        """Return the body of a good answer; one that is no JSON comes from a proxy or broke on the way."""
        try:
            return json.loads(self._key.hide(response.content.decode("utf-8")))
        except (ValueError, RecursionError):
            raise _TryAgainError("the server answers 200 with something that is not JSON", 200) from None

    def _refuse(self, response: requests.Response) -> NoReturn:
        """Sort an answer that is no answer."""
        status = response.status_code
        if status in _BUSY:
            after = retry_after(response.headers.get("Retry-After"), datetime.now(UTC))
            raise _TryAgainError(f"the server answers {status}{self._said(response)}", status, after)
        if status in _THIS_QUESTION:
            raise RefusedError(f"the server answers {status}{self._said(response)}")
        if status in (401, 403):
            # Not what the server said: it likes to quote parts of the key.
            where = (
                f"check the key in {self._key.variable}"
                if self._key.variable
                else "name the environment variable that holds its key"
            )
            raise AuditError(f"{self.server}: the server answers {status}, not authorised; {where}.")
        raise AuditError(
            f"{self.server}: the server answers {status}{self._said(response)}; check the address (it usually ends in "
            "/v1) and the name of the served model."
        )

    def _said(self, response: requests.Response) -> str:
        """Return what the server gave as its reason, in brackets; empty where it gave none."""
        text = self._key.hide(response.content[:65536].decode("utf-8", errors="replace"))
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = text
        for key in ("error", "detail", "message"):
            if isinstance(value, dict) and key in value:
                value = value[key]
        reason = _short(value if isinstance(value, str) else json.dumps(value))
        return f" ({reason})" if reason else ""

    def _plain(self, error: Exception) -> str:
        """Return the innermost reason of a network error in one line."""
        cause = error.args[0] if error.args else error
        said = str(getattr(cause, "reason", cause))
        # urllib3 puts the pool or connection in front: "HTTPConnection(host=…, port=…): Read timed out."
        where = "the proxy: " if isinstance(error, requests.exceptions.ProxyError) else ""
        return where + _short(self._key.hide(said.rpartition("): ")[2]))


def _short(text: str) -> str:
    """Return a text on one line, cut where it is too long for a sentence."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_REASON else f"{line[: _LONGEST_REASON - 3]}..."


def retry_after(value: str | None, now: datetime) -> float | None:
    """Return the seconds that a Retry-After header asks for (a number or a date); None without one."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - now).total_seconds()
        except (TypeError, ValueError):
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None
