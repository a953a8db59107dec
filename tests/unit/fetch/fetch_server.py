"""A small HTTP server on 127.0.0.1 whose behaviour a test scripts, request by request."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server:
    """Serves `files`; `faults` are taken one per request, before the file is served as it should be."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.etags: dict[str, str] = {}
        self.faults: list[Callable[[BaseHTTPRequestHandler], None]] = []
        self.requests: list[tuple[str, str | None]] = []
        self.ranges = True
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def _handler(outer) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                outer.requests.append((self.path, self.headers.get("Range")))
                if outer.faults:
                    outer.faults.pop(0)(self)
                    return
                if self.path not in outer.files:
                    answer(self, 404, b"no such file")
                    return
                outer.serve(self)

        return Handler

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = self.files[handler.path]
        etag = self.etags.get(handler.path)
        asked = handler.headers.get("Range")
        same = handler.headers.get("If-Range") in (None, etag)
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and self.ranges and same else None
        extra = {"ETag": etag} if etag else {}
        if start is None:
            answer(handler, 200, body, extra)
        elif start >= len(body):
            answer(handler, 416, b"", {**extra, "Content-Range": f"bytes */{len(body)}"})
        else:
            where = f"bytes {start}-{len(body) - 1}/{len(body)}"
            answer(handler, 206, body[start:], {**extra, "Content-Range": where})


def answer(
    handler: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str] | None = None
) -> None:
    handler.send_response(status)
    for name, value in (headers or {}).items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def busy(status: int = 503) -> Callable[[BaseHTTPRequestHandler], None]:
    return lambda handler: answer(handler, status, b"busy")


def cut(body: bytes, sent: int, etag: str | None = None) -> Callable[[BaseHTTPRequestHandler], None]:
    """Announce the whole body, send a part of it, and close."""

    def fault(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        if etag:
            handler.send_header("ETag", etag)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[:sent])
        handler.close_connection = True

    return fault
