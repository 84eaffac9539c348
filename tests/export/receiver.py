# SPDX-License-Identifier: Apache-2.0
"""An HTTP server that takes posts and keeps them, and answers what it is told to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Received:
    """What came, and what to answer: ``answers`` first, one each, then ``usual``."""

    url: str = ""
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    answers: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)
    usual: tuple[int, dict[str, str], bytes] = (200, {}, b"")


@contextmanager
def receiver() -> Iterator[Received]:
    """A receiver on loopback until the end of the block."""
    kept = Received()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            kept.paths.append(self.path)
            kept.headers.append({name.lower(): value for name, value in self.headers.items()})
            kept.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            status, more, body = kept.answers.pop(0) if kept.answers else kept.usual
            self.send_response(status)
            for name, value in {**more, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *told: object, **more: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        kept.url = f"http://127.0.0.1:{listening.server_port}"
        thread = threading.Thread(target=listening.serve_forever, daemon=True)
        thread.start()
        try:
            yield kept
        finally:
            listening.shutdown()
            thread.join(10)
