"""A server to ask in tests: it answers what a test tells it to, and remembers what it was asked."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, str], bytes]
"""Status, headers and body."""


def good(value: Any) -> Answer:
    """An answer of status 200 with a JSON body (NaN and infinities as Python writes them)."""
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()


def bad(status: int, message: str = "no", **headers: str) -> Answer:
    """A refusal as OpenAI words it."""
    body = json.dumps({"error": {"message": message, "code": status}}).encode()
    return status, {name.replace("_", "-"): value for name, value in headers.items()}, body


def completion(top: list[tuple[str, float]], text: str | None = None, **changes: Any) -> dict[str, Any]:
    """A chat completion whose first token is the first of `top`, and whose second one is a full stop."""
    listed = [{"token": token, "logprob": logprob, "bytes": list(token.encode())} for token, logprob in top]
    first = {**listed[0], "top_logprobs": listed}
    second = {"token": ".", "logprob": -0.1, "bytes": [46], "top_logprobs": []}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "served",
        "system_fingerprint": "fp_1",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": f"{top[0][0]}." if text is None else text},
                "logprobs": {"content": [first, second]},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 21, "completion_tokens": 2, "total_tokens": 23},
        **changes,
    }


def asked_text(body: dict[str, Any]) -> str:
    """The text of a request's message, with or without a picture beside it."""
    content = body["messages"][0]["content"]
    return content if isinstance(content, str) else content[-1]["text"]


@dataclass
class Served:
    """What a test server answers and was asked.

    Attributes:
        answer: the answer to request number n (from 0) with this body.
        delay: seconds before each answer.
        bodies: of the requests, as they came.
        headers: of the requests.
        busiest: most requests that were being answered at one time.
    """

    answer: Callable[[int, dict[str, Any]], Answer]
    delay: float = 0.0
    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    busiest: int = 0
    now: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


@contextmanager
def serving(answer: Callable[[int, dict[str, Any]], Answer], delay: float = 0.0) -> Iterator[Served]:
    """Serve `answer` on a port of this machine until the block ends."""
    served = Served(answer, delay)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with served.lock:
                number = len(served.bodies)
                served.bodies.append(body)
                served.headers.append({**self.headers, "path": self.path})
                served.now += 1
                served.busiest = max(served.busiest, served.now)
            time.sleep(served.delay)
            status, headers, data = served.answer(number, body)
            with served.lock:
                served.now -= 1
            try:
                self.send_response(status)
                for name, value in {"Content-Length": str(len(data)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)
            except (BrokenPipeError, ConnectionResetError):  # the client gave up or was killed
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    served.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
